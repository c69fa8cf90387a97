import SQLiteConnections

extension Exchange {
  /// Rows of the receiver's database as a person reads them, columns parted by bars.
  func texts(_ sql: String) throws -> [String] {
    let connection = try SQLiteConnection(opening: mine, as: .readOnly)
    var rows: [String] = []
    try connection.forEachRow(of: sql) { row in
      rows.append((0..<row.columnCount).map { row.text(at: $0) ?? "NULL" }.joined(separator: "|"))
    }
    return rows
  }
}
