import SQLiteChangesets
import SQLiteConnections

extension ChangesetValue {
  /// Copies a value of a row; text that is not valid UTF-8 is repaired.
  package init(_ row: borrowing SQLiteStatement, at column: Int) {
    switch row.storageClass(at: column) {
    case .null: self = .null
    case .integer: self = .integer(row.integer(at: column))
    case .real: self = .real(row.real(at: column))
    case .text: self = .text(row.text(at: column) ?? "")
    case .blob: self = .blob(row.blob(at: column))
    }
  }
}

extension SQLiteStatement {
  /// Binds a value to a parameter.
  package func bind(_ value: ChangesetValue, at index: Int) throws(SQLiteError) {
    switch value {
    case .null: try bindNull(at: index)
    case .integer(let number): try bind(number, at: index)
    case .real(let number): try bind(number, at: index)
    case .text(let text): try bind(text, at: index)
    case .blob(let bytes): try bind(bytes, at: index)
    }
  }

  /// The values of some columns of the current row, in the format of changesets.
  package func record(of columns: Range<Int>) -> [UInt8] {
    var writer = ChangesetWriter()
    for column in columns { writer.append(column: column, of: self) }
    return writer.bytes
  }
}

extension SchemaStatement {
  /// Takes the columns `type`, `name`, `tbl_name` and `sql` of `sqlite_schema`; nil for another type.
  init?(_ row: borrowing SQLiteStatement) {
    guard let kind = Kind(rawValue: row.text(at: 0) ?? "") else { return nil }
    self.init(kind, name: row.text(at: 1) ?? "", table: row.text(at: 2) ?? "", sql: row.text(at: 3) ?? "")
  }
}

extension ChangesetWriter {
  /// Adds the value of a result column, byte for byte.
  package mutating func append(column index: Int, of row: borrowing SQLiteStatement) {
    switch row.storageClass(at: index) {
    case .null: appendNull()
    case .integer: append(integer: row.integer(at: index))
    case .real: append(real: row.real(at: index))
    case .text: append(.text, row.textBytes(at: index))
    case .blob: append(.blob, row.blobBytes(at: index))
    }
  }
}
