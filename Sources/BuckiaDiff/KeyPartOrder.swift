import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

/// How one column of the key orders the rows of a WITHOUT ROWID table.
struct KeyPartOrder: Equatable {
  /// SQLite's own collating sequences: <https://sqlite.org/datatype3.html#collating_sequences>.
  enum Collation {
    case binary, noCase, rightTrim
  }

  /// The column, among those of the changeset.
  let column: Int
  let collation: Collation
  let isDescending: Bool

  /// - Returns: nil where the order is not known.
  init?(column: Int?, collation: String, isDescending: Bool) {
    guard let column else { return nil }
    switch ASCIIName.uppercased(collation) {
    case "BINARY": self.collation = .binary
    case "NOCASE": self.collation = .noCase
    case "RTRIM": self.collation = .rightTrim
    default: return nil
    }
    self.column = column
    self.isDescending = isDescending
  }

  /// Whether rows lie in the order in which changes are written.
  var isPlain: Bool { collation == .binary && !isDescending }

  /// The order of two values in the tree.
  func order(_ one: RowValue, _ other: RowValue) -> Int {
    var order: Int
    if collation != .binary, case .text(let mine) = one, case .text(let theirs) = other {
      order =
        collation == .noCase ? Self.noCase(mine, theirs) : Self.trimmed(mine).byteOrder(against: Self.trimmed(theirs))
    } else {
      order = one.order(against: other)
    }
    return isDescending ? -order : order
  }

  /// As SQLite does it, up to the first NUL.
  private static func noCase(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Int {
    for index in 0..<min(one.count, other.count) {
      let (mine, theirs) = (ASCIIName.folded(one[index]), ASCIIName.folded(other[index]))
      if mine != theirs { return Int(mine) - Int(theirs) }
      if mine == 0 { break }
    }
    return one.count - other.count
  }

  private static func trimmed(_ text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    var end = text.count
    while end > 0, text[end - 1] == 0x20 { end -= 1 }
    return UnsafeRawBufferPointer(rebasing: text[..<end])
  }
}
