import BuckiaFormat
import SQLiteChangesets
import Testing
import TestSupport

@testable import Buckia

@Suite("Rebasing files")
struct RebasedFilesTests {
  private let exchange: Exchange
  private var home: BuckiaHome { BuckiaHome(path: exchange.folder.file("home")) }

  init() throws {
    exchange = try Exchange(
      """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, text UNIQUE COLLATE NOCASE, up REFERENCES notes);
      CREATE TABLE tags(note REFERENCES notes ON DELETE CASCADE, tag, PRIMARY KEY(note, tag)) WITHOUT ROWID;
      CREATE TABLE log(line);
      INSERT INTO notes VALUES(1, 'a', NULL), (2, 'b', 1)
      """)
  }

  private func send(_ edits: String, as name: String, raw: Bool = false) throws -> String {
    try #require(try exchange.send(edits, raw: raw, to: .file(exchange.folder.file(name), replacing: false)).path)
  }

  private func code(of body: () throws -> Void) -> BuckiaErrorCode? {
    do { try body() } catch { return (error as? BuckiaError)?.code }
    return nil
  }

  /// Applies files in order to a copy of the common base, and expects no conflicts.
  private func apply(_ paths: [String]) throws {
    let report = try exchange.database.processInboundChanges(paths, options: ApplyOptions(conflicts: .abort))
    #expect(report.diffs.map(\.state) == paths.map { _ in .applied })
    #expect(report.diffs.allSatisfy { $0.conflicts == 0 })
    #expect(try exchange.rows("SELECT * FROM pragma_foreign_key_check") == [])
  }

  @Test(
    "With remapped keys and rowids, the rows of both files are kept, and references follow, even in a cycle"
  )
  func remap() throws {
    let theirs = try send(
      "INSERT INTO notes VALUES(3, 'theirs', 2); INSERT INTO tags VALUES(3, 'x'); INSERT INTO log VALUES('theirs')",
      as: "theirs.bdiff")
    let mine = try send(
      """
      INSERT INTO notes VALUES(3, 'mine', NULL), (4, 'child', 3); UPDATE notes SET up = 4 WHERE id IN (1, 3);
      INSERT INTO tags VALUES(3, 'x'), (4, 'y'); INSERT INTO log VALUES('mine')
      """, as: "mine.bdiff")
    let changes = try RewrittenChanges(
      rebasing: mine, onto: [theirs], options: RebaseOptions(policy: .takeIncoming, remapsKeys: true))
    let rebase = try #require(changes.rebase)
    #expect(rebase.conflictCount == 0 && rebase.conflicts.isEmpty)
    #expect(rebase.remappedKeys.map { "\($0.table) \($0.key) \($0.newKey)" } == ["notes 3 5", "log 1 2"])
    #expect(Set(changes.warnings.map(\.code)) == [.undeclaredReferences, .newKeysUnchecked])
    let path = try #require(try changes.write(to: .folder(exchange.folder.file("out")), home: home).path)
    #expect(path.hasSuffix(".bdiff"))
    try apply([theirs, path])
    #expect(
      try TestDatabases.rows("SELECT id, up FROM notes ORDER BY id", on: exchange.mine)
        == ["1|4", "2|1", "3|2", "4|5", "5|4"])
    #expect(try exchange.rows("SELECT note FROM tags ORDER BY note, tag") == ["3", "4", "5"])
    #expect(try exchange.rows("SELECT count(*) FROM log") == ["2"])
  }

  @Test("UNIQUE values are compared as their columns compare them; rows that refer to a losing row are named")
  func uniqueValues() throws {
    let theirs = try send("INSERT INTO notes VALUES(7, 'Same', NULL)", as: "theirs.bdiff")
    let mine = try send(
      "INSERT INTO notes VALUES(8, 'same', NULL); INSERT INTO tags VALUES(8, 'x')", as: "mine.bdiff")
    let changes = try RewrittenChanges(
      rebasing: mine, onto: [theirs], options: RebaseOptions(policy: .takeIncoming))
    #expect(changes.tables.isEmpty)
    let conflicts = try #require(changes.rebase).conflicts
    #expect(conflicts.map(\.kind) == [.unique, .parentLeftOut])
    #expect(conflicts.map(\.table) == ["notes", "tags"])
    #expect(conflicts[0].key.map { "\($0.column) \($0.value ?? .null)" } == ["id 8"])
    #expect(conflicts.map(\.columns) == [["text"], ["note"]])
    let kept = try RewrittenChanges(rebasing: mine, onto: [theirs])
    let out = exchange.folder.file("kept.bdiff")
    _ = try kept.write(to: .file(out, replacing: false), home: home)
    try apply([theirs, out])
    #expect(try exchange.rows("SELECT id FROM notes ORDER BY id") == ["1", "2", "8"])
  }

  @Test("Raw changesets cause a warning about missing definitions, and a database has them and the keys in use")
  func schemaOfDatabase() throws {
    let theirs = try send("INSERT INTO notes VALUES(3, 'x', NULL)", as: "theirs", raw: true)
    let mine = try send("INSERT INTO notes VALUES(3, 'y', NULL), (4, 'X', 3)", as: "mine", raw: true)
    let blind = try RewrittenChanges(rebasing: mine, onto: [theirs], options: RebaseOptions(remapsKeys: true))
    #expect(blind.warnings == [Warning(.rebasedWithoutDefinition, "notes")])
    #expect(blind.rebase?.conflicts.map(\.kind) == [.insertedByBoth])
    #expect(blind.rebase?.conflicts.first?.key.first?.column == "column 1")
    try TestDatabases.run("INSERT INTO notes VALUES(90, 'z', NULL)", on: exchange.mine)
    let options = RebaseOptions(policy: .takeIncoming, remapsKeys: true, schema: exchange.mine)
    let seeing = try RewrittenChanges(rebasing: mine, onto: [theirs], options: options)
    #expect(seeing.rebase?.remappedKeys.map(\.newKey) == [91])
    #expect(seeing.rebase?.conflicts.map(\.kind) == [.unique])
    #expect(seeing.warnings.map(\.code) == [.undeclaredReferences])
    let missing = RebaseOptions(schema: exchange.folder.file("missing"))
    #expect(code { _ = try RewrittenChanges(rebasing: mine, onto: [theirs], options: missing) } == .noDatabase)
  }

  @Test("Several incoming files count in their order, and files with different definitions of a table are refused")
  func severalFiles() throws {
    let first = try send("UPDATE notes SET text = 'A' WHERE id = 1", as: "1.bdiff")
    let second = try send("UPDATE notes SET up = 2 WHERE id = 1", as: "2.bdiff")
    let mine = try send("UPDATE notes SET text = 'mine' WHERE id = 1", as: "mine.bdiff")
    let changes = try RewrittenChanges(
      rebasing: mine, onto: [first, second], options: RebaseOptions(policy: .takeIncoming))
    #expect(changes.tables.isEmpty)
    #expect(changes.rebase?.conflicts.map(\.columns) == [["text"]])
    let other = try Exchange("CREATE TABLE notes(id INTEGER PRIMARY KEY, words, up)")
    let path = other.folder.file("3.bdiff")
    try other.send("INSERT INTO notes VALUES(9, 'i', NULL)", to: .file(path, replacing: false))
    #expect(code { _ = try RewrittenChanges(rebasing: mine, onto: [path]) } == .definitionsDiffer)
  }
}
