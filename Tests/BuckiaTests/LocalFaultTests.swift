import Buckia
import BuckiaApply
import BuckiaBytes
import BuckiaFormat
import BuckiaLedger
import SQLiteSchemas
import Foundation
import SQLiteChangesets
import TestSupport
import Testing
@testable import SQLiteConnections

/// A file that fails because of local triggers, counters or damage does not stop other files.
@Suite struct LocalFaultTests {
  private static let base = """
    CREATE TABLE log(id INTEGER PRIMARY KEY AUTOINCREMENT, n);
    CREATE TABLE notes(id INTEGER PRIMARY KEY, n);
    INSERT INTO notes VALUES (1, 1), (2, 2), (3, 3)
    """

  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// SQL that the receiver runs before applying.
    let here: String
    /// The edits of the second file. The first and the third file insert the notes 10 and 30.
    let edits: String
    let code: BuckiaErrorCode
  }

  private static let logging = """
    CREATE TRIGGER logging AFTER UPDATE ON notes WHEN new.id = 2 BEGIN INSERT INTO log(n) VALUES (new.n); END
    """

  static let cases = [
    Case(
      testDescription: "a trigger adds to a table whose counter is at its end",
      here: "INSERT INTO log VALUES (9223372036854775807, 0); DELETE FROM log; \(logging)",
      edits: "UPDATE notes SET n = 0 WHERE id = 2", code: .noIDsLeft),
    Case(
      testDescription: "a trigger adds to a table that has the greatest id, whatever its counter says",
      here: "INSERT INTO log VALUES (9223372036854775807, 0); DELETE FROM sqlite_sequence; \(logging)",
      edits: "UPDATE notes SET n = 0 WHERE id = 2", code: .noIDsLeft),
    Case(
      testDescription: "the file takes the greatest id",
      here: logging,
      edits: "INSERT INTO log VALUES (9223372036854775807, 0); UPDATE notes SET n = 0 WHERE id = 2",
      code: BuckiaErrorCode(rawValue: "conflict")),
    Case(
      testDescription: "a trigger rolls everything back",
      here: """
        CREATE TRIGGER refusing BEFORE UPDATE ON notes WHEN new.n = 0 BEGIN SELECT RAISE(ROLLBACK, 'not here'); END
        """,
      edits: "UPDATE notes SET n = 0 WHERE id = 2", code: BuckiaErrorCode(rawValue: "sqlite-1811")),
    Case(
      testDescription: "a trigger writes into a full-text index that is damaged",
      here: """
        CREATE VIRTUAL TABLE words USING fts5(word); INSERT INTO words VALUES ('one'); DELETE FROM words_data;
        CREATE TRIGGER indexing AFTER UPDATE ON notes WHEN new.n = 0 BEGIN INSERT INTO words VALUES ('two'); END
        """,
      edits: "UPDATE notes SET n = 0 WHERE id = 2", code: .damagedDatabase),
    Case(
      testDescription: "a trigger calls a function that is not here",
      here: """
        CREATE TRIGGER calling AFTER UPDATE ON notes WHEN new.n = 0 BEGIN SELECT no_such_function(new.n); END
        """,
      edits: "UPDATE notes SET n = 0 WHERE id = 2", code: BuckiaErrorCode(rawValue: "sqlite-1")),
    Case(
      testDescription: "a trigger writes to a virtual table that cannot be written",
      here: """
        CREATE TRIGGER writing AFTER UPDATE ON notes WHEN new.n = 0 BEGIN DELETE FROM words; END;
        CREATE VIRTUAL TABLE words USING fts5(word, content=''); INSERT INTO words(rowid, word) VALUES (1, 'one')
        """,
      edits: "UPDATE notes SET n = 0 WHERE id = 2", code: BuckiaErrorCode(rawValue: "sqlite-1")),
    Case(
      testDescription: "a trigger makes a value that is larger than any may be",
      here: """
        CREATE TRIGGER growing AFTER UPDATE ON notes WHEN new.n = 0 BEGIN
          INSERT INTO log(n) VALUES (zeroblob(2000000000)); END
        """,
      edits: "UPDATE notes SET n = 0 WHERE id = 2", code: BuckiaErrorCode(rawValue: "conflict")),
  ]

  @Test("A failing file is refused with the reason in each call, and the files around it are applied", arguments: cases)
  func othersGoOn(_ found: Case) throws {
    let exchange = try Exchange(Self.base)
    try TestDatabases.run(found.here, on: exchange.mine)
    try exchange.send("INSERT INTO notes VALUES (10, 1)")
    try exchange.send(found.edits)
    try exchange.send("INSERT INTO notes VALUES (30, 1)")
    let options = ApplyOptions(conflicts: .abort, triggers: true)
    let first = try exchange.apply(options)
    #expect(first.diffs.map(\.state) == [.applied, .rejected, .applied], "\(first.diffs.map(\.reason))")
    #expect(first.diffs[1].code == found.code, "\(first.diffs[1].reason ?? "")")
    #expect(first.diffs[1].reason?.contains("disk") == false)
    let again = try exchange.apply(options)
    #expect(again.diffs.map(\.state) == [.rejected])
    #expect(again.diffs[0].code == found.code)
    #expect(try exchange.rows("SELECT id, n FROM notes ORDER BY id") == ["1|1", "2|2", "3|3", "10|1", "30|1"])
    #expect(try exchange.database.log().count { $0.state == .applied } == 2)
  }

  @Test("A row with the last id of a new AUTOINCREMENT table is refused, and the other rows are inserted")
  func lastIDOfNewTable() throws {
    let exchange = try Exchange(Self.base)
    try exchange.send("INSERT INTO notes VALUES (10, 1)")
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: "made", keyFlags: [1]))
    writer.beginChange(.insert)
    writer.append(integer: .max)
    writer.beginChange(.insert)
    writer.appendNull()
    let made = TableDefinition(
      name: "made", columns: [ColumnDefinition(name: "id", declaredType: "INTEGER")], primaryKey: [0],
      isAutoIncrement: true)
    let id = Exchange.id(at: 1_700_000_000)
    try DiffFileWriter().write(
      DiffFileDraft(manifest: Manifest(id: id), schema: .included([made])), changeset: TemporaryBuffer(writer.bytes),
      to: "\(exchange.inbound)/\(DiffFileName.diff(id))")
    #expect(try exchange.apply().diffs.map(\.state) == [.applied, .applied])
    #expect(try exchange.database.conflicts().map(\.kind) == [.constraint])
    #expect(try exchange.rows("SELECT id FROM notes WHERE id > 3") == ["10"])
    #expect(try exchange.rows("SELECT id FROM made") == ["1"])
  }

  @Test("A trigger that rolls back the app's transaction is an error, and later files are not applied")
  func ownTransaction() throws {
    let exchange = try Exchange(Self.base)
    try TestDatabases.run(
      "CREATE TRIGGER refusing BEFORE UPDATE ON notes BEGIN SELECT RAISE(ROLLBACK, 'not here'); END", on: exchange.mine)
    try exchange.send("UPDATE notes SET n = 0 WHERE id = 2")
    try exchange.send("INSERT INTO notes VALUES (30, 1)")
    for isDryRun in [false, true] {
      let error = #expect(throws: BuckiaError.self) {
        if isDryRun {
          try exchange.apply(ApplyOptions(triggers: true, isDryRun: true))
        } else {
          let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
          try connection.execute("BEGIN")
          _ = try DatabaseManager.borrowing(connection.handle.pointer) {
            try $0.processInboundChanges([exchange.inbound], options: ApplyOptions(triggers: true))
          }
        }
      }
      #expect(error?.code == .transactionLost)
      #expect(try exchange.rows("SELECT count(*), sum(n) FROM notes") == ["3|6"])
    }
    #expect(try exchange.folder.names(in: "inbound").count == 2)
  }

  /// Sets a limit of SQLite, as an app can on the connection that it lends.
  private func setLimit(_ connection: borrowing SQLiteConnection, _ limit: Int32, to value: Int32) throws {
    typealias Limit = @convention(c) (OpaquePointer, Int32, Int32) -> Int32
    let function = try LoadedSQLite.linked.get().function("sqlite3_limit", as: Limit.self)
    #expect(function(connection.handle.pointer, limit, value) > value)
  }

  private func refuseUpdates(_ connection: borrowing SQLiteConnection) throws {
    typealias Authorizer =
      @convention(c) (
        UnsafeMutableRawPointer?, Int32, UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?,
        UnsafePointer<CChar>?
      ) -> Int32
    typealias SetAuthorizer = @convention(c) (OpaquePointer, Authorizer?, UnsafeMutableRawPointer?) -> Int32
    let function = try LoadedSQLite.linked.get().function("sqlite3_set_authorizer", as: SetAuthorizer.self)
    // SQLITE_UPDATE of the table notes is denied.
    let refused: Authorizer = { _, action, table, _, _, _ in
      action == 23 && table.map { String(cString: $0) } == "notes" ? 1 : 0
    }
    #expect(function(connection.handle.pointer, refused, nil) == 0)
  }

  @Test("A limit or an authorizer of the app refuses one file, not the others", arguments: [18, 23])
  func lentConnection(code: Int) throws {
    let exchange = try Exchange(Self.base)
    try exchange.database.initialize()
    try exchange.send("INSERT INTO notes VALUES (10, 1)")
    try exchange.send(
      code == 18 ? "INSERT INTO notes VALUES (20, zeroblob(200000))" : "UPDATE notes SET n = 0 WHERE id = 2")
    try exchange.send("INSERT INTO notes VALUES (30, 1)")
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    if code == 18 { try setLimit(connection, 0, to: 100_000) } else { try refuseUpdates(connection) }
    for round in 0..<2 {
      let report = try DatabaseManager.borrowing(connection.handle.pointer) {
        try $0.processInboundChanges([exchange.inbound], options: ApplyOptions(conflicts: .abort))
      }
      #expect(report.diffs.map(\.state) == (round == 0 ? [.applied, .rejected, .applied] : [.rejected]))
      #expect(report.rejected.first?.code?.rawValue == "sqlite-\(code)", "\(report.rejected.first?.reason ?? "")")
    }
    #expect(try exchange.rows("SELECT id FROM notes WHERE id > 9 ORDER BY id") == ["10", "30"])
  }

  // MARK: The ledger

  @Test("A raw changeset that waited under an id from the future is applied once under a present one")
  func futureThenPresent() throws {
    let exchange = try Exchange(Self.base)
    let changes = insertion(into: "notes", values: [10, 1])
    let now = Int64(Date().timeIntervalSince1970)
    try exchange.plantRaw(changes, id: Exchange.id(at: now + 100_000))
    #expect(try exchange.apply().diffs.map(\.state) == [.waiting])
    try exchange.plantRaw(changes, id: Exchange.id(at: now + 200_000))
    #expect(try exchange.apply().diffs.map(\.state) == [.waiting, .waiting])
    try exchange.plantRaw(changes, id: Exchange.id(at: now - 100))
    #expect(try exchange.apply().diffs.map(\.state) == [.applied, .alreadyApplied, .alreadyApplied])
    #expect(try exchange.database.log().map(\.state) == [.applied])
    #expect(try exchange.rows("SELECT count(*) FROM notes") == ["4"])
  }

  @Test(
    "Ledger tables that another program has altered are an error without SQL in its message",
    arguments: [
      "ALTER TABLE buckia_ledger RENAME COLUMN state TO stand",
      "CREATE UNIQUE INDEX one ON buckia_ledger(raw)",
      "CREATE TRIGGER t BEFORE INSERT ON buckia_ledger BEGIN SELECT RAISE(ABORT, 'no'); END",
      "DROP TABLE buckia_held_part",
    ])
  func alteredLedger(_ alteration: String) throws {
    let exchange = try Exchange(Self.base)
    try exchange.send("INSERT INTO notes VALUES (10, 1)")
    try exchange.apply()
    try TestDatabases.run(alteration, on: exchange.mine)
    try exchange.send("INSERT INTO notes VALUES (11, 1)")
    let error = #expect(throws: BuckiaError.self) { try exchange.apply(ApplyOptions(triggers: true)) }
    #expect(error?.code == .alteredLedger)
    let text = try #require(error?.description)
    for word in ["SELECT", "INSERT", "buckia_ledger", "UNIQUE", "no such"] { #expect(!text.contains(word), "\(text)") }
    #expect(try exchange.rows("SELECT count(*) FROM notes") == ["4"])
    #expect(try exchange.folder.names(in: "inbound").count == 1)
  }

  @Test("Files can be applied after a ledger entry with the greatest number")
  func greatestEntry() throws {
    let exchange = try Exchange(Self.base)
    try exchange.send("INSERT INTO notes VALUES (10, 1)")
    try exchange.apply()
    try TestDatabases.run("UPDATE buckia_ledger SET entry = 9223372036854775807", on: exchange.mine)
    for id in 11...13 {
      try exchange.send("UPDATE notes SET n = \(id) WHERE id = 1; INSERT INTO notes VALUES (\(id), 1)")
    }
    #expect(try exchange.apply().applied.count == 3)
    #expect(try exchange.rows("SELECT count(*), count(DISTINCT entry) FROM buckia_ledger") == ["4|4"])
    #expect(try exchange.database.conflicts().count == 2)
  }
}
