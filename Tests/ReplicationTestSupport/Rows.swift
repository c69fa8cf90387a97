import SQLiteConnections
import SQLiteSchemas

/// The rows of tables as text that distinguishes all values, by storage class and bytes.
package enum Rows {
  /// One row: the value of each column by its name.
  package typealias Row = [String: String]

  /// A value in a unique notation.
  package static func text(of row: borrowing SQLiteStatement, at column: Int) -> String {
    switch row.storageClass(at: column) {
    case .null: "NULL"
    case .integer: "\(row.integer(at: column))"
    case .real: "real \(row.real(at: column)) \(String(row.real(at: column).bitPattern, radix: 16))"
    case .text: "text \(row.text(at: column)?.debugDescription ?? "") \(Array(row.textBytes(at: column)))"
    case .blob: "blob \(row.blob(at: column))"
    }
  }

  /// All rows of a table.
  package static func all(
    of table: String, columns: [String], on connection: borrowing SQLiteConnection
  ) throws -> [Row] {
    let names = columns.map(SQLText.identifier).joined(separator: ", ")
    var rows: [Row] = []
    try connection.forEachRow(of: "SELECT \(names) FROM \(SQLText.identifier(table))") { row in
      var values: Row = [:]
      for (index, name) in columns.enumerated() { values[name] = text(of: row, at: index) }
      rows.append(values)
    }
    return rows
  }

  /// All rows of a table, the values of each in the order of the columns.
  package static func lists(
    of table: String, columns: [String], on connection: borrowing SQLiteConnection
  ) throws -> [[String]] {
    let names = columns.map { $0 == "_rowid_" ? $0 : SQLText.identifier($0) }.joined(separator: ", ")
    var rows: [[String]] = []
    try connection.forEachRow(of: "SELECT \(names) FROM \(SQLText.identifier(table))") { row in
      rows.append(columns.indices.map { text(of: row, at: $0) })
    }
    return rows
  }

  /// All rows of a table as sorted lines.
  package static func lines(
    of table: String, columns: [String], on connection: borrowing SQLiteConnection
  ) throws -> [String] {
    try all(of: table, columns: columns, on: connection)
      .map { row in columns.map { "\($0): \(row[$0] ?? "")" }.joined(separator: " | ") }.sorted()
  }
}
