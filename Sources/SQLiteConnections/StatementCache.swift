/// The statements that a connection keeps, by their text.
final class StatementCache {
  var statements: [String: PreparedStatement] = [:]
}

/// A statement that several can refer to, and that collections can hold.
package final class PreparedStatement {
  /// The statement.
  package let statement: SQLiteStatement

  /// Takes a statement.
  package init(_ statement: consuming SQLiteStatement) { self.statement = statement }
}
