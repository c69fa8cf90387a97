import Buckia
import BuckiaDiffFiles
import BuckiaSchemaPlans
import BuckiaKSUID
import Foundation
import SQLiteConnections
import SQLiteSchemas
import Testing
import TestSupport

private let notes = """
  CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT, stars INTEGER);
  INSERT INTO notes VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)
  """

@Suite struct InboundTests {
  @Test("A folder is applied in the order of the ids, and emptied")
  func folderInOrder() throws {
    let post = try Post(notes)
    try post.send("INSERT INTO notes VALUES (4, 'four', 4)")
    try post.send("UPDATE notes SET stars = 10 WHERE id = 1; DELETE FROM notes WHERE id = 2")
    try post.folder.write(Array("not ours".utf8), to: "inbound/readme.txt")
    let report = try post.apply()
    #expect(report.diffs.map(\.state) == [.applied, .applied])
    #expect(report.diffs.compactMap(\.id) == report.diffs.compactMap(\.id).sorted())
    #expect(report.ignored == 1)
    #expect(report.createdLedger)
    #expect(try post.rows("SELECT id, stars FROM notes ORDER BY id") == ["1|10", "3|3", "4|4"])
    #expect(try post.folder.names(in: "inbound") == ["readme.txt"])
    let log = try post.database.log()
    #expect(log.map(\.state) == [.applied, .applied])
    #expect(log.map(\.inserted) == [1, 0])
    #expect(log.map(\.deleted) == [0, 1])
    #expect(log.allSatisfy { $0.sender == "unsigned" })
  }

  @Test("The same file is applied once, whatever its name, and kept files stay")
  func once() throws {
    let post = try Post(notes)
    let sent = try post.send("INSERT INTO notes VALUES (4, 'four', 4)")
    let path = try #require(sent.path)
    let copy = try post.folder.copy(path, to: "again.bdiff")
    #expect(try post.apply(ApplyOptions(keepsFiles: true)).diffs.map(\.state) == [.applied])
    #expect(try post.apply(ApplyOptions(keepsFiles: true)).diffs.map(\.state) == [.alreadyApplied])
    try TestDatabases.run("DELETE FROM notes WHERE id = 4", on: post.mine)
    #expect(try post.database.processInboundChanges([copy]).diffs.map(\.state) == [.alreadyApplied])
    #expect(try post.rows("SELECT id FROM notes ORDER BY id") == ["1", "2", "3"])
    #expect(FileManager.default.fileExists(atPath: copy), "a file named by itself stays")
    #expect(try post.apply().diffs.map(\.state) == [.alreadyApplied])
    #expect(try post.folder.names(in: "inbound").isEmpty)
    _ = try post.database.processInboundChanges([copy], options: ApplyOptions(removesNamedFiles: true))
    #expect(!FileManager.default.fileExists(atPath: copy))
  }

  @Test("A file that comes late with a smaller id still applies")
  func late() throws {
    let post = try Post(notes)
    let early = try post.send("INSERT INTO notes VALUES (4, 'early', 4)", to: .folder(post.folder.path))
    try post.send("INSERT INTO notes VALUES (5, 'later', 5)")
    #expect(try post.apply().diffs.map(\.state) == [.applied])
    let path = try #require(early.path)
    try FileManager.default.moveItem(
      atPath: path, toPath: "\(post.inbound)/\(URL(fileURLWithPath: path).lastPathComponent)")
    #expect(try post.apply().diffs.map(\.state) == [.applied])
    #expect(try post.rows("SELECT text FROM notes WHERE id > 3 ORDER BY id").count == 2)
  }

  @Test("A damaged file changes nothing, is recorded with its reason and does not stop the others")
  func damaged() throws {
    let post = try Post(notes)
    try post.send("INSERT INTO notes VALUES (4, 'four', 4)")
    let broken = try post.send("INSERT INTO notes VALUES (5, 'five', 5)")
    try post.send("INSERT INTO notes VALUES (6, 'six', 6)")
    let path = try #require(broken.path)
    var bytes = try fileBytes(path)
    bytes[bytes.count / 2] ^= 0x40
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    for _ in 0..<2 {
      let report = try post.apply()
      #expect(report.rejected.count == 1)
      #expect(report.rejected.first?.reason?.contains(path) == true)
    }
    #expect(try post.rows("SELECT id FROM notes WHERE id > 3 ORDER BY id") == ["4", "6"])
    #expect(try post.folder.names(in: "inbound").count == 1, "the refused file stays")
    let refused = try post.database.log().filter { $0.state == .rejected }
    #expect(refused.count == 1)
    #expect(refused.first?.reason?.isEmpty == false)
    bytes[bytes.count / 2] ^= 0x40
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    #expect(try post.apply().diffs.map(\.state) == [.applied])
    #expect(try post.rows("SELECT id FROM notes WHERE id > 3 ORDER BY id") == ["4", "5", "6"])
  }

