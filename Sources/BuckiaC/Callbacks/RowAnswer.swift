import Buckia
import CBuckia

/// What `buckia_row` points to: the row that a resolver makes up.
final class RowAnswer {
  private(set) var values: [String: ChangesetValue] = [:]

  func set(_ column: String, _ value: ChangesetValue) { values[column] = value }

  func removeAll() { values.removeAll(keepingCapacity: true) }
}

extension ChangesetValue {
  /// Copies a value that a program gives.
  ///
  /// - Throws: `BuckiaError` with `misuse` when it is none.
  init(_ value: buckia_value, of column: String) throws {
    switch value.type {
    case BUCKIA_NULL: self = .null
    case BUCKIA_INTEGER: self = .integer(value.integer)
    case BUCKIA_REAL: self = .real(value.real)
    case BUCKIA_TEXT:
      let bytes = try Arguments.array(value.bytes?.assumingMemoryBound(to: UInt8.self), value.length, "bytes")
      guard let text = String(validating: bytes, as: UTF8.self) else {
        throw Arguments.misuse("the text for column \(column) is not UTF-8")
      }
      self = .text(text)
    case BUCKIA_BLOB:
      self = .blob(Array(try Arguments.array(value.bytes?.assumingMemoryBound(to: UInt8.self), value.length, "bytes")))
    default: throw Arguments.misuse("the value for column \(column) has no type")
    }
  }

  /// The values that a program gives for columns.
  ///
  /// - Throws: `BuckiaError` with `misuse` when one is none.
  static func values(_ cells: UnsafePointer<buckia_cell>?, _ count: Int) throws -> [String: ChangesetValue] {
    var values: [String: ChangesetValue] = [:]
    for cell in try Arguments.array(cells, count, "values") {
      let column = try Arguments.text(cell.column, "the name of a column")
      values[column] = try ChangesetValue(cell.value, of: column)
    }
    return values
  }
}
