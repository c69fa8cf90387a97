import SQLiteSchemas

/// What a column has in rows that were written before it was added.
enum AddedColumnDefault {
  /// A literal, as it is written in the CREATE TABLE statement, in a column of this affinity. Its spelling matters: in a
  /// TEXT column `1e3` is the text '1e3' and `1E3` the text '1E3'.
  case literal(String, Affinity)
  /// Only SQLite can compute it.
  case computed

  /// - Parameter sql: The default as `PRAGMA table_info` shows it, without the parentheses around it; nil where there is none.
  init(_ column: ColumnDefinition, writtenAs sql: String?, affinity: Affinity) {
    guard let sql else {
      self = .literal("NULL", affinity)
      return
    }
    guard !column.hasExpressionDefault, let literal = column.defaultValue, !literal.isTimeDependent else {
      self = .computed
      return
    }
    // A bare word, which SQLite takes for text, cannot stand in parentheses.
    self = .literal(LiteralDefault(parsing: sql) == nil ? literal.sql : sql, affinity)
  }
}
