import SQLiteChangesets
import SQLiteConnections

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
