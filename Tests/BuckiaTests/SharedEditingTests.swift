import Buckia
import BuckiaLedger
import Foundation
import TestSupport
import Testing

/// Two or three people share parts of their databases with each other, and go on editing.
@Suite struct SharedEditingTests {
  private static let schema = """
    CREATE TABLE album(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE photo(id TEXT PRIMARY KEY, album INTEGER REFERENCES album(id), title TEXT);
    """
  private static let rows = """
    INSERT INTO album VALUES (1,'summer'),(2,'winter');
    INSERT INTO photo VALUES ('a',1,'beach'),('b',1,'sea'),('c',2,'snow');
    """

  private static func album(_ id: Int64) -> ShareScope {
    ShareScope(name: "album \(id)") {
      SharedTable("album").where("id = :id", ["id": .integer(id)])
      SharedTable("photo").children(of: "album")
    }
  }

  private let folder: TemporaryFolder
  private let anna: SharingPerson
  private let ben: SharingPerson

  init() throws {
    folder = try TemporaryFolder()
    anna = try SharingPerson("anna", in: folder, Self.schema + Self.rows)
    ben = try SharingPerson("ben", in: folder, Self.schema)
  }

  @Test func `a received change is not sent back to its sender`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.share(Self.album(1), with: anna)
    try anna.receive()
    try ben.run("UPDATE photo SET title = 'the beach' WHERE id = 'a'; INSERT INTO photo VALUES ('d',1,'new')")
    try ben.run("DELETE FROM photo WHERE id = 'b'")
    #expect(
      try ben.share(Self.album(1), with: anna).tables.map { [$0.inserted, $0.updated, $0.deleted] } == [[1, 1, 1]])
    try anna.receive()
    #expect(try anna.photos() == ["a|1|the beach", "c|2|snow", "d|1|new"])
    #expect(try anna.share(Self.album(1), with: ben).id == nil)
    try anna.run("UPDATE photo SET title = 'newer' WHERE id = 'd'")
    #expect(
      try anna.share(Self.album(1), with: ben).tables.map { [$0.inserted, $0.updated, $0.deleted] } == [[0, 1, 0]])
    try ben.receive()
    #expect(try ben.share(Self.album(1), with: anna).id == nil)
    #expect(try ben.photos() == ["a|1|the beach", "d|1|newer"])
  }

  @Test func `an edit that was not taken is a conflict at its author, and not reverted there`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.share(Self.album(1), with: anna)
    try anna.receive()
    try anna.run("UPDATE photo SET title = 'of anna' WHERE id = 'a'")
    try ben.run("UPDATE photo SET title = 'of ben' WHERE id = 'a'; UPDATE album SET name = 'of ben'")
    try ben.share(Self.album(1), with: anna)
    #expect(try anna.receive().diffs.map(\.conflicts) == [1])
    #expect(try anna.photos()[0] == "a|1|of anna")
    // The edit of the album was taken. Only the photo in dispute is sent, and is a conflict at Ben's replica.
    let report = try anna.share(Self.album(1), with: ben)
    #expect(report.tables.map(\.name) == ["photo"])
    #expect(try ben.receive().diffs.map(\.conflicts) == [1])
    #expect(try ben.photos()[0] == "a|1|of ben")
  }

  @Test func `a row that leaves the scope is withdrawn`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try anna.run("UPDATE photo SET album = 2 WHERE id = 'b'")
    #expect(try anna.share(Self.album(1), with: ben).tables.map { [$0.deleted, $0.withdrawn] } == [[0, 1]])
    try ben.receive()
    #expect(try ben.photos() == ["a|1|beach"])
    try anna.run("UPDATE photo SET album = 1 WHERE id = 'b'")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.photos() == ["a|1|beach", "b|1|sea"])
  }

  @Test func `a withdrawn row stays as long as another stream has it`() throws {
    let all = ShareScope(name: "all") {
      SharedTable("album")
      SharedTable("photo")
    }
    try anna.share(Self.album(1), with: ben)
    try anna.share(all, with: ben)
    try ben.receive()
    try anna.run("UPDATE photo SET album = 2 WHERE id = 'b'")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.photos().map { String($0.prefix(1)) } == ["a", "b", "c"])
    try anna.share(all, with: ben)
    try ben.receive()
    #expect(try ben.photos() == ["a|1|beach", "b|2|sea", "c|2|snow"])
    try anna.share(ShareScope(name: "all") { SharedTable("album") }, with: ben)
    try ben.receive()
    #expect(try ben.photos() == ["a|1|beach"])
  }

  @Test func `a row that existed before stays when its sender withdraws it`() throws {
    try ben.run("INSERT INTO album VALUES (1,'summer'); INSERT INTO photo VALUES ('b',1,'sea')")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try anna.run("UPDATE photo SET album = 2 WHERE album = 1")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.photos() == ["b|1|sea"])
  }

  @Test func `a recipient of a withdrawal withdraws the row in turn, and does not delete it`() throws {
    let cara = try SharingPerson("cara", in: folder, Self.schema)
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.share(Self.album(1), with: cara)
    try cara.receive()
    try anna.run("UPDATE photo SET album = 2 WHERE id = 'b'")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.share(Self.album(1), with: cara).tables.map { [$0.deleted, $0.withdrawn] } == [[0, 1]])
    try cara.receive()
    #expect(try cara.photos() == ["a|1|beach"])
  }

  @Test func `a withdrawal is not sent back`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.share(Self.album(1), with: anna)
    try anna.receive()
    try anna.run("UPDATE photo SET album = 2 WHERE id = 'b'")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.photos() == ["a|1|beach"])
    #expect(try ben.share(Self.album(1), with: anna).id == nil)
    #expect(try anna.photos() == ["a|1|beach", "b|2|sea", "c|2|snow"])
  }

  @Test func `a deletion is relayed as a deletion`() throws {
    let cara = try SharingPerson("cara", in: folder, Self.schema)
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.share(Self.album(1), with: cara)
    try cara.receive()
    try anna.run("DELETE FROM photo WHERE id = 'a'")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.share(Self.album(1), with: cara).tables.map { [$0.deleted, $0.withdrawn] } == [[1, 0]])
    try cara.receive()
    #expect(try cara.photos() == ["b|1|sea"])
  }

  @Test func `a row that an undo removes is deleted nowhere else, unless the share propagates it`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.share(Self.album(1), with: anna)
    try anna.receive()
    try anna.run("INSERT INTO photo VALUES ('d',1,'rain')")
    let diff = try #require(try anna.share(Self.album(1), with: ben).id).description
    try ben.receive()
    let undo = try DatabaseManager(ben.path, home: ben.home).undo([.diff(diff)])
    #expect(try ben.photos() == ["a|1|beach", "b|1|sea"])
    #expect(
      try ben.share(Self.album(1), with: anna, { ($0.isDryRun, $0.propagates) = (true, true) }).tables
        .map { [$0.deleted, $0.withdrawn] } == [[1, 0]])
    #expect(try ben.share(Self.album(1), with: anna).tables.allSatisfy { $0.deleted == 0 && $0.withdrawn == 0 })
    #expect(try anna.receive().diffs.allSatisfy { $0.deleted == 0 })
    #expect(try anna.photos().contains("d|1|rain"))
    // Neither side sends anything more.
    #expect(try anna.share(Self.album(1), with: ben).tables.isEmpty)
    #expect(try ben.share(Self.album(1), with: anna).tables.isEmpty)
    // A row that is restored and then deleted is deleted at the other side, too.
    try DatabaseManager(ben.path, home: ben.home).undo([.diff(try #require(undo.undone.first).id.description)])
    #expect(try ben.photos() == ["a|1|beach", "b|1|sea", "d|1|rain"])
    try ben.share(Self.album(1), with: anna)
    try anna.receive()
    try ben.run("DELETE FROM photo WHERE id = 'd'")
    #expect(try ben.share(Self.album(1), with: anna).tables.map { [$0.deleted, $0.withdrawn] } == [[1, 0]])
    try anna.receive()
    #expect(try anna.photos() == ["a|1|beach", "b|1|sea", "c|2|snow"])
  }

  @Test func `many rows that an undo removes are withdrawn, and not once they are restored`() throws {
    let cara = try SharingPerson("cara", in: folder, Self.schema)
    try anna.run(
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
      INSERT INTO photo SELECT 'one of many photos ' || i, 1, 'sea' FROM n
      """)
    let diff = try #require(try anna.share(Self.album(1), with: ben).id).description
    try ben.receive()
    try ben.share(Self.album(1), with: cara)
    let undo = try DatabaseManager(ben.path, home: ben.home).undo([.diff(diff)])
    func withdrawn() throws -> [Int] {
      try ben.share(Self.album(1), with: cara, { $0.isDryRun = true }).tables.map(\.withdrawn)
    }
    #expect(try withdrawn() == [1, 20_002])
    try DatabaseManager(ben.path, home: ben.home).undo([.diff(try #require(undo.undone.first).id.description)])
    #expect(try withdrawn() == [])
  }

  @Test func `a row that an undo removes and a redo restores can be deleted afterwards`() throws {
    let cara = try SharingPerson("cara", in: folder, Self.schema)
    let diff = try #require(try anna.share(Self.album(1), with: ben).id).description
    try ben.receive()
    try ben.share(Self.album(1), with: cara)
    try cara.receive()
    let undo = try DatabaseManager(ben.path, home: ben.home).undo([.diff(diff)])
    #expect(try ben.photos().isEmpty)
    // The removal is relayed as a withdrawal.
    let report = try ben.share(Self.album(1), with: cara, { $0.isDryRun = true })
    #expect(report.tables.map { [$0.deleted, $0.withdrawn] } == [[0, 1], [0, 2]])
    let asked = try ben.share(Self.album(1), with: cara, { ($0.isDryRun, $0.propagates) = (true, true) })
    #expect(asked.tables.map { [$0.deleted, $0.withdrawn] } == [[1, 0], [2, 0]])
    try DatabaseManager(ben.path, home: ben.home).undo([.diff(try #require(undo.undone.first).id.description)])
    try ben.run("DELETE FROM photo WHERE id = 'a'")
    #expect(try ben.share(Self.album(1), with: cara).tables.map { [$0.deleted, $0.withdrawn] } == [[1, 0]])
    try cara.receive()
    #expect(try cara.photos() == ["b|1|sea"])
  }

  @Test func `a withdrawal is relayed as a deletion if the share propagates it`() throws {
    let cara = try SharingPerson("cara", in: folder, Self.schema)
    try cara.run(Self.rows)
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.share(Self.album(1), with: cara)
    try cara.receive()
    try anna.run("UPDATE photo SET album = 2 WHERE id = 'b'")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    let asked = try ben.share(Self.album(1), with: cara, { $0.propagates = true })
    #expect(asked.tables.map { [$0.deleted, $0.withdrawn] } == [[1, 0]])
    try cara.receive()
    // Cara had the row herself, so a withdrawal would have left it.
    #expect(try cara.photos() == ["a|1|beach", "c|2|snow"])
  }

  @Test func `a recipient who has lost a file keeps their own edits in a resync, without conflicts`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.run("UPDATE photo SET title = 'of ben' WHERE id = 'a'")
    try anna.run("DELETE FROM photo WHERE id = 'b'; INSERT INTO photo VALUES ('d',1,'lost'),('e',1,'too')")
    let lost = try #require(try anna.share(Self.album(1), with: ben).path)
    try FileManager.default.removeItem(atPath: lost)
    try anna.run("UPDATE photo SET title = 'found' WHERE id = 'e'; UPDATE album SET name = 'warm' WHERE id = 1")
    try anna.share(Self.album(1), with: ben)
    let waiting = try DatabaseManager(ben.path, home: ben.home).processInboundChanges([folder.file("for ben")])
    #expect(waiting.diffs.map(\.state) == [.waiting])
    #expect(try anna.share(Self.album(1), with: ben) { $0.resyncs = true }.isSnapshot)
    let report = try DatabaseManager(ben.path, home: ben.home).processInboundChanges([folder.file("for ben")])
    #expect(report.diffs.map(\.conflicts).allSatisfy { $0 == 0 })
    #expect(try ben.photos() == ["a|1|of ben", "d|1|lost", "e|1|found"])
    #expect(try ben.rows("SELECT * FROM album") == ["1|warm"])
    try anna.run("UPDATE photo SET title = 'again' WHERE id = 'd'")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.photos()[1] == "d|1|again")
  }

  @Test func `a snapshot keeps the recipient's deletions and own rows, and deletes rows that are no longer shared`()
    throws
  {
    try ben.run("INSERT INTO photo VALUES ('x',NULL,'own')")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.run("DELETE FROM photo WHERE id = 'a'")
    try anna.share(Self.album(1), with: ben) { $0.resyncs = true }
    try ben.receive()
    #expect(try ben.photos() == ["b|1|sea", "x|NULL|own"])
    try anna.run("UPDATE photo SET album = 2; DELETE FROM album WHERE id = 1")
    try anna.share(Self.album(1), with: ben) { $0.resyncs = true }
    try ben.receive()
    #expect(try ben.photos() == ["x|NULL|own"])
    #expect(try ben.rows("SELECT * FROM album") == [])
  }

  @Test func `a recipient who begins again with an empty database gets their own rows back, too`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.run("INSERT INTO photo VALUES ('d',1,'of ben'); UPDATE photo SET title = 'the beach' WHERE id = 'a'")
    try ben.share(Self.album(1), with: anna)
    try anna.receive()
    try FileManager.default.removeItem(atPath: ben.path)
    let again = try SharingPerson("ben", in: folder, Self.schema)
    #expect(try anna.share(Self.album(1), with: again) { $0.resyncs = true }.isSnapshot)
    try again.receive()
    #expect(try again.photos() == ["a|1|the beach", "b|1|sea", "d|1|of ben"])
    try again.share(Self.album(1), with: anna)
    #expect(try anna.receive().diffs.map(\.conflicts) == [0])
    #expect(try anna.photos() == ["a|1|the beach", "b|1|sea", "c|2|snow", "d|1|of ben"])
  }

  // MARK: Changes that were not taken

  /// Lets both share album 1 with each other, and know that the other has it.
  private func shareBothWays() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.share(Self.album(1), with: anna)
    try anna.receive()
  }

  @Test func `held changes are not reverted at their author, neither before nor after the upgrade`() throws {
    try shareBothWays()
    try ben.run("ALTER TABLE photo ADD COLUMN stars INTEGER; INSERT INTO photo VALUES ('d',1,'new',4)")
    try ben.run("UPDATE photo SET title = 'of ben', stars = 5 WHERE id = 'a'")
    try ben.share(Self.album(1), with: anna)
    func hold() throws -> [DiffOutcome] {
      try DatabaseManager(anna.path, home: anna.home).processInboundChanges(
        [folder.file("for anna")], options: ApplyOptions(schema: .hold)
      ).diffs
    }
    #expect(try hold().map(\.state) == [.held])
    #expect(try anna.photos() == ["a|1|of ben", "b|1|sea", "c|2|snow", "d|1|new"])
    try anna.run("UPDATE photo SET title = 'by anna' WHERE id = 'b'")
    let report = try anna.share(Self.album(1), with: ben)
    #expect(report.tables.map { [$0.inserted, $0.updated, $0.deleted] } == [[0, 1, 0]])
    try ben.receive()
    let bens = ["a|1|of ben|5", "b|1|by anna|NULL", "d|1|new|4"]
    #expect(try ben.photos() == bens)
    // The column exists now, but the held changes are not applied yet.
    try anna.run("ALTER TABLE photo ADD COLUMN stars INTEGER")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.photos() == bens)
    _ = try hold()
    #expect(try anna.photos() == ["a|1|of ben|5", "b|1|by anna|NULL", "c|2|snow|NULL", "d|1|new|4"])
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.photos() == bens)
  }

  @Test func `refused changes are not reverted at their author`() throws {
    try shareBothWays()
    try anna.run("UPDATE photo SET title = 'of anna' WHERE id = 'a'")
    try ben.run("UPDATE photo SET title = 'of ben'; INSERT INTO photo VALUES ('d',1,'new')")
    try ben.share(Self.album(1), with: anna)
    let refused = try DatabaseManager(anna.path, home: anna.home).processInboundChanges(
      [folder.file("for anna")], options: ApplyOptions(conflicts: .abort))
    #expect(refused.diffs.map(\.state) == [.rejected])
    let report = try anna.share(Self.album(1), with: ben)
    #expect(report.tables.map { [$0.inserted, $0.updated, $0.deleted] } == [[0, 1, 0]])
    try ben.receive()
    #expect(try ben.photos() == ["a|1|of ben", "b|1|of ben", "d|1|new"])
  }

  @Test func `a row that a UNIQUE constraint refuses is not deleted at its author`() throws {
    let schema = "CREATE TABLE tag(id TEXT PRIMARY KEY, name TEXT UNIQUE); "
    let dora = try SharingPerson("dora", in: folder, schema + "INSERT INTO tag VALUES ('a','one')")
    let emil = try SharingPerson("emil", in: folder, schema)
    let tags = ShareScope(name: "tags") { SharedTable("tag") }
    try dora.share(tags, with: emil)
    try emil.receive()
    try emil.share(tags, with: dora)
    try dora.receive()
    try emil.run("INSERT INTO tag VALUES ('d','two')")
    try dora.run("INSERT INTO tag VALUES ('e','two')")
    try emil.share(tags, with: dora)
    #expect(try dora.receive().diffs.map(\.conflicts) == [1])
    #expect(try dora.rows("SELECT * FROM tag ORDER BY id") == ["a|one", "e|two"])
    let report = try dora.share(tags, with: emil)
    #expect(report.tables.map { [$0.inserted, $0.updated, $0.deleted] } == [[1, 0, 0]])
    try emil.receive()
    #expect(try emil.rows("SELECT * FROM tag ORDER BY id") == ["a|one", "d|two"])
  }

  @Test func `rows that refer to a row refused by a UNIQUE constraint do not stop sharing`() throws {
    let schema = """
      CREATE TABLE tag(id TEXT PRIMARY KEY, name TEXT UNIQUE); CREATE TABLE photo(id TEXT PRIMARY KEY);
      CREATE TABLE photo_tag(photo REFERENCES photo(id), tag REFERENCES tag(id), PRIMARY KEY(photo, tag)) WITHOUT ROWID;
      """
    let dora = try SharingPerson("dora", in: folder, schema + "INSERT INTO photo VALUES ('p'),('q')")
    let emil = try SharingPerson("emil", in: folder, schema)
    let all = ShareScope(name: "all", tables: ["tag", "photo", "photo_tag"].map { SharedTable(TableName($0)) })
    func exchange() throws {
      for (one, other) in [(dora, emil), (emil, dora)] {
        try one.share(all, with: other)
        try other.receive()
      }
    }
    try exchange()
    try dora.run("INSERT INTO tag VALUES ('d','sunset'); INSERT INTO photo_tag VALUES ('p','d')")
    try emil.run("INSERT INTO tag VALUES ('e','sunset'); INSERT INTO photo_tag VALUES ('q','e')")
    try exchange()
    try exchange()
    // One side deletes the tag, and the link stays.
    try dora.run("DELETE FROM tag WHERE id = 'd'; INSERT INTO photo VALUES ('r')")
    let report = try dora.share(all, with: emil)
    #expect(report.leftOut.map(\.reason) == [.noParent])
    #expect(report.leftOut.first?.rows.map(\.values) == [[.text("d")]])
    #expect(report.tables.first { $0.name == "photo_tag" }?.deleted ?? 0 == 0)
    try emil.receive()
    #expect(try emil.rows("SELECT id FROM photo ORDER BY 1") == ["p", "q", "r"])
    try dora.run("UPDATE photo_tag SET tag = 'd2' WHERE tag = 'd'; INSERT INTO tag VALUES ('d2','dusk')")
    #expect(try dora.share(all, with: emil).leftOut.isEmpty)
    try emil.receive()
    #expect(try emil.rows("SELECT photo FROM photo_tag WHERE tag = 'd2'") == ["p"])
    #expect(try dora.alteredStates().isEmpty)
  }

  @Test func `changes that are made before the first share back are no conflict`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.run("UPDATE photo SET title = 'by ben' WHERE id = 'a'; INSERT INTO photo VALUES ('d',1,'new')")
    try anna.run("UPDATE album SET name = 'by anna' WHERE id = 1; DELETE FROM photo WHERE id = 'b'")
    try ben.share(Self.album(1), with: anna)
    #expect(try anna.receive().diffs.map(\.conflicts) == [0])
    // The row that Anna has deleted does not come back, and her own edit stays.
    #expect(try anna.photos() == ["a|1|by ben", "c|2|snow", "d|1|new"])
    #expect(try anna.rows("SELECT name FROM album WHERE id = 1") == ["by anna"])
    try anna.share(Self.album(1), with: ben)
    #expect(try ben.receive().diffs.map(\.conflicts) == [0])
    #expect(try ben.photos() == ["a|1|by ben", "d|1|new"])
    #expect(try ben.rows("SELECT name FROM album") == ["by anna"])
  }

  @Test func `a row that both have edited before the first share back is one conflict`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.run("UPDATE photo SET title = 'by ben'")
    try anna.run("UPDATE photo SET title = 'by anna' WHERE id = 'a'")
    try ben.share(Self.album(1), with: anna)
    #expect(try anna.receive().diffs.map(\.conflicts) == [1])
    #expect(try anna.photos() == ["a|1|by anna", "b|1|by ben", "c|2|snow"])
  }
}

extension SharingPerson {
  fileprivate func photos() throws -> [String] { try rows("SELECT * FROM photo ORDER BY id") }
}
