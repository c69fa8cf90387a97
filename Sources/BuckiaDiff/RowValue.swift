import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteFiles
import SQLiteSchemas

/// One value of a row, borrowed from the position of the row, and valid until that is left.
typealias RowValue = RecordReader.Value

extension RowValue {
  /// True if both have the same storage class and the same bytes: 1 and 1.0 differ, as do `a` and `A`.
  @inline(__always)
  func isIdentical(to other: RowValue) -> Bool {
    switch (self, other) {
    case (.null, .null): true
    case (.integer(let mine), .integer(let theirs)): mine == theirs
    case (.real(let mine), .real(let theirs)): mine.bitPattern == theirs.bitPattern
    case (.text(let mine), .text(let theirs)), (.blob(let mine), .blob(let theirs)):
      mine.count == theirs.count && mine.byteOrder(against: theirs) == 0
    default: false
    }
  }

  /// SQLite's order under the collating sequence BINARY: NULL, numbers, text, blobs. Negative, zero or positive.
  ///
  /// See <https://sqlite.org/datatype3.html#comparison_expressions>.
  @inline(__always)
  func order(against other: RowValue) -> Int {
    switch (self, other) {
    case (.integer(let mine), .integer(let theirs)): mine < theirs ? -1 : mine == theirs ? 0 : 1
    case (.real(let mine), .real(let theirs)): mine < theirs ? -1 : mine == theirs ? 0 : 1
    case (.integer(let mine), .real(let theirs)): ValueSlice.order(mine, against: theirs)
    case (.real(let mine), .integer(let theirs)): -ValueSlice.order(theirs, against: mine)
    case (.text(let mine), .text(let theirs)), (.blob(let mine), .blob(let theirs)): mine.byteOrder(against: theirs)
    default: rank - other.rank
    }
  }

  private var rank: Int {
    switch self {
    case .null: 0
    case .integer, .real: 1
    case .text: 2
    case .blob: 3
    }
  }

  var isNull: Bool { if case .null = self { true } else { false } }

  /// Writes the value into a change.
  @inline(__always)
  func append(to writer: inout ChangesetWriter) {
    switch self {
    case .null: writer.appendNull()
    case .integer(let value): writer.append(integer: value)
    case .real(let value): writer.append(real: value)
    case .text(let bytes): writer.append(.text, bytes)
    case .blob(let bytes): writer.append(.blob, bytes)
    }
  }
}

extension SQLiteStatement {
  /// The value of a result column.
  @inline(__always)
  func value(at index: Int) -> RowValue {
    switch storageClass(at: index) {
    case .null: .null
    case .integer: .integer(integer(at: index))
    case .real: .real(real(at: index))
    case .text: .text(textBytes(at: index))
    case .blob: .blob(blobBytes(at: index))
    }
  }
}

extension ValueSlice {
  /// The value here; NULL for none.
  func value(in bytes: UnsafeRawBufferPointer) -> RowValue {
    switch kind {
    case .undefined, .null: .null
    case .integer: .integer(integer(in: bytes.bytes))
    case .real: .real(real(in: bytes.bytes))
    case .text: .text(UnsafeRawBufferPointer(rebasing: bytes[payloadRange]))
    case .blob: .blob(UnsafeRawBufferPointer(rebasing: bytes[payloadRange]))
    }
  }
}

/// A row whose values can be had by the columns of the changeset.
protocol RowValues: ~Copyable {
  /// The value of a column.
  func value(_ column: Int) throws -> RowValue

  /// Writes the value of a column into a change.
  func append(_ column: Int, to writer: inout ChangesetWriter) throws
}

extension RowValues where Self: ~Copyable {
  func append(_ column: Int, to writer: inout ChangesetWriter) throws { try value(column).append(to: &writer) }
}

/// How one column of the key orders the rows of a WITHOUT ROWID table.
struct KeyPartOrder: Equatable {
  /// The column, among those of the changeset.
  let column: Int
  let collation: BuiltInCollation
  let isDescending: Bool

  /// - Returns: nil if the order is not known.
  init?(column: Int?, collation: String, isDescending: Bool) {
    guard let column, let collation = BuiltInCollation(named: collation) else { return nil }
    self.column = column
    self.collation = collation
    self.isDescending = isDescending
  }

  /// True if rows lie in the order in which changes are written.
  var isPlain: Bool { collation == .binary && !isDescending }

  /// The order of two values in the tree.
  func order(_ one: RowValue, _ other: RowValue) -> Int {
    var order: Int
    if collation != .binary, case .text(let mine) = one, case .text(let theirs) = other {
      order =
        collation == .nocase ? Self.noCase(mine, theirs) : Self.trimmed(mine).byteOrder(against: Self.trimmed(theirs))
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
