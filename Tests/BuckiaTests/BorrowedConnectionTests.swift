import Buckia
import BuckiaFormat
import BuckiaApply
import SQLiteSchemas
import SQLiteConnections
import Testing
import TestSupport

@Suite struct BorrowedConnectionTests {
  private static let schema =
    "CREATE TABLE notes(id INTEGER PRIMARY KEY, n INTEGER UNIQUE); INSERT INTO notes VALUES (1, 1)"

  @Test("A diff applied in the app's transaction is committed or rolled back with it", arguments: [true, false])
  func insideATransaction(_ commits: Bool) throws {
    let exchange = try Exchange(Self.schema)
    try exchange.send("INSERT INTO notes VALUES (2, 2)")
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    let outer = try SQLiteTransaction(on: connection)
    try connection.execute("INSERT INTO notes VALUES (9, 9)")
    let savepoint = try SQLiteTransaction(on: connection)
    let isNested = savepoint.isNested
    #expect(isNested)
    let plan = try Receiver.plan(exchange.changes(), on: connection, settings: ApplySettings(time: 2_000_000_000_000))
    #expect(try plan.apply().changedTables == ["notes"])
    try savepoint.commit()
    if commits { try outer.commit() } else { outer.rollback() }
    #expect(try exchange.rows("SELECT id FROM notes ORDER BY id") == (commits ? ["1", "2", "9"] : ["1"]))
    #expect(try exchange.database.log().count == (commits ? 1 : 0))
  }

  @Test("When a diff fails, earlier changes in the app's transaction stay")
  func failureInside() throws {
    let exchange = try Exchange(Self.schema)
    try exchange.send("INSERT INTO notes VALUES (2, 2); UPDATE notes SET n = 5 WHERE id = 1")
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    let outer = try SQLiteTransaction(on: connection)
    try connection.execute("UPDATE notes SET n = 7; INSERT INTO notes VALUES (9, 9)")
    let changes = try exchange.changes()
    #expect(throws: ReplicationError.self) {
      let savepoint = try SQLiteTransaction(on: connection)
      let plan = try Receiver.plan(
        changes, on: connection, settings: ApplySettings(policies: .abort, time: 2_000_000_000_000))
      _ = try plan.apply()
      try savepoint.commit()
    }
    let isOpen = connection.isInTransaction
    #expect(isOpen)
    try outer.commit()
    #expect(try exchange.rows("SELECT id, n FROM notes ORDER BY id") == ["1|7", "9|9"])
    #expect(try exchange.database.log().isEmpty)
  }

  @Test("Applying without a transaction is an error, and nothing is applied")
  func needsATransaction() throws {
    let exchange = try Exchange(Self.schema)
    try exchange.send("INSERT INTO notes VALUES (2, 2)")
    let connection = try SQLiteConnection(opening: exchange.mine, as: .readWrite)
    let changes = try exchange.changes()
    #expect(throws: SQLiteError.self) {
      let plan = try Receiver.plan(changes, on: connection, settings: ApplySettings(time: 2_000_000_000_000))
      _ = try plan.apply()
    }
    #expect(try exchange.rows("SELECT id FROM notes") == ["1"])
  }
}
