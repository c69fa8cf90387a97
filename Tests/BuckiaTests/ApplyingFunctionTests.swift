import Buckia
import Foundation
import TestSupport
import Testing
@testable import SQLiteConnections

/// Triggers of the app call `buckia_applying()` to tell the app's edits from applied changes.
@Suite struct ApplyingFunctionTests {
  /// A trigger records for each changed row whether the app or Buckia wrote it.
  private static let schema = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, n);
    CREATE TABLE seen(id, is_applied);
    INSERT INTO notes VALUES (1, 1);
    CREATE TRIGGER noted AFTER UPDATE ON notes BEGIN INSERT INTO seen VALUES (new.id, buckia_applying()); END
    """
  private static let seen = "SELECT id, is_applied FROM seen ORDER BY rowid"

  private func lend<Result>(
    _ connection: borrowing SQLiteConnection, home: BuckiaHome, _ body: (DatabaseManager) throws -> Result
  ) throws -> Result {
    try DatabaseManager.borrowing(connection.handle.pointer, home: home, body)
  }

  private func isApplying(_ connection: borrowing SQLiteConnection) throws -> Int64? {
    try connection.integer("SELECT buckia_applying()")
  }

  /// A diff of one edit. The trigger is dropped first, because this connection lacks the function.
  private func exchange() throws -> Exchange {
    let exchange = try Exchange(Self.schema)
    let theirs = try exchange.folder.copy("base.sqlite", to: "theirs.sqlite")
    let connection = try SQLiteConnection(opening: theirs, as: .readWrite)
    try connection.execute("DROP TRIGGER noted; UPDATE notes SET n = 2")
    try DatabaseManager(theirs, home: exchange.home).createDatabaseDiff(
      since: exchange.base, output: .folder(exchange.inbound))
    return exchange
  }

  @Test("A trigger that calls the function fails without it, and with it tells the app's edits from applied changes")
  func triggers() throws {
    let exchange = try exchange()
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    let error = #expect(throws: SQLiteError.self) { try connection.execute("UPDATE notes SET n = 1") }
    #expect(error?.message.contains("no such function: buckia_applying") == true)
    try DatabaseManager.addApplyingFunction(to: connection.handle.pointer)
    try connection.execute("UPDATE notes SET n = 1")
    // Buckia opens a connection of its own here, which has the function.
    #expect(try exchange.apply(ApplyOptions(triggers: true, keepsFiles: true)).applied.count == 1)
    try connection.execute("UPDATE notes SET n = n + 1")
    #expect(try exchange.rows(Self.seen) == ["1|0", "1|1", "1|0"])
    // After applying, the function returns 0 on the app's connection.
    #expect(try isApplying(connection) == 0)
  }

  @Test("A lent connection that lacked the function lacks it again afterwards")
  func leavesNothing() throws {
    let exchange = try exchange()
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    let report = try lend(connection, home: exchange.home) {
      try $0.processInboundChanges([exchange.inbound], options: ApplyOptions(triggers: true))
    }
    #expect(report.applied.count == 1)
    #expect(try exchange.rows(Self.seen) == ["1|1"])
    #expect(throws: SQLiteError.self) { try isApplying(connection) }
  }

  @Test("On a lent connection the function returns 1 for TEMP triggers while changes are applied, and 0 afterwards")
  func borrowed() throws {
    let exchange = try exchange()
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.execute(
      """
      DROP TRIGGER noted;
      CREATE TEMP TRIGGER noted AFTER UPDATE ON main.notes BEGIN INSERT INTO seen VALUES (new.id, buckia_applying()); END
      """)
    try DatabaseManager.addApplyingFunction(to: connection.handle.pointer)
    for end in ["ROLLBACK", "COMMIT"] {
      try connection.execute("BEGIN")
      let report = try lend(connection, home: exchange.home) { try $0.processInboundChanges([exchange.inbound]) }
      #expect(report.applied.count == 1)
      #expect(try isApplying(connection) == 0)
      try connection.execute("UPDATE notes SET n = n + 1")
      try connection.execute(end)
    }
    #expect(try exchange.rows(Self.seen) == ["1|1", "1|0"])
  }

  @Test("The function returns 0 again after a failure, and never 1 on another connection")
  func otherConnection() throws {
    let exchange = try exchange()
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    let other = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    for handle in [connection.handle.pointer, other.handle.pointer] {
      try DatabaseManager.addApplyingFunction(to: handle)
    }
    struct Stop: Error {}
    var during: [Int64?] = []
    #expect(throws: Stop.self) {
      try lend(connection, home: exchange.home) {
        try $0.processInboundChanges(
          [exchange.inbound],
          progress: { _ in
            during.append(try isApplying(connection))
            during.append(try isApplying(other))
            throw Stop()
          })
      }
    }
    #expect(during == [1, 0])
    #expect(try isApplying(connection) == 0)
    // Lending the connection again inside does not reset the function.
    during = []
    try lend(connection, home: exchange.home) { database in
      _ = try database.processInboundChanges(
        [exchange.inbound],
        progress: { progress in
          guard during.isEmpty else { return }
          try lend(connection, home: exchange.home) { _ = try $0.undo([]) }
          during.append(try isApplying(connection))
        })
    }
    #expect(during == [1])
    #expect(try isApplying(connection) == 0)
  }

  @Test("The function works with an untrusted schema, and is not treated as a constant")
  func untrustedSchema() throws {
    let exchange = try exchange()
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try DatabaseManager.addApplyingFunction(to: connection.handle.pointer)
    try connection.execute("PRAGMA trusted_schema = OFF; UPDATE notes SET n = 7")
    #expect(try exchange.rows(Self.seen) == ["1|0"])
    // SQLite accepts only deterministic functions in an index.
    #expect(throws: SQLiteError.self) { try connection.execute("CREATE INDEX i ON notes(n) WHERE buckia_applying()") }
  }

  @Test("Adding the function twice has no effect, even while a statement runs; an app function of that name stays")
  func addedTwice() throws {
    let exchange = try Exchange("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2)")
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try DatabaseManager.addApplyingFunction(to: connection.handle.pointer)
    let statement = try connection.prepare("SELECT a, buckia_applying() FROM t")
    #expect(try statement.step())
    try DatabaseManager.addApplyingFunction(to: connection.handle.pointer)
    #expect(try statement.step())
    let own = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    var functions = SQLiteFunctions(on: own)
    try functions.add("buckia_applying", argumentCount: 0) { _ in .integer(42) }
    try DatabaseManager.addApplyingFunction(to: own.handle.pointer)
    #expect(try isApplying(own) == 42)
    _ = functions.removeAll()
  }

  /// A TEMP trigger fires even if triggers are off.
  private static let temporary = """
    CREATE TEMP TRIGGER noted AFTER UPDATE ON main.notes BEGIN INSERT INTO seen VALUES (new.n, buckia_applying()); END
    """

  @Test("The function returns 1 while conflicts are resolved and databases are merged")
  func resolvingAndMerging() throws {
    let exchange = try exchange()
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.execute("DROP TRIGGER noted; UPDATE notes SET n = 9")
    try connection.execute(Self.temporary)
    try lend(connection, home: exchange.home) { (database: DatabaseManager) throws -> Void in
      let report = try database.processInboundChanges([exchange.inbound])
      #expect(report.diffs.map(\.conflicts) == [1])
      let conflict = try #require(try database.conflicts().first)
      #expect(try database.resolve([conflict.id], taking: .incoming).refused.isEmpty)
    }
    #expect(try exchange.rows(Self.seen) == ["2|1"])
    let theirs = try exchange.folder.copy("theirs.sqlite", to: "theirs-2.sqlite")
    try TestDatabases.run("UPDATE notes SET n = 3", on: theirs)
    try lend(connection, home: exchange.home) {
      _ = try $0.merge(theirs, since: exchange.folder.file("theirs.sqlite"))
    }
    #expect(try exchange.rows(Self.seen) == ["2|1", "3|1"])
  }

  @Test("The function returns 1 while a diff is undone")
  func undoing() throws {
    let exchange = try exchange()
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    try connection.execute("DROP TRIGGER noted")
    try connection.execute(Self.temporary)
    try lend(connection, home: exchange.home) { (database: DatabaseManager) throws -> Void in
      let report = try database.processInboundChanges([exchange.inbound])
      try database.undo([.diff(try #require(report.diffs.first?.id).description)])
    }
    // The undo has also removed the row that the trigger wrote when the diff was applied.
    #expect(try exchange.rows(Self.seen) == ["1|1"])
  }
}
