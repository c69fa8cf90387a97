import SQLiteConnections
import Testing

@Suite struct SQLiteTransactionTests {
  private func makeConnection() throws -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("CREATE TABLE t(a)")
    return connection
  }

  private func count(_ connection: borrowing SQLiteConnection) throws -> Int64? {
    try connection.integer("SELECT count(*) FROM t")
  }

  struct Stop: Error {}

  /// A closure cannot consume a transaction that it captures.
  private func commitFailure(_ transaction: consuming SQLiteTransaction) -> SQLiteError? {
    do {
      try transaction.commit()
      return nil
    } catch {
      return error
    }
  }

  @Test("A commit makes changes permanent")
  func commit() throws {
    let connection = try makeConnection()
    let transaction = try SQLiteTransaction(on: connection)
    #expect(connection.isInTransaction == true)
    #expect(transaction.isNested == false)
    try connection.execute("INSERT INTO t VALUES (1)")
    try transaction.commit()
    #expect(connection.isInTransaction == false)
    #expect(try count(connection) == 1)
  }

  @Test("A rollback discards changes")
  func rollback() throws {
    let connection = try makeConnection()
    let transaction = try SQLiteTransaction(.deferred, on: connection)
    try connection.execute("INSERT INTO t VALUES (1)")
    transaction.rollback()
    #expect(connection.isInTransaction == false)
    #expect(try count(connection) == 0)
  }

  @Test("A transaction that an error abandons is rolled back before its connection closes")
  func leftBehind() throws {
    let connection = try makeConnection()
    func fail(_ connection: borrowing SQLiteConnection) throws {
      let transaction = try SQLiteTransaction(on: connection)
      try connection.execute("INSERT INTO t VALUES (1)")
      if connection.isInTransaction { throw Stop() }
      try transaction.commit()
    }
    #expect(throws: Stop.self) { try fail(connection) }
    #expect(connection.isInTransaction == false)
    #expect(try count(connection) == 0)

    func failWithBoth() throws {
      let own = try makeConnection()
      let transaction = try SQLiteTransaction(on: own)
      try own.execute("INSERT INTO t VALUES (1)")
      if try count(own) == 1 { throw Stop() }
      try transaction.commit()
    }
    for _ in 0..<50 { #expect(throws: Stop.self) { try failWithBoth() } }
  }

  @Test("Inside the app's transaction it is a savepoint, which can be committed or rolled back")
  func nested() throws {
    let connection = try makeConnection()
    try connection.execute("BEGIN; INSERT INTO t VALUES ('outer')")
    let kept = try SQLiteTransaction(on: connection)
    #expect(kept.isNested == true)
    try connection.execute("INSERT INTO t VALUES (1)")
    let undone = try SQLiteTransaction(on: connection)
    try connection.execute("INSERT INTO t VALUES (2)")
    undone.rollback()
    #expect(connection.isInTransaction == true)
    #expect(try count(connection) == 2)
    try kept.commit()
    #expect(connection.isInTransaction == true)
    try connection.execute("ROLLBACK")
    #expect(try count(connection) == 0)
  }

  @Test("A commit that fails rolls everything back")
  func failedCommit() throws {
    let connection = try makeConnection()
    try connection.execute(
      """
      PRAGMA foreign_keys = ON; CREATE TABLE p(id INTEGER PRIMARY KEY);
      CREATE TABLE c(p REFERENCES p DEFERRABLE INITIALLY DEFERRED)
      """)
    let transaction = try SQLiteTransaction(on: connection)
    try connection.execute("INSERT INTO c VALUES (7); INSERT INTO t VALUES (1)")
    let code = commitFailure(transaction)?.code
    #expect(code == 787)
    #expect(connection.isInTransaction == false)
    #expect(try count(connection) == 0)
  }

  @Test("After SQLite has rolled back by itself, nothing needs to be done")
  func rolledBackAlready() throws {
    let connection = try makeConnection()
    let transaction = try SQLiteTransaction(on: connection)
    try connection.execute("CREATE TABLE u(a UNIQUE); INSERT INTO u VALUES (1)")
    #expect(throws: SQLiteError.self) { try connection.execute("INSERT OR ROLLBACK INTO u VALUES (1)") }
    #expect(connection.isInTransaction == false)
    let hasFailed = commitFailure(transaction) != nil
    #expect(hasFailed)
    try connection.execute("INSERT INTO t VALUES (1)")
  }
}
