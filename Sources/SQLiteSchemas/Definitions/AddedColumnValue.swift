import BuckiaBytes
import SQLiteConnections

/// What rows that were there before get when a column is added: its default as the column would store it.
package enum AddedColumnValue {
  /// Why SQLite would not add the column, or nil: a default of the wrong type in a STRICT table, for one.
  package static func refusal(of column: ColumnDefinition, isStrict: Bool) -> String? {
    do {
      _ = try literal(of: column, isStrict: isStrict)
      return nil
    } catch {
      return "SQLite cannot add it to a table: \(error.message)"
    }
  }

  /// The value as an SQL literal: the default after the column's affinity has been applied, or NULL.
  ///
  /// `DEFAULT '5'` in an INTEGER column stores the number 5. SQLite itself is asked, in an empty database in memory, so
  /// that author and receiver cannot come to different results.
  package static func literal(of column: ColumnDefinition, isStrict: Bool) throws(SQLiteError) -> String {
    guard column.addedValue != nil else { return "NULL" }
    let scratch = try SQLiteConnection(opening: ":memory:", as: .create)
    try scratch.execute(
      "CREATE TABLE added(\(SQLText.identifier(column.name + "_")) INTEGER)\(isStrict ? " STRICT" : "")")
    try scratch.execute("INSERT INTO added VALUES (1)")
    try scratch.execute("ALTER TABLE added ADD COLUMN \(column.addClause)")
    let name = SQLText.identifier(column.name)
    // quote() writes Inf for an infinite number, which is no literal.
    let infinite = "CASE WHEN typeof(\(name)) = 'real' THEN (\(name) = 9e999) - (\(name) = -9e999) END"
    switch try scratch.integer("SELECT \(infinite) FROM added") {
    case 1: return "9e999"
    case -1: return "-9e999"
    default: return try scratch.text("SELECT quote(\(name)) FROM added") ?? "NULL"
    }
  }
}
