import Buckia
import BuckiaLedger
import Foundation
import SQLiteConnections
import TestSupport
import Testing

/// Two or three people share parts of their databases with each other, and go on editing.
@Suite struct SharedEditingTests {
  /// One of them: a database, what is known of its replica, and the folder that others read.
  private final class Person {
    let name: String
    let path: String
    let home: BuckiaHome
    let folder: TemporaryFolder

    init(_ name: String, in folder: TemporaryFolder, _ sql: String = SharedEditingTests.schema) throws {
      self.name = name
      self.folder = folder
      path = try TestDatabases.run(sql, on: folder.file("\(name).sqlite"))
      home = BuckiaHome(path: folder.file("home of \(name)"))
    }

    func run(_ sql: String) throws { try TestDatabases.run(sql, on: path) }

    @discardableResult
    func share(
      _ scope: ShareScope, with other: Person, _ change: (inout ShareOptions) -> Void = { _ in }
    ) throws -> ShareReport {
      var options = ShareOptions()
      options.isUnencrypted = true
      change(&options)
      return try DatabaseManager(path).share(
        scope, to: [ShareRecipient(other.name)], output: .folder(folder.file("for \(other.name)")), options: options,
        home: home)
    }

    @discardableResult
    func receive(_ options: ApplyOptions = ApplyOptions()) throws -> ApplyReport {
      try folder.makeFolder("for \(name)")
      let report = try DatabaseManager(path).processInboundChanges(
        [folder.file("for \(name)")], options: options, home: home)
      #expect(
        report.diffs.allSatisfy { $0.state == .applied || $0.state == .alreadyApplied },
        "\(report.diffs.map { $0.reason ?? "" })")
      return report
    }

