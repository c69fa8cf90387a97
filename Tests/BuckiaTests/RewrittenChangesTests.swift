import BuckiaFormat
import SQLiteChangesets
import Testing
import TestSupport

@testable import Buckia

@Suite("Inverting, joining and sorting files")
struct RewrittenChangesTests {
  private struct Stop: Error {}

  private let exchange: Exchange
  private var home: BuckiaHome { BuckiaHome(path: exchange.folder.file("home")) }

  init() throws {
    exchange = try Exchange(
      "CREATE TABLE notes(id INTEGER PRIMARY KEY, text); INSERT INTO notes VALUES(1, 'a'), (2, 'b'), (3, 'c')")
  }

  private func send(_ edits: String, as name: String, raw: Bool = false) throws -> String {
    try #require(try exchange.send(edits, raw: raw, to: .file(exchange.folder.file(name), replacing: false)).path)
  }

  private func code(of body: () throws -> Void) -> BuckiaErrorCode? {
    do { try body() } catch { return (error as? BuckiaError)?.code }
    return nil
  }

  @Test("Joined diff files make a diff file that can be applied")
  func join() throws {
    let first = try send("UPDATE notes SET text = 'A' WHERE id = 1; INSERT INTO notes VALUES(4, 'd')", as: "1.bdiff")
    let second = try send("DELETE FROM notes WHERE id = 1; DELETE FROM notes WHERE id = 2", as: "2.bdiff")
    let changes = try RewrittenChanges(concatenating: [first, second])
    #expect(changes.tables.map { [$0.inserted, $0.updated, $0.deleted] } == [[1, 0, 2]])
    let report = try changes.write(to: .folder(exchange.inbound), home: home)
    let path = try #require(report.path)
    let id = try #require(report.id)
    #expect(path == "\(exchange.inbound)/\(DiffFileName.diff(id))")
    #expect(try DiffInspection.verify([path]).files.map(\.isGood) == [true])
    #expect(try exchange.apply().diffs.map(\.state) == [.applied])
    #expect(try TestDatabases.rows("SELECT id FROM notes", on: exchange.mine) == ["3", "4"])
  }

  @Test("Changes joined with their inverse give no changes and no file")
  func undo() throws {
    let edits = try send("UPDATE notes SET text = 'A' WHERE id = 1; DELETE FROM notes WHERE id = 2", as: "1.bdiff")
    let undo = exchange.folder.file("undo.bdiff")
    #expect(try RewrittenChanges(inverting: edits).write(to: .file(undo, replacing: false), home: home).path == undo)
    let rest = try RewrittenChanges(concatenating: [edits, undo])
    #expect(rest.tables.isEmpty)
    let report = try rest.write(to: .folder(exchange.folder.file("none")), home: home)
    #expect(report.path == nil)
    #expect(report.id == nil)
    #expect(report.bytes == 0)
  }

  @Test("The inverse restores keys that became others which compare equal, with a warning")
  func equalKeys() throws {
    let exchange = try Exchange(
      """
      CREATE TABLE words(w TEXT PRIMARY KEY COLLATE NOCASE, n); CREATE TABLE loose(k PRIMARY KEY, n);
      CREATE TABLE bare(k PRIMARY KEY, n) WITHOUT ROWID;
      INSERT INTO words VALUES ('apple', 1), ('Pear', 2), ('fig', 3); INSERT INTO loose VALUES (2.0, 1), (0, 2), (0.5, 3);
      INSERT INTO bare SELECT * FROM loose
      """)
    let edits = """
      UPDATE words SET w = 'Apple', n = 7 WHERE n = 1; UPDATE words SET w = 'pear' WHERE n = 2; DELETE FROM words WHERE n = 3;
      UPDATE loose SET k = 2 WHERE n = 1; UPDATE loose SET k = -0.0 WHERE n = 2; INSERT INTO loose VALUES (9, 9);
      UPDATE bare SET k = 2 WHERE n = 1; UPDATE bare SET k = 0.0 WHERE n = 2
      """
    for raw in [true, false] {
      let path = exchange.folder.file(raw ? "1.changeset" : "1.bdiff")
      try exchange.send(edits, raw: raw, to: .file(path, replacing: false))
      let undo = exchange.folder.file(raw ? "undo.changeset" : "undo.bdiff")
      let report = try RewrittenChanges(inverting: path).write(to: .file(undo, replacing: false), home: home)
      #expect(report.warnings == [Warning(.inverseOfChanges)])
      let before = try exchange.everythingButOurs()
      let options = ApplyOptions(conflicts: .abort)
      for file in [path, undo] {
        #expect(try exchange.database.processInboundChanges([file], options: options).diffs.map(\.state) == [.applied])
      }
      #expect(try exchange.everythingButOurs() == before)
    }
  }

