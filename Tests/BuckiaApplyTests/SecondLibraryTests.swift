import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import BuckiaBytes
import SQLiteConnections
import TestSupport
import Testing

/// The engine on a connection that the app has opened with its own copy of SQLite.
@Suite(.disabled(if: LoadedSQLite.obstacle != nil, "\(LoadedSQLite.obstacle ?? "")"))
struct SecondLibraryTests {
  private static let tables = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, place INTEGER UNIQUE, text TEXT); CREATE INDEX texts ON notes(text);
    CREATE VIRTUAL TABLE search USING fts5(text, content='notes', content_rowid='id');
    CREATE TABLE words(id INTEGER PRIMARY KEY, word TEXT COLLATE NOCASE)
    """

  @Test("Changes are applied to a borrowed handle of another copy of SQLite, inside the app's transaction")
  func applies() throws {
    let folder = try TemporaryFolder()
    let rows = "; INSERT INTO notes VALUES (1, 1, 'one'), (2, 2, 'two'); INSERT INTO search(search) VALUES ('rebuild')"
    let older = try TestDatabases.run(Self.tables + rows, on: folder.file("older"))
    let newer = try TestDatabases.run(
      Self.tables + "; INSERT INTO notes VALUES (1, 2, 'one'), (2, 1, 'other'), (3, 3, 'three');"
        + "INSERT INTO words VALUES (1, 'a'); ALTER TABLE words ADD COLUMN more DEFAULT 'x'", on: folder.file("newer"))
    let difference = try DatabaseComparison.run(older: older, newer: newer)
    let incoming = try IncomingChanges(
      key: LedgerKey(sender: "", id: KSUID.minimum, digest: [UInt8](repeating: 7, count: 32), isRaw: false),
      file: "test", definitions: difference.tables.map(\.definition), changeset: difference.changeset)

    let second = try LoadedSQLite.second.get()
    let library = try SQLiteLibrary(resolving: second.address)
    try second.withHandle(to: older) { handle in
      try second.execute("BEGIN; INSERT INTO notes VALUES (9, 9, 'app')", on: handle)
      try SQLiteConnection.borrowing(handle, of: library) { connection in
        let transaction = try SQLiteTransaction(on: connection)
        let plan = try Receiver.plan(incoming, on: connection, settings: ApplySettings(time: 2_000_000_000_000))
        let result = try plan.apply(in: transaction)
        try transaction.commit()
        #expect(result.counts.conflicts == 0)
      }
      try second.execute("COMMIT", on: handle)
    }
    #expect(
      try TestDatabases.rows("SELECT id, place, text FROM notes", on: older)
        == ["1|2|'111.110.101'", "2|1|'111.116.104.101.114'", "3|3|'116.104.114.101.101'", "9|9|'97.112.112'"])
    #expect(try TestDatabases.rows("SELECT id, more FROM words", on: older) == ["1|'120'"])
    #expect(try TestDatabases.rows("SELECT rowid FROM search WHERE search MATCH 'three'", on: older) == ["3"])
    #expect(try TestDatabases.rows("PRAGMA integrity_check", on: older) == ["'111.107'"])
  }
}
