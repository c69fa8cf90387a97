import SQLiteConnections
import SQLiteSchemas

/// All rows of a database. Values are distinguished by their storage class and bytes, and rows without a key by their
/// rowids.
struct WholeContent: Equatable {
  /// The rows of each table, sorted.
  let rows: [[UInt8]: [String]]

  /// - Parameter onlyOrdinaryColumns: True if generated columns are left out.
  init(of path: String, leavingOut lost: Set<String> = [], onlyOrdinaryColumns: Bool = false) throws {
    let connection = try SQLiteConnection(opening: path, as: .readOnly)
    var tables: [String] = []
    try connection.forEachRow(
      of: """
        SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
          AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'buckia\\_%' ESCAPE '\\'
        """
    ) { tables.append($0.text(at: 0) ?? "") }
    var rows: [[UInt8]: [String]] = [:]
    for table in tables where !lost.contains(table) {
      var columns: [String] = []
      var hasKey = false
      let names = "SELECT name, pk, hidden FROM pragma_table_xinfo(?1, 'main')"
      try connection.forEachRow(of: names, binding: [table]) { row in
        if row.integer(at: 1) > 0 { hasKey = true }
        if !onlyOrdinaryColumns || row.integer(at: 2) == 0 { columns.append(SQLText.identifier(row.text(at: 0) ?? "")) }
      }
      var lines: [String] = []
      let source = "FROM main.\(SQLText.identifier(table))"
      try connection.forEachRow(of: "SELECT \(columns.joined(separator: ", ")) \(source)") { row in
        lines.append((0..<row.columnCount).map { Self.text(of: row, at: $0) }.joined(separator: "|"))
      }
      if !hasKey {
        // A separate query, because a query with 2,000 columns has no room for the rowid.
        var place = 0
        try connection.forEachRow(of: "SELECT _rowid_ \(source)") { row in
          lines[place] += "|\(row.integer(at: 0))"
          place += 1
        }
      }
      rows[Array(table.utf8)] = lines.sorted()
    }
    self.rows = rows
  }

  private static func text(of row: borrowing SQLiteStatement, at column: Int) -> String {
    switch row.storageClass(at: column) {
    case .null: "NULL"
    case .integer: "\(row.integer(at: column))"
    case .real: "r\(String(row.real(at: column).bitPattern, radix: 16))"
    case .text: "t" + digest(row.textBytes(at: column))
    case .blob: "b" + digest(row.blobBytes(at: column))
    }
  }

  /// The bytes, or their number and a hash if there are many.
  private static func digest(_ bytes: UnsafeRawBufferPointer) -> String {
    guard bytes.count > 64 else { return bytes.map { String($0, radix: 16) }.joined(separator: ".") }
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return "\(bytes.count):\(hash)"
  }
}

/// The counters of AUTOINCREMENT tables.
func counters(of path: String) throws -> [String: Int64] {
  let connection = try SQLiteConnection(opening: path, as: .readOnly)
  guard try connection.integer("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'") != nil else { return [:] }
  var counters: [String: Int64] = [:]
  try connection.forEachRow(of: "SELECT name, seq FROM sqlite_sequence") { row in
    counters[row.text(at: 0) ?? ""] = row.integer(at: 1)
  }
  return counters
}
