/// A set of columns by their positions in a row clock.
package struct ColumnSet: Hashable, Sendable {
  /// A bit for each position, the first in the lowest bit of the first byte; no zero bytes at the end, so that equal
  /// sets are equal.
  package private(set) var bytes: [UInt8]

  /// Makes an empty set.
  package init() { bytes = [] }

  /// Reads a set as the table `buckia_stamp` has it.
  package init(bytes: [UInt8]) {
    self.bytes = bytes
    trim()
  }

  /// Whether no column is in it.
  package var isEmpty: Bool { bytes.isEmpty }

  /// Adds a column.
  package mutating func insert(_ position: Int) {
    while bytes.count <= position / 8 { bytes.append(0) }
    bytes[position / 8] |= 1 << UInt8(position % 8)
  }

  /// Whether a column is in it.
  package func contains(_ position: Int) -> Bool {
    position / 8 < bytes.count && bytes[position / 8] >> UInt8(position % 8) & 1 != 0
  }

  /// Whether all columns of another set are in it.
  package func isSuperset(of other: ColumnSet) -> Bool {
    other.bytes.count <= bytes.count && zip(other.bytes, bytes).allSatisfy { $0 & ~$1 == 0 }
  }

  /// Adds all columns of another set.
  package mutating func formUnion(_ other: ColumnSet) {
    while bytes.count < other.bytes.count { bytes.append(0) }
    for (index, byte) in other.bytes.enumerated() { bytes[index] |= byte }
  }

  /// The positions, ascending.
  package var positions: [Int] { (0..<8 * bytes.count).filter { contains($0) } }

  private mutating func trim() {
    while bytes.last == 0 { bytes.removeLast() }
  }
}
