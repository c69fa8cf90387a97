import SQLiteConnections
import TestSupport
import Testing

@Suite("Copies of databases")
struct CopyTests {
  @Test("A copy has everything that was committed, even if it is still in the log, and nothing else")
  func copiesLog() throws {
    let folder = try TemporaryFolder()
    let writer = try SQLiteConnection(opening: folder.file("original"), as: .create)
    try writer.execute(
      "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t(a); INSERT INTO t VALUES(1), (2)")
    let transaction = try SQLiteTransaction(on: writer)
    try writer.execute("INSERT INTO t VALUES(3)")
    try SQLiteConnection(opening: folder.file("original"), as: .readOnly).copy(to: folder.file("copy"))
    transaction.rollback()
    let copy = try SQLiteConnection(opening: folder.file("copy"), as: .readOnly)
    #expect(try copy.integer("SELECT group_concat(a) = '1,2' FROM t") == 1)
    #expect(try copy.text("PRAGMA integrity_check") == "ok")
  }

  @Test("An invalid source and a target that cannot be written are errors", arguments: ["text", "missing/copy"])
  func failures(name: String) throws {
    let folder = try TemporaryFolder()
    try folder.write(Array("not a database, but text that is long enough to be one".utf8), to: "text")
    try TestDatabases.run("CREATE TABLE t(a)", on: folder.file("good"))
    let isSource = name == "text"
    let source = try SQLiteConnection(opening: folder.file(isSource ? name : "good"), as: .readOnly)
    let error = try #require(throws: SQLiteError.self) {
      try source.copy(to: folder.file(isSource ? "copy" : name))
    }
    #expect(isSource ? error.isNotADatabase : error.isCannotOpen)
  }
}
