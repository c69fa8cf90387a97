import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// A row as sentences name it: `the row id = 4 of table "person"`.
struct RowName: CustomStringConvertible {
  private let table: String
  private let key: [(column: String, value: ChangesetValue)]

  /// - Parameters:
  ///   - table: The table.
  ///   - columns: The columns that tell its rows apart.
  ///   - values: Their values, nil where they are not known.
  init(table: String, columns: [String], values: [ChangesetValue?]) {
    self.table = table
    key = zip(columns, values).compactMap { column, value in value.map { (column, $0) } }
  }

  var description: String {
    let place = "table \(EscapedText.quoted(table))"
    guard !key.isEmpty else { return "a row of \(place)" }
    let values = key.map { "\($0.column.escaped(limit: 40)) = \(Self.text(of: $0.value))" }.joined(separator: ", ")
    return "the row \(values) of \(place)"
  }

  private static func text(of value: ChangesetValue) -> String {
    switch value {
    case .null: "NULL"
    case .integer(let number): "\(number)"
    case .real(let number): "\(number)"
    case .text(let text): "'\(text.escaped(limit: 40))'"
    case .blob(let bytes): "a blob of \(bytes.count) bytes"
    }
  }
}
