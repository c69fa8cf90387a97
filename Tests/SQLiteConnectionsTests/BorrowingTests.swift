import Testing

@testable import SQLiteConnections

@Suite struct BorrowingTests {
  @Test("A borrowed connection stays open, and so does its transaction")
  func borrow() throws {
    let app = try SQLiteConnection(opening: ":memory:", as: .create)
    try app.execute("CREATE TABLE t(a); BEGIN; INSERT INTO t VALUES (1)")
    let count = try SQLiteConnection.borrowing(app.handle.pointer) { connection in
      #expect(connection.path == "")
      #expect(connection.isInTransaction == true)
      let transaction = try SQLiteTransaction(on: connection)
      #expect(transaction.isNested == true)
      try connection.execute("INSERT INTO t VALUES (2)")
      try transaction.commit()
      return try connection.integer("SELECT count(*) FROM t")
    }
    #expect(count == 2)
    #expect(app.isInTransaction == true)
    try app.execute("ROLLBACK")
    #expect(try app.integer("SELECT count(*) FROM t") == 0)
  }

  @Test("An error thrown by the body is rethrown, and the app's transaction is unchanged")
  func failing() throws {
    struct Stop: Error {}
    let app = try SQLiteConnection(opening: ":memory:", as: .create)
    try app.execute("CREATE TABLE t(a); BEGIN; INSERT INTO t VALUES (1)")
    #expect(throws: Stop.self) {
      try SQLiteConnection.borrowing(app.handle.pointer) { connection in
        let transaction = try SQLiteTransaction(on: connection)
        try connection.execute("DELETE FROM t")
        if transaction.isNested { throw Stop() }
        try transaction.commit()
      }
    }
    #expect(app.isInTransaction == true)
    #expect(try app.integer("SELECT count(*) FROM t") == 1)
  }
}
