import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

extension RowClocks {
  /// Gives a table a clock, unless it has one. It knows of the rows that were deleted before: an INSERT from before that does not bring them
  /// back.
  ///
  /// - Returns: True if the clock is new.
  /// - Throws: `SQLiteError`.
  @discardableResult
  package static func begin(for table: TableDefinition, on connection: borrowing SQLiteConnection) throws -> Bool {
    guard try require(for: table, on: connection), let clock = try number(of: table, on: connection) else {
      return false
    }
    let deleted = try Tombstones.all(of: TableName(table.name), on: connection)
    guard !deleted.isEmpty else { return true }
    let names = ClockKey(of: table).names()
    let values = names.indices.map { "?\($0 + 1)" }
    let isHere = zip(table.keySQL, values).map { "\($0) = \($1)" }.joined(separator: " AND ")
    let insertion = try connection.prepare(
      """
      INSERT OR IGNORE INTO main.buckia_clock_\(clock)(\(names.joined(separator: ", ")), row_versions)
      SELECT \(values.joined(separator: ", ")), ?\(names.count + 1)
      WHERE NOT EXISTS (SELECT 1 FROM main.\(TableName(table.name).quoted) WHERE \(isHere))
      """)
    for (key, diff) in deleted {
      let isOwn = try OutboxEntry.share(of: diff, on: connection) != nil
      let rowVersion = try rowVersion(
        in: clock, by: diff, .delete, ColumnSet(), isOwn ? .own : .applied, on: connection)
      try insertion.bind(rowVersion.number, at: names.count)
      try key.withRawSpan { bytes in
        var position = 0
        for place in names.indices {
          try insertion.bind(ValueSlice(verified: bytes, at: &position), in: bytes, at: place)
        }
        try insertion.run()
      }
    }
    return true
  }
}
