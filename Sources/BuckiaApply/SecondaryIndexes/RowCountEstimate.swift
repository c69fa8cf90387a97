import SQLiteConnections
import SQLiteSchemas

extension TableDefinition {
  /// How many rows the table has, or a few more.
  ///
  /// SQLite keeps no count. Two look-ups tell that there are at most so many where rowids are dense; otherwise rows are
  /// counted, and no more than are of interest.
  ///
  /// - Parameter limit: Where counting ends.
  /// - Returns: nil when there are more than `limit`.
  /// - Throws: `SQLiteError` when the table cannot be read.
  func rowCountEstimate(upTo limit: Int, on connection: borrowing SQLiteConnection) throws(SQLiteError) -> Int? {
    let table = "main.\(SQLText.identifier(name))"
    if !isWithoutRowID, let rowID = rowIDName {
      // As numbers with a fraction, which do not overflow. The sum of both ends would be a scan.
      let span = try connection.prepare(
        "SELECT (SELECT max(\(rowID)) FROM \(table)) * 1.0 - (SELECT min(\(rowID)) FROM \(table)) + 1")
      guard try span.step(), !span.isNull(at: 0) else { return 0 }
      if span.real(at: 0) <= Double(limit) { return Int(span.real(at: 0)) }
    }
    let count = try connection.integer("SELECT count(*) FROM (SELECT 1 FROM \(table) LIMIT \(limit + 1))") ?? 0
    return count <= limit ? Int(count) : nil
  }
}
