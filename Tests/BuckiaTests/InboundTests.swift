import Buckia
import BuckiaFormat
import SQLiteSchemas
import BuckiaBytes
import Foundation
import SQLiteConnections
import Testing
import TestSupport

private let notes = """
  CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT, stars INTEGER);
  INSERT INTO notes VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)
  """

@Suite struct InboundTests {
  @Test("A folder is applied in the order of the ids, and emptied")
  func folderInOrder() throws {
    let exchange = try Exchange(notes)
    try exchange.send("INSERT INTO notes VALUES (4, 'four', 4)")
    try exchange.send("UPDATE notes SET stars = 10 WHERE id = 1; DELETE FROM notes WHERE id = 2")
    try exchange.folder.write(Array("not ours".utf8), to: "inbound/readme.txt")
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.applied, .applied])
    #expect(report.diffs.compactMap(\.id) == report.diffs.compactMap(\.id).sorted())
    #expect(report.ignored == 1)
    #expect(report.createdLedger)
    #expect(try exchange.rows("SELECT id, stars FROM notes ORDER BY id") == ["1|10", "3|3", "4|4"])
    #expect(try exchange.folder.names(in: "inbound") == ["readme.txt"])
    let log = try exchange.database.log()
    #expect(log.map(\.state) == [.applied, .applied])
    #expect(log.map(\.inserted) == [1, 0])
    #expect(log.map(\.deleted) == [0, 1])
    #expect(log.allSatisfy { $0.sender == "unsigned" })
  }

  @Test("The same file is applied once, whatever its name, and kept files stay")
  func once() throws {
    let exchange = try Exchange(notes)
    let sent = try exchange.send("INSERT INTO notes VALUES (4, 'four', 4)")
    let path = try #require(sent.path)
    let copy = try exchange.folder.copy(path, to: "again.bdiff")
    #expect(try exchange.apply(ApplyOptions(keepsFiles: true)).diffs.map(\.state) == [.applied])
    #expect(try exchange.apply(ApplyOptions(keepsFiles: true)).diffs.map(\.state) == [.alreadyApplied])
    try TestDatabases.run("DELETE FROM notes WHERE id = 4", on: exchange.mine)
    #expect(try exchange.database.processInboundChanges([copy]).diffs.map(\.state) == [.alreadyApplied])
    #expect(try exchange.rows("SELECT id FROM notes ORDER BY id") == ["1", "2", "3"])
    #expect(FileManager.default.fileExists(atPath: copy), "a file named by itself stays")
    #expect(try exchange.apply().diffs.map(\.state) == [.alreadyApplied])
    #expect(try exchange.folder.names(in: "inbound").isEmpty)
    _ = try exchange.database.processInboundChanges([copy], options: ApplyOptions(removesNamedFiles: true))
    #expect(!FileManager.default.fileExists(atPath: copy))
  }

  @Test("A file that arrives late with a smaller id is still applied")
  func late() throws {
    let exchange = try Exchange(notes)
    let early = try exchange.send("INSERT INTO notes VALUES (4, 'early', 4)", to: .folder(exchange.folder.path))
    try exchange.send("INSERT INTO notes VALUES (5, 'later', 5)")
    #expect(try exchange.apply().diffs.map(\.state) == [.applied])
    let path = try #require(early.path)
    try FileManager.default.moveItem(
      atPath: path, toPath: "\(exchange.inbound)/\(URL(fileURLWithPath: path).lastPathComponent)")
    #expect(try exchange.apply().diffs.map(\.state) == [.applied])
    #expect(try exchange.rows("SELECT text FROM notes WHERE id > 3 ORDER BY id").count == 2)
  }

  @Test("A damaged file changes nothing, is recorded with its reason and does not stop the others")
  func damaged() throws {
    let exchange = try Exchange(notes)
    try exchange.send("INSERT INTO notes VALUES (4, 'four', 4)")
    let broken = try exchange.send("INSERT INTO notes VALUES (5, 'five', 5)")
    try exchange.send("INSERT INTO notes VALUES (6, 'six', 6)")
    let path = try #require(broken.path)
    var bytes = try fileBytes(path)
    bytes[bytes.count / 2] ^= 0x40
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    for _ in 0..<2 {
      let report = try exchange.apply()
      #expect(report.rejected.count == 1)
      #expect(report.rejected.first?.reason?.contains(path) == true)
    }
    #expect(try exchange.rows("SELECT id FROM notes WHERE id > 3 ORDER BY id") == ["4", "6"])
    #expect(try exchange.folder.names(in: "inbound").count == 1, "the refused file stays")
    let refused = try exchange.database.log().filter { $0.state == .rejected }
    #expect(refused.count == 1)
    #expect(refused.first?.reason?.isEmpty == false)
    bytes[bytes.count / 2] ^= 0x40
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    #expect(try exchange.apply().diffs.map(\.state) == [.applied])
    #expect(try exchange.rows("SELECT id FROM notes WHERE id > 3 ORDER BY id") == ["4", "5", "6"])
  }

  @Test("A raw changeset is applied once, whatever its name")
  func raw() throws {
    let exchange = try Exchange(notes)
    try exchange.send(
      "UPDATE notes SET text = 'raw' WHERE id = 3", raw: true, to: .file(exchange.folder.file("x"), replacing: false))
    let first = try exchange.database.processInboundChanges([exchange.folder.file("x")])
    #expect(first.diffs.map(\.state) == [.applied])
    #expect(first.diffs.first?.id == nil)
    let copy = try exchange.folder.copy("x", to: "inbound/\(DiffFileName.changeset(Exchange.id(at: 1_600_000_000)))")
    #expect(try exchange.apply().diffs.map(\.state) == [.alreadyApplied])
    #expect(!FileManager.default.fileExists(atPath: copy))
    #expect(try exchange.rows("SELECT text FROM notes WHERE id = 3") == ["'114.97.119'"])
  }

  @Test("Of two files with one id, the second is refused")
  func equivocation() throws {
    let exchange = try Exchange(notes)
    let id = Exchange.id(at: 1_700_000_000)
    let table = try #require(try definitions(of: exchange.base).first)
    try exchange.plant(insertion(into: "notes", keyFlags: [1, 0, 0], values: [7, 7, 7]), definitions: [table], id: id)
    #expect(try exchange.apply().diffs.map(\.state) == [.applied])
    try exchange.plant(insertion(into: "notes", keyFlags: [1, 0, 0], values: [8, 8, 8]), definitions: [table], id: id)
    let report = try exchange.apply()
    #expect(report.diffs.map(\.state) == [.rejected])
    #expect(report.diffs.first?.code == .equivocation)
    #expect(try exchange.rows("SELECT id FROM notes WHERE id > 3") == ["7"])
  }

  @Test("A file with an id far in the future waits, and one with an id slightly ahead is applied")
  func future() throws {
    let exchange = try Exchange(notes)
    let table = try #require(try definitions(of: exchange.base).first)
    let now = Int64(Date().timeIntervalSince1970)
    let path = try exchange.plant(
      insertion(into: "notes", keyFlags: [1, 0, 0], values: [7, 7, 7]), definitions: [table],
      id: Exchange.id(at: now + 100_000))
    let before = try exchange.everythingButOurs()
    for _ in 0..<2 {
      let report = try exchange.apply()
      #expect(report.diffs.map(\.state) == [.waiting])
      #expect(report.diffs.first?.reason?.contains("ahead of this clock") == true)
    }
    #expect(try exchange.everythingButOurs() == before)
    #expect(FileManager.default.fileExists(atPath: path))
    #expect(try exchange.database.log().map(\.state) == [.waiting])
    try exchange.plant(
      insertion(into: "notes", keyFlags: [1, 0, 0], values: [9, 9, 9]), definitions: [table],
      id: Exchange.id(at: now + 200)
    )
    #expect(try exchange.apply().diffs.map(\.state) == [.applied, .waiting])
  }

  @Test("Under trust \"known\" the file of an unknown sender is quarantined, and the trust mode is kept")
  func trust() throws {
    let exchange = try Exchange(notes)
    #expect(try exchange.database.initialize(trust: .known).trust == .known)
    try exchange.send("INSERT INTO notes VALUES (4, 'four', 4)")
    let report = try exchange.apply()
    #expect(report.trust == .known)
    #expect(report.diffs.map(\.state) == [.quarantined])
    #expect(try exchange.rows("SELECT count(*) FROM notes") == ["3"])
    #expect(try exchange.apply().trust == .known)
    #expect(try exchange.apply(ApplyOptions(trust: .any)).diffs.map(\.state) == [.applied])
    #expect(try exchange.database.log().map(\.state) == [.applied], "the refusal is forgotten")
  }

  @Test("A dry run says what would happen and changes nothing")
  func dryRun() throws {
    let exchange = try Exchange(notes)
    try exchange.send("INSERT INTO notes VALUES (4, 'four', 4); CREATE TABLE tags(t TEXT PRIMARY KEY)")
    let before = try fileBytes(exchange.mine)
    let report = try exchange.apply(ApplyOptions(isDryRun: true))
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(report.diffs.first?.inserted == 1)
    #expect(report.diffs.first?.schemaChanges == ["create table tags (1 column)"])
    #expect(try fileBytes(exchange.mine) == before)
    #expect(try exchange.folder.names(in: "inbound").count == 1)
  }

  @Test("A path that does not exist is an error before anything is applied")
  func missingPath() throws {
    let exchange = try Exchange(notes)
    try exchange.send("INSERT INTO notes VALUES (4, 'four', 4)")
    let error = #expect(throws: BuckiaError.self) {
      try exchange.database.processInboundChanges([exchange.inbound, "/no/such/path"])
    }
    #expect(error?.code == .noSuchFile)
    #expect(error?.context.path == "/no/such/path")
    #expect(try exchange.rows("SELECT count(*) FROM notes") == ["3"])
    #expect(throws: BuckiaError.self) {
      try DatabaseManager("/no/such/database").processInboundChanges([exchange.inbound])
    }
  }

  @Test("An inbound folder may be missing if its parent folder exists")
  func missingFolder() throws {
    let exchange = try Exchange(notes)
    let missing = exchange.folder.file("not-yet")
    #expect(try exchange.database.processInboundChanges([missing]).diffs.isEmpty)
    let error = #expect(throws: BuckiaError.self) {
      try exchange.database.processInboundChanges([missing + ".bdiff"])
    }
    #expect(error?.code == .noSuchFile)
  }

  @Test("Progress moves within a file")
  func progressOfOneFile() throws {
    let exchange = try Exchange(notes)
    try exchange.send(
      """
      WITH RECURSIVE n (i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
      INSERT INTO notes SELECT i, 'note ' || i, i FROM n
      """)
    var steps: [ApplyProgress] = []
    try exchange.database.processInboundChanges([exchange.inbound], progress: { steps.append($0) })
    let within = steps.filter { $0.bytes > 0 && $0.bytes < $0.byteCount }
    #expect(within.count >= 3)
    #expect(zip(steps, steps.dropFirst()).allSatisfy { $0.bytes <= $1.bytes })
  }

  @Test("Progress moves within a file of a few large rows")
  func progressOfLargeRows() throws {
    let exchange = try Exchange("CREATE TABLE photos(id INTEGER PRIMARY KEY, data BLOB)")
    try exchange.send(
      """
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 24)
      INSERT INTO photos SELECT i, randomblob(1000000) FROM n
      """)
    var steps: [ApplyProgress] = []
    try exchange.database.processInboundChanges([exchange.inbound], progress: { steps.append($0) })
    #expect(steps.filter { $0.bytes > 0 && $0.bytes < $0.byteCount }.count >= 3)
  }

  @Test("Ids of one home increase strictly, and exceed every id that was applied")
  func clock() throws {
    let exchange = try Exchange(notes)
    let home = BuckiaHome(path: exchange.folder.file("other/home"))
    let first = try home.newIDs(50, after: [], unixSeconds: 1_800_000_000)
    #expect(first.warning == nil)
    #expect(first.ids == first.ids.sorted())
    #expect(Set(first.ids).count == 50)
    let ahead = Exchange.id(at: 1_800_000_200)
    let second = try home.newIDs(2, after: [ahead], unixSeconds: 1_799_999_000)
    #expect(try #require(second.ids.first) > ahead)
    let third = try home.newIDs(1, after: [], unixSeconds: 1_799_999_000)
    #expect(try #require(third.ids.first) > second.ids[1])
  }
}

/// The definitions of a database's tables.
func definitions(of path: String) throws -> [TableDefinition] {
  let connection = try SQLiteConnection(opening: path, as: .readOnly)
  let schema = try SchemaReader(connection)
  var found: [TableDefinition] = []
  for entry in schema.entries where entry.kind == .table {
    found.append(try schema.definition(of: entry))
  }
  return found
}
