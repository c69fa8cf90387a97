import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Rows with NULL in the key, which nothing but their content identifies. A content that one side has more often than the
/// other travels as DELETEs or INSERTs of whole rows.
struct RowMultiset {
  /// The number of additional rows with each content in the newer database.
  private var surplus: [[UInt8]: Int] = [:]
  /// The contents in the order in which they were met.
  private var order: [[UInt8]] = []

  private let encoder: ChangeEncoder

  init(of table: TableDefinition) { encoder = ChangeEncoder(of: table) }

  /// Counts a row.
  ///
  /// - Parameter operation: DELETE for a row of the older database, INSERT for one of the newer.
  mutating func add<Row: RowValues & ~Copyable>(_ operation: ChangeOperation, _ row: borrowing Row) throws {
    var writer = ChangesetWriter()
    try encoder.append(row, to: &writer)
    let content = writer.bytes
    if surplus[content] == nil { order.append(content) }
    surplus[content, default: 0] += operation == .insert ? 1 : -1
  }

  /// Writes the difference when all rows have been counted.
  func write(into changes: ChangeCollector) throws {
    for content in order {
      let difference = surplus[content] ?? 0
      try content.withUnsafeBytes { values in
        for _ in 0..<abs(difference) { try changes.add(difference < 0 ? .delete : .insert, encoded: values) }
      }
    }
  }
}