  @Test("The inverse of joined files runs backwards, and that of a diff has deletions first")
  func order() throws {
    let first = try send("INSERT INTO notes VALUES (4, 'd'); DELETE FROM notes WHERE id = 3", as: "1.bdiff")
    let second = try send("DELETE FROM notes WHERE id = 1", as: "2.bdiff")
    let both = exchange.folder.file("both.bdiff")
    _ = try RewrittenChanges(concatenating: [first, second]).write(to: .file(both, replacing: false), home: home)
    func inverse(of path: String) throws -> [String] {
      let undo = exchange.folder.file("undo.bdiff")
      _ = try RewrittenChanges(inverting: path).write(to: .file(undo, replacing: true), home: home)
      var changes: [String] = []
      try DiffInspection.open(undo).forEachChange { change in
        changes.append("\(change.operation) \(change.key.map { $0.value.map { "\($0)" } ?? "" })")
      }
      return changes
    }
    #expect(try inverse(of: both) == ["insert [\"1\"]", "delete [\"4\"]", "insert [\"3\"]"])
    #expect(try inverse(of: first) == ["delete [\"4\"]", "insert [\"3\"]"])
  }

  @Test("Sorting keeps the author's schema; inverting and joining leave it out with a warning")
  func authorSchema() throws {
    let path = try send("CREATE INDEX by_text ON notes(text); DELETE FROM notes WHERE id = 1", as: "1.bdiff")
    #expect(try DiffInspection.open(path).statements?.contains { $0.name == "by_text" } == true)
    let sorted = try RewrittenChanges(sorting: path)
    #expect(sorted.warnings == [])
    let copy = exchange.folder.file("sorted.bdiff")
    _ = try sorted.write(to: .file(copy, replacing: false), home: home)
    #expect(try DiffInspection.open(copy).author == DiffInspection.open(path).author)
    #expect(
      try RewrittenChanges(inverting: path).warnings == [Warning(.inverseOfChanges), Warning(.schemaLeftOut, path)])
    let joined = try RewrittenChanges(concatenating: [path])
    #expect(joined.warnings == [Warning(.schemaLeftOut, path)])
    _ = try joined.write(to: .file(copy, replacing: true), home: home)
    #expect(try DiffInspection.open(copy).statements == nil)
  }

  @Test("The inverse does not restore a local row that take-incoming has replaced, and has a warning")
  func afterReplacing() throws {
    try TestDatabases.run("UPDATE notes SET text = 'mine' WHERE id = 1", on: exchange.mine)
    let path = try send("UPDATE notes SET text = 'theirs' WHERE id = 1", as: "1.bdiff")
    let undo = exchange.folder.file("undo.bdiff")
    let changes = try RewrittenChanges(inverting: path)
    #expect(changes.warnings.map(\.code) == [.inverseOfChanges])
    _ = try changes.write(to: .file(undo, replacing: false), home: home)
    let options = ApplyOptions(conflicts: .takeIncoming)
    _ = try exchange.database.processInboundChanges([path, undo], options: options)
    #expect(try exchange.rows("SELECT text = 'a' FROM notes WHERE id = 1") == ["1"])
  }

  @Test("Changes that cannot make a diff file are an error, and can be written as a raw changeset")
  func refusals() throws {
    let raw = try send("DELETE FROM notes", as: "1.changeset", raw: true)
    let diff = try send("DELETE FROM notes WHERE id = 3", as: "2.bdiff")
    let target = DiffOutput.file(exchange.folder.file("out.bdiff"), replacing: false)
    let mixed = try RewrittenChanges(concatenating: [raw, diff])
    #expect(code { _ = try mixed.write(to: target, home: home) } == .noDefinitions)
    let report = try mixed.write(to: .file(exchange.folder.file("out"), replacing: false), home: home)
    let received = Recorded<[UInt8]>([])
    let streamed = try mixed.write(to: .stream { received.value += $0 }, home: home)
    #expect(streamed.id != nil && streamed.path == nil && streamed.bytes == report.bytes)
    #expect(try received.value == fileBytes(exchange.folder.file("out")))

    let other = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY, words)")
    let path = other.folder.file("3.bdiff")
    try other.send("INSERT INTO notes VALUES(9, 'i')", to: .file(path, replacing: false))
    #expect(code { _ = try RewrittenChanges(concatenating: [diff, path]) } == .definitionsDiffer)
    #expect(code { _ = try RewrittenChanges(sorting: exchange.folder.file("missing")) } == .noSuchFile)
  }

  @Test("A poll that throws stops the verification and the rewriting of a file", arguments: [true, false])
  func stopping(raw: Bool) throws {
    let path = try send(
      "WITH n(i) AS (VALUES(10) UNION ALL SELECT i + 1 FROM n WHERE i < 30000) INSERT INTO notes SELECT i, hex(randomblob(100)) FROM n",
      as: "1", raw: raw)
    var polls = 0
    _ = try RewrittenChanges(sorting: path, poll: { polls += 1 })
    // The file has 6 MB, which are read and checked, sorted, and counted in the end.
    #expect(polls > 50)
    for limit in stride(from: 0, to: polls, by: 7) {
      var count = 0
      #expect(throws: Stop.self) {
        try RewrittenChanges(
          sorting: path,
          poll: {
            count += 1
            if count > limit { throw Stop() }
          })
      }
    }
    let files = InboundFiles([InboundItem(named: path)], streams: false) { _ in throw Stop() }
    let reader = files.files(0..<1, streams: false)
    defer { reader.stop() }
    #expect(throws: Stop.self) { try reader.wait() }
  }
}
