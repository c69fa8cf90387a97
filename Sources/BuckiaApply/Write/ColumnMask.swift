/// A set of columns by their places, cheap to compare and to hash: statements are looked up by such sets for each row.
struct ColumnMask: Hashable {
  /// Columns 0 to 63.
  private var first: UInt64 = 0
  /// The columns beyond; no words at the end that are zero, so that equal sets are equal.
  private var rest: [UInt64] = []

  /// Whether no column is in it.
  var isEmpty: Bool { first == 0 && rest.isEmpty }

  /// Adds a column.
  @inline(__always)
  mutating func insert(_ column: Int) {
    if column < 64 { first |= 1 << UInt64(column) } else { insertBeyond(column) }
  }

  private mutating func insertBeyond(_ column: Int) {
    let word = column / 64 - 1
    while rest.count <= word { rest.append(0) }
    rest[word] |= 1 << UInt64(column % 64)
  }

  /// The columns that are in this set, or in another.
  func union(_ other: ColumnMask) -> ColumnMask {
    var union = ColumnMask()
    union.first = first | other.first
    union.rest = (0..<max(rest.count, other.rest.count)).map { word($0) | other.word($0) }
    return union
  }

  /// Adds the columns of another set.
  mutating func formUnion(_ other: ColumnMask) { if !other.isEmpty { self = union(other) } }

  /// The columns that are in this set, and not in another.
  func subtracting(_ other: ColumnMask) -> ColumnMask {
    if other.isEmpty { return self }
    var difference = ColumnMask()
    difference.first = first & ~other.first
    difference.rest = rest.indices.map { rest[$0] & ~other.word($0) }
    while difference.rest.last == 0 { difference.rest.removeLast() }
    return difference
  }

  private func word(_ index: Int) -> UInt64 { index < rest.count ? rest[index] : 0 }

  /// Whether a column is in it.
  func contains(_ column: Int) -> Bool {
    if column < 64 { return first >> UInt64(column) & 1 != 0 }
    let word = column / 64 - 1
    return word < rest.count && rest[word] >> UInt64(column % 64) & 1 != 0
  }
}