    func rows(_ query: String = "SELECT * FROM photo ORDER BY id") throws -> [String] {
      let connection = try SQLiteConnection(opening: path, as: .readOnly)
      var found: [String] = []
      try connection.forEachRow(of: query) { row in
        found.append((0..<row.columnCount).map { row.text(at: $0) ?? "NULL" }.joined(separator: "|"))
      }
      return found
    }
  }

  fileprivate static let schema = """
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
  private let anna: Person
  private let ben: Person

  init() throws {
    folder = try TemporaryFolder()
    anna = try Person("anna", in: folder, Self.schema + Self.rows)
    ben = try Person("ben", in: folder)
  }

  @Test func `what came from somebody is not sent back to them`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.share(Self.album(1), with: anna)
    try anna.receive()
    try ben.run("UPDATE photo SET title = 'the beach' WHERE id = 'a'; INSERT INTO photo VALUES ('d',1,'new')")
    try ben.run("DELETE FROM photo WHERE id = 'b'")
    #expect(
      try ben.share(Self.album(1), with: anna).tables.map { [$0.inserted, $0.updated, $0.deleted] } == [[1, 1, 1]])
    try anna.receive()
    #expect(try anna.rows() == ["a|1|the beach", "c|2|snow", "d|1|new"])
    #expect(try anna.share(Self.album(1), with: ben).id == nil)
    try anna.run("UPDATE photo SET title = 'newer' WHERE id = 'd'")
    #expect(
      try anna.share(Self.album(1), with: ben).tables.map { [$0.inserted, $0.updated, $0.deleted] } == [[0, 1, 0]])
    try ben.receive()
    #expect(try ben.share(Self.album(1), with: anna).id == nil)
    #expect(try ben.rows() == ["a|1|the beach", "d|1|newer"])
  }

  @Test func `an edit that was not taken is not quietly reverted at its author`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.share(Self.album(1), with: anna)
    try anna.receive()
    try anna.run("UPDATE photo SET title = 'of anna' WHERE id = 'a'")
    try ben.run("UPDATE photo SET title = 'of ben' WHERE id = 'a'; UPDATE album SET name = 'of ben'")
    try ben.share(Self.album(1), with: anna)
    #expect(try anna.receive().diffs.map(\.conflicts) == [1])
    #expect(try anna.rows()[0] == "a|1|of anna")
    // The other column's table was taken; only the row in dispute is sent, and is a conflict there.
    let report = try anna.share(Self.album(1), with: ben)
    #expect(report.tables.map(\.name) == ["photo"])
    #expect(try ben.receive().diffs.map(\.conflicts) == [1])
    #expect(try ben.rows()[0] == "a|1|of ben")
  }

  @Test func `a row that leaves the scope is withdrawn`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try anna.run("UPDATE photo SET album = 2 WHERE id = 'b'")
    #expect(try anna.share(Self.album(1), with: ben).tables.map { [$0.deleted, $0.withdrawn] } == [[0, 1]])
    try ben.receive()
    #expect(try ben.rows() == ["a|1|beach"])
    try anna.run("UPDATE photo SET album = 1 WHERE id = 'b'")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.rows() == ["a|1|beach", "b|1|sea"])
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
    #expect(try ben.rows().map { String($0.prefix(1)) } == ["a", "b", "c"])
    try anna.share(all, with: ben)
    try ben.receive()
    #expect(try ben.rows() == ["a|1|beach", "b|2|sea", "c|2|snow"])
    try anna.share(ShareScope(name: "all") { SharedTable("album") }, with: ben)
    try ben.receive()
    #expect(try ben.rows() == ["a|1|beach"])
  }

  @Test func `a row that was here before stays when others withdraw it`() throws {
    try ben.run("INSERT INTO album VALUES (1,'summer'); INSERT INTO photo VALUES ('b',1,'sea')")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try anna.run("UPDATE photo SET album = 2 WHERE album = 1")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.rows() == ["b|1|sea"])
  }

  @Test func `who is told of a withdrawal withdraws the row in turn, and does not delete it`() throws {
    let cara = try Person("cara", in: folder)
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.share(Self.album(1), with: cara)
    try cara.receive()
    try anna.run("UPDATE photo SET album = 2 WHERE id = 'b'")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.share(Self.album(1), with: cara).tables.map { [$0.deleted, $0.withdrawn] } == [[0, 1]])
    try cara.receive()
    #expect(try cara.rows() == ["a|1|beach"])
  }

  @Test func `a withdrawal is not answered`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.share(Self.album(1), with: anna)
    try anna.receive()
    try anna.run("UPDATE photo SET album = 2 WHERE id = 'b'")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.rows() == ["a|1|beach"])
    #expect(try ben.share(Self.album(1), with: anna).id == nil)
    #expect(try anna.rows() == ["a|1|beach", "b|2|sea", "c|2|snow"])
  }

  @Test func `a real deletion goes through all hands`() throws {
    let cara = try Person("cara", in: folder)
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.share(Self.album(1), with: cara)
    try cara.receive()
    try anna.run("DELETE FROM photo WHERE id = 'a'")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.share(Self.album(1), with: cara).tables.map { [$0.deleted, $0.withdrawn] } == [[1, 0]])
    try cara.receive()
    #expect(try cara.rows() == ["b|1|sea"])
  }

  @Test func `what an undo removes here is deleted nowhere else, unless that is asked for`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.share(Self.album(1), with: anna)
    try anna.receive()
    try anna.run("INSERT INTO photo VALUES ('d',1,'rain')")
    let diff = try #require(try anna.share(Self.album(1), with: ben).id).description
    try ben.receive()
    let undo = try DatabaseManager(ben.path).undo([.diff(diff)], home: ben.home)
    #expect(try ben.rows() == ["a|1|beach", "b|1|sea"])
    #expect(
      try ben.share(Self.album(1), with: anna, { ($0.isDryRun, $0.propagates) = (true, true) }).tables
        .map { [$0.deleted, $0.withdrawn] } == [[1, 0]])
    #expect(try ben.share(Self.album(1), with: anna).tables.allSatisfy { $0.deleted == 0 && $0.withdrawn == 0 })
    #expect(try anna.receive().diffs.allSatisfy { $0.deleted == 0 })
    #expect(try anna.rows().contains("d|1|rain"))
    // Nothing goes back and forth.
    #expect(try anna.share(Self.album(1), with: ben).tables.isEmpty)
    #expect(try ben.share(Self.album(1), with: anna).tables.isEmpty)
    // What is there again, and is deleted then, is deleted.
    try DatabaseManager(ben.path).undo([.diff(try #require(undo.undone.first).id.description)], home: ben.home)
    #expect(try ben.rows() == ["a|1|beach", "b|1|sea", "d|1|rain"])
    try ben.share(Self.album(1), with: anna)
    try anna.receive()
    try ben.run("DELETE FROM photo WHERE id = 'd'")
    #expect(try ben.share(Self.album(1), with: anna).tables.map { [$0.deleted, $0.withdrawn] } == [[1, 0]])
    try anna.receive()
    #expect(try anna.rows() == ["a|1|beach", "b|1|sea", "c|2|snow"])
  }

  @Test func `a row that an undo removes and a redo brings back is deleted by whoever deletes it`() throws {
    let cara = try Person("cara", in: folder)
    let diff = try #require(try anna.share(Self.album(1), with: ben).id).description
    try ben.receive()
    try ben.share(Self.album(1), with: cara)
    try cara.receive()
    let undo = try DatabaseManager(ben.path).undo([.diff(diff)], home: ben.home)
    #expect(try ben.rows().isEmpty)
    // Passed on as what it is: not shared any more.
    let report = try ben.share(Self.album(1), with: cara, { $0.isDryRun = true })
    #expect(report.tables.map { [$0.deleted, $0.withdrawn] } == [[0, 1], [0, 2]])
    let asked = try ben.share(Self.album(1), with: cara, { ($0.isDryRun, $0.propagates) = (true, true) })
    #expect(asked.tables.map { [$0.deleted, $0.withdrawn] } == [[1, 0], [2, 0]])
    try DatabaseManager(ben.path).undo([.diff(try #require(undo.undone.first).id.description)], home: ben.home)
    try ben.run("DELETE FROM photo WHERE id = 'a'")
    #expect(try ben.share(Self.album(1), with: cara).tables.map { [$0.deleted, $0.withdrawn] } == [[1, 0]])
    try cara.receive()
    #expect(try cara.rows() == ["b|1|sea"])
  }

  @Test func `a withdrawal is passed on as a deletion where that is asked for`() throws {
    let cara = try Person("cara", in: folder)
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
    // Cara had it herself: as a withdrawal it would have stayed.
    #expect(try cara.rows() == ["a|1|beach", "c|2|snow"])
  }

  @Test func `who has lost a file gets everything anew, keeps their own edits and has no conflicts`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.run("UPDATE photo SET title = 'of ben' WHERE id = 'a'")
    try anna.run("DELETE FROM photo WHERE id = 'b'; INSERT INTO photo VALUES ('d',1,'lost'),('e',1,'too')")
    let lost = try #require(try anna.share(Self.album(1), with: ben).path)
    try FileManager.default.removeItem(atPath: lost)
    try anna.run("UPDATE photo SET title = 'found' WHERE id = 'e'; UPDATE album SET name = 'warm' WHERE id = 1")
    try anna.share(Self.album(1), with: ben)
    let waiting = try DatabaseManager(ben.path).processInboundChanges([folder.file("for ben")], home: ben.home)
    #expect(waiting.diffs.map(\.state) == [.waiting])
    #expect(try anna.share(Self.album(1), with: ben) { $0.resyncs = true }.isSnapshot)
    let report = try DatabaseManager(ben.path).processInboundChanges([folder.file("for ben")], home: ben.home)
    #expect(report.diffs.map(\.conflicts).allSatisfy { $0 == 0 })
    #expect(try ben.rows() == ["a|1|of ben", "d|1|lost", "e|1|found"])
    #expect(try ben.rows("SELECT * FROM album") == ["1|warm"])
    try anna.run("UPDATE photo SET title = 'again' WHERE id = 'd'")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.rows()[1] == "d|1|again")
  }

  @Test func `a snapshot brings back what somebody has lost, and leaves what they have of others`() throws {
    try ben.run("INSERT INTO photo VALUES ('x',NULL,'own')")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.run("DELETE FROM photo WHERE id = 'a'")
    try anna.share(Self.album(1), with: ben) { $0.resyncs = true }
    try ben.receive()
    #expect(try ben.rows() == ["a|1|beach", "b|1|sea", "x|NULL|own"])
    try anna.run("UPDATE photo SET album = 2; DELETE FROM album WHERE id = 1")
    try anna.share(Self.album(1), with: ben) { $0.resyncs = true }
    try ben.receive()
    #expect(try ben.rows() == ["x|NULL|own"])
    #expect(try ben.rows("SELECT * FROM album") == [])
  }

  @Test func `who begins anew with an empty database gets their own rows back, too`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.run("INSERT INTO photo VALUES ('d',1,'of ben'); UPDATE photo SET title = 'the beach' WHERE id = 'a'")
    try ben.share(Self.album(1), with: anna)
    try anna.receive()
    try FileManager.default.removeItem(atPath: ben.path)
    let again = try Person("ben", in: folder)
    #expect(try anna.share(Self.album(1), with: again) { $0.resyncs = true }.isSnapshot)
    try again.receive()
    #expect(try again.rows() == ["a|1|the beach", "b|1|sea", "d|1|of ben"])
    try again.share(Self.album(1), with: anna)
    #expect(try anna.receive().diffs.map(\.conflicts) == [0])
    #expect(try anna.rows() == ["a|1|the beach", "b|1|sea", "c|2|snow", "d|1|of ben"])
  }

  // MARK: What was not taken

  /// Both have shared album 1 with each other, and know that the other has it.
  private func shareBothWays() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.share(Self.album(1), with: anna)
    try anna.receive()
  }

  @Test func `what is held is not reverted at its author, neither before the upgrade nor after it`() throws {
    try shareBothWays()
    try ben.run("ALTER TABLE photo ADD COLUMN stars INTEGER; INSERT INTO photo VALUES ('d',1,'new',4)")
    try ben.run("UPDATE photo SET title = 'of ben', stars = 5 WHERE id = 'a'")
    try ben.share(Self.album(1), with: anna)
    func hold() throws -> [DiffOutcome] {
      try DatabaseManager(anna.path).processInboundChanges(
        [folder.file("for anna")], options: ApplyOptions(schema: .hold), home: anna.home
      ).diffs
    }
    #expect(try hold().map(\.state) == [.held])
    #expect(try anna.rows() == ["a|1|of ben", "b|1|sea", "c|2|snow", "d|1|new"])
    try anna.run("UPDATE photo SET title = 'by anna' WHERE id = 'b'")
    let report = try anna.share(Self.album(1), with: ben)
    #expect(report.tables.map { [$0.inserted, $0.updated, $0.deleted] } == [[0, 1, 0]])
    try ben.receive()
    let bens = ["a|1|of ben|5", "b|1|by anna|NULL", "d|1|new|4"]
    #expect(try ben.rows() == bens)
    // There is a place for them now, and nothing in it yet.
    try anna.run("ALTER TABLE photo ADD COLUMN stars INTEGER")
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.rows() == bens)
    _ = try hold()
    #expect(try anna.rows() == ["a|1|of ben|5", "b|1|by anna|NULL", "c|2|snow|NULL", "d|1|new|4"])
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    #expect(try ben.rows() == bens)
  }

  @Test func `what is refused is not reverted at its author`() throws {
    try shareBothWays()
    try anna.run("UPDATE photo SET title = 'of anna' WHERE id = 'a'")
    try ben.run("UPDATE photo SET title = 'of ben'; INSERT INTO photo VALUES ('d',1,'new')")
    try ben.share(Self.album(1), with: anna)
    let refused = try DatabaseManager(anna.path).processInboundChanges(
      [folder.file("for anna")], options: ApplyOptions(conflicts: .abort), home: anna.home)
    #expect(refused.diffs.map(\.state) == [.rejected])
    let report = try anna.share(Self.album(1), with: ben)
    #expect(report.tables.map { [$0.inserted, $0.updated, $0.deleted] } == [[0, 1, 0]])
    try ben.receive()
    #expect(try ben.rows() == ["a|1|of ben", "b|1|of ben", "d|1|new"])
  }

  @Test func `a row for which there was no room is not deleted at its author`() throws {
    let schema = "CREATE TABLE tag(id TEXT PRIMARY KEY, name TEXT UNIQUE); "
    let dora = try Person("dora", in: folder, schema + "INSERT INTO tag VALUES ('a','one')")
    let emil = try Person("emil", in: folder, schema)
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

  @Test func `what somebody changes before they share back for the first time is no conflict`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.run("UPDATE photo SET title = 'by ben' WHERE id = 'a'; INSERT INTO photo VALUES ('d',1,'new')")
    try anna.run("UPDATE album SET name = 'by anna' WHERE id = 1; DELETE FROM photo WHERE id = 'b'")
    try ben.share(Self.album(1), with: anna)
    #expect(try anna.receive().diffs.map(\.conflicts) == [0])
    // What she has deleted does not come back, and her own edit stays.
    #expect(try anna.rows() == ["a|1|by ben", "c|2|snow", "d|1|new"])
    #expect(try anna.rows("SELECT name FROM album WHERE id = 1") == ["by anna"])
    try anna.share(Self.album(1), with: ben)
    #expect(try ben.receive().diffs.map(\.conflicts) == [0])
    #expect(try ben.rows() == ["a|1|by ben", "d|1|new"])
    #expect(try ben.rows("SELECT name FROM album") == ["by anna"])
  }

  @Test func `a row that both have changed before is a conflict of the column that both have changed`() throws {
    try anna.share(Self.album(1), with: ben)
    try ben.receive()
    try ben.run("UPDATE photo SET title = 'by ben'")
    try anna.run("UPDATE photo SET title = 'by anna' WHERE id = 'a'")
    try ben.share(Self.album(1), with: anna)
    #expect(try anna.receive().diffs.map(\.conflicts) == [1])
    #expect(try anna.rows() == ["a|1|by anna", "b|1|by ben", "c|2|snow"])
  }
}
