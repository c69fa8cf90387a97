import SQLiteSchemas

extension ReplicationError {
  /// Says that a scope cannot be followed.
  static func invalidScope(_ message: String, table: TableName? = nil, column: String? = nil) -> ReplicationError {
    ReplicationError(.invalidScope, message, table: table?.text, column: column)
  }
}
