import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A hash of a row as a stream has it: the sum of the hashes of its values, so it follows a change of one column without the others.
///
/// It tells whether a row has been edited here since it came. Nobody gains by values that collide: a row of their own would count as
/// unedited.
struct StreamRowHash {
  private(set) var value: UInt64 = 0

  init() {}

  /// The hash of a whole row.
  init(_ row: [ValueSlice], _ bytes: RawSpan, of columns: [String]) {
    for (value, column) in zip(row, columns) where value.isDefined { add(value, bytes, column) }
  }

  mutating func add(_ value: ValueSlice, _ bytes: RawSpan, _ column: String) {
    self.value &+= Self.hash(of: bytes.extracting(value.encoded), column)
  }

  mutating func remove(_ value: ValueSlice, _ bytes: RawSpan, _ column: String) {
    self.value &-= Self.hash(of: bytes.extracting(value.encoded), column)
  }

  /// FNV-1a over the name of the column, in lower case, and the value as a changeset has it, mixed so that sums tell rows apart.
  private static func hash(of value: RawSpan, _ column: String) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in ASCIIName.folded(column).utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
    hash = (hash ^ 0xff) &* 0x0000_0100_0000_01b3
    value.withUnsafeBytes { bytes in
      for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
    }
    hash ^= hash >> 32
    hash = hash &* 0xd6e8_feb8_6659_fd93
    return hash ^ (hash >> 32)
  }
}
