import SQLiteChangesets

/// What identifies a row, whatever the types of its columns: `'5'`, `5` and `5.0` are the same.
///
/// An author who gives a column another type converts its values, and a row whose key was converted travels as a DELETE and
/// an INSERT. This is how the two are known to be about one row. It is a hash: two rows can have the same one by chance.
package struct RowIdentity: Hashable, Sendable {
  private let hash: Int

  /// - Parameters:
  ///   - values: The values that identify the row, in the order of their columns.
  ///   - bytes: The bytes in which they lie.
  package init(_ values: [ValueSlice], in bytes: RawSpan) {
    var hasher = Hasher()
    for value in values {
      switch value.kind {
      case .undefined, .null: hasher.combine(0)
      case .integer: Self.combine(value.integer(in: bytes), into: &hasher)
      case .real: Self.combine(value.real(in: bytes), into: &hasher)
      case .text:
        let text = bytes.array(value.payloadRange)
        if let number = SQLText.trimmedNumber(text) {
          Self.combine(number, into: &hasher)
        } else {
          hasher.combine(text)
        }
      case .blob:
        hasher.combine(1)
        hasher.combine(bytes.array(value.payloadRange))
      }
    }
    hash = hasher.finalize()
  }

  private static func combine(_ number: String, into hasher: inout Hasher) {
    if let integer = Int64(number) {
      combine(integer, into: &hasher)
    } else {
      combine(Double(number) ?? .nan, into: &hasher)
    }
  }

  private static func combine(_ number: Int64, into hasher: inout Hasher) {
    hasher.combine(2)
    hasher.combine(number)
  }

  private static func combine(_ number: Double, into hasher: inout Hasher) {
    if let integer = Int64(exactly: number) { return combine(integer, into: &hasher) }
    hasher.combine(3)
    hasher.combine(number.bitPattern)
  }
}