  @Test("A raw changeset is idempotent by its content, whatever its name")
  func raw() throws {
    let post = try Post(notes)
    try post.send(
      "UPDATE notes SET text = 'raw' WHERE id = 3", raw: true, to: .file(post.folder.file("x"), replacing: false))
    let first = try post.database.processInboundChanges([post.folder.file("x")])
    #expect(first.diffs.map(\.state) == [.applied])
    #expect(first.diffs.first?.id == nil)
    let copy = try post.folder.copy("x", to: "inbound/\(DiffFileName.changeset(Post.id(at: 1_600_000_000)))")
    #expect(try post.apply().diffs.map(\.state) == [.alreadyApplied])
    #expect(!FileManager.default.fileExists(atPath: copy))
    #expect(try post.rows("SELECT text FROM notes WHERE id = 3") == ["'114.97.119'"])
  }

  @Test("Two files with one id: the second is refused and flagged")
  func equivocation() throws {
    let post = try Post(notes)
    let id = Post.id(at: 1_700_000_000)
    let table = try #require(try definitions(of: post.base).first)
    try post.plant(insertion(into: "notes", keyFlags: [1, 0, 0], values: [7, 7, 7]), definitions: [table], id: id)
    #expect(try post.apply().diffs.map(\.state) == [.applied])
    try post.plant(insertion(into: "notes", keyFlags: [1, 0, 0], values: [8, 8, 8]), definitions: [table], id: id)
    let report = try post.apply()
    #expect(report.diffs.map(\.state) == [.rejected])
    #expect(report.diffs.first?.code == .equivocation)
    #expect(try post.rows("SELECT id FROM notes WHERE id > 3") == ["7"])
  }

  @Test("An id from the future waits, and applies when its time has come")
  func future() throws {
    let post = try Post(notes)
    let table = try #require(try definitions(of: post.base).first)
    let now = Int64(Date().timeIntervalSince1970)
    let path = try post.plant(
      insertion(into: "notes", keyFlags: [1, 0, 0], values: [7, 7, 7]), definitions: [table],
      id: Post.id(at: now + 100_000))
    let before = try post.everythingButOurs()
    for _ in 0..<2 {
      let report = try post.apply()
      #expect(report.diffs.map(\.state) == [.waiting])
      #expect(report.diffs.first?.reason?.contains("future") == true)
    }
    #expect(try post.everythingButOurs() == before)
    #expect(FileManager.default.fileExists(atPath: path))
    #expect(try post.database.log().map(\.state) == [.waiting])
    try post.plant(
      insertion(into: "notes", keyFlags: [1, 0, 0], values: [9, 9, 9]), definitions: [table], id: Post.id(at: now + 200)
    )
    #expect(try post.apply().diffs.map(\.state) == [.applied, .waiting])
  }

  @Test("Under trust \"known\" a stranger's file is set aside, and the mode stays")
  func trust() throws {
    let post = try Post(notes)
    #expect(try post.database.initialize(trust: .known).trust == .known)
    try post.send("INSERT INTO notes VALUES (4, 'four', 4)")
    let report = try post.apply()
    #expect(report.trust == .known)
    #expect(report.diffs.map(\.state) == [.quarantined])
    #expect(try post.rows("SELECT count(*) FROM notes") == ["3"])
    #expect(try post.apply().trust == .known)
    #expect(try post.apply(ApplyOptions(trust: .any)).diffs.map(\.state) == [.applied])
    #expect(try post.database.log().map(\.state) == [.applied], "the refusal is forgotten")
  }

  @Test("A dry run says what would happen and changes nothing")
  func dryRun() throws {
    let post = try Post(notes)
    try post.send("INSERT INTO notes VALUES (4, 'four', 4); CREATE TABLE tags(t TEXT PRIMARY KEY)")
    let before = try fileBytes(post.mine)
    let report = try post.apply(ApplyOptions(isDryRun: true))
    #expect(report.diffs.map(\.state) == [.applied])
    #expect(report.diffs.first?.inserted == 1)
    #expect(report.diffs.first?.schemaChanges == ["create table tags (1 columns)"])
    #expect(try fileBytes(post.mine) == before)
    #expect(try post.folder.names(in: "inbound").count == 1)
  }

  @Test("A path that does not exist is an error before anything is applied")
  func missingPath() throws {
    let post = try Post(notes)
    try post.send("INSERT INTO notes VALUES (4, 'four', 4)")
    let error = #expect(throws: BuckiaError.self) {
      try post.database.processInboundChanges([post.inbound, "/no/such/path"])
    }
    #expect(error?.code == .noSuchFile)
    #expect(error?.context.path == "/no/such/path")
    #expect(try post.rows("SELECT count(*) FROM notes") == ["3"])
    #expect(throws: BuckiaError.self) { try DatabaseManager("/no/such/database").processInboundChanges([post.inbound]) }
  }

  @Test("Ids of one home increase strictly, and exceed every id that was applied")
  func clock() throws {
    let post = try Post(notes)
    let home = BuckiaHome(path: post.folder.file("other/home"))
    let first = try home.newIDs(50, after: [], unixSeconds: 1_800_000_000)
    #expect(first.remark == nil)
    #expect(first.ids == first.ids.sorted())
    #expect(Set(first.ids).count == 50)
    let ahead = Post.id(at: 1_800_000_200)
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
