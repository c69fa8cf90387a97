import SQLiteChangesets

/// Rows with NULL in the key, which have no identity but their content: what is there more often on one side travels whole.
struct KeylessRows {
  /// How many more rows of a content there are in the newer database.
  private var surplus: [[UInt8]: Int] = [:]
  /// The contents in the order in which they were met.
  private var order: [[UInt8]] = []

  /// Counts a row.
  ///
  /// - Parameters:
  ///   - content: Its encoded values.
  ///   - operation: DELETE for one of the older database, INSERT for one of the newer.
  mutating func add(_ content: [UInt8], _ operation: ChangeOperation) {
    if surplus[content] == nil { order.append(content) }
    surplus[content, default: 0] += operation == .insert ? 1 : -1
  }

  /// Writes what is left when all rows have been counted.
  func write(into changes: ChangeCollector) throws {
    for content in order {
      let difference = surplus[content] ?? 0
      for _ in 0..<abs(difference) {
        try changes.add(difference < 0 ? .delete : .insert) { $0.append(encoded: content) }
      }
    }
  }
}
