import BuckiaBytes
import SQLiteChangesets

extension InspectedFile {
  /// A value of a change, as the file has it: text by its bytes, also where these are not UTF-8.
  package enum StoredValue {
    case null
    case integer(Int64)
    case real(Double)
    case text([UInt8])
    case blob([UInt8])
  }

  /// A column of a change of which the change says something.
  package struct StoredCell {
    /// The change, counted from 1.
    package let position: Int64
    /// The table.
    package let table: String
    /// What happens to the row.
    package let operation: ChangeOperation
    /// The column.
    package let column: String
    /// Whether the column is part of the key.
    package let isKey: Bool
    /// The value before; nil where the change does not tell one.
    package let old: StoredValue?
    /// The value after; nil where the change does not tell one.
    package let new: StoredValue?
  }

  /// Gives every value to `body`, in the order of the file. Each is in memory as a whole.
  ///
  /// - Throws: `BuckiaError`; whatever `body` throws.
  package func forEachStoredCell(_ body: (StoredCell) throws -> Void) throws {
    try BuckiaError.wrapping { try forEachVerifiedCell(body) }
  }

  private func forEachVerifiedCell(_ body: (StoredCell) throws -> Void) throws {
    var scan = ChangesetScan(changeset)
    var columns: [String] = []
    var position: Int64 = 0
    while try scan.advance() {
      try scan.window.withBytes { bytes in
        while let change = try scan.next(in: bytes) {
          guard let table = scan.reader.table else { continue }
          if change.startsTable { columns = Self.columns(of: table, in: schema) }
          position += 1
          for index in columns.indices {
            let old = try stored(scan.reader.old[index], scan, bytes)
            let new = try stored(scan.reader.new[index], scan, bytes)
            guard old != nil || new != nil else { continue }
            try body(
              StoredCell(
                position: position, table: table.name, operation: change.operation, column: columns[index],
                isKey: table.isKey(index), old: old, new: new))
          }
        }
      }
    }
  }

  private func stored(_ value: ValueSlice, _ scan: ChangesetScan, _ bytes: RawSpan) throws -> StoredValue? {
    switch value.kind {
    case .undefined: nil
    case .null: .null
    case .integer: .integer(value.integer(in: bytes))
    case .real: .real(value.real(in: bytes))
    case .text: .text(try payload(of: value, scan, bytes))
    case .blob: .blob(try payload(of: value, scan, bytes))
    }
  }

  private func payload(of value: ValueSlice, _ scan: ChangesetScan, _ bytes: RawSpan) throws -> [UInt8] {
    guard let range = scan.longValue(value) else {
      return bytes.array(value.payloadRange)
    }
    var payload: [UInt8] = []
    payload.reserveCapacity(range.count)
    try changeset.forEachPiece(range) { payload.append(contentsOf: $0) }
    return payload
  }
}
