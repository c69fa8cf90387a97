/// The statements that a connection keeps, by their text.
final class StatementCache {
  var statements: [String: SQLiteCachedStatement] = [:]
}

/// A statement that its connection keeps for the next use.
package final class SQLiteCachedStatement {
  /// The statement.
  package let statement: SQLiteStatement

  init(_ statement: consuming SQLiteStatement) { self.statement = statement }
}
