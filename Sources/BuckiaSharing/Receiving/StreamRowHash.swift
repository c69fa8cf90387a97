import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// A hash of a row as a stream has it: the sum of the hashes of its values, so it follows a change of one column without the others.
///
/// It tells whether a row has been edited here since it came. Nobody gains by values that collide: a row of their own would count as
/// unedited.
struct StreamRowHash {
  /// What the hashes of a column's values start from.
  struct Seed {
    fileprivate let value: UInt64

    /// FNV-1a over the name of the column, in lower case.
    init(of column: String) {
      var hash: UInt64 = 0xcbf2_9ce4_8422_2325
      for byte in ASCIIName.folded(column).utf8 { hash = (hash ^ UInt64(byte)) &* StreamRowHash.prime }
      value = (hash ^ 0xff) &* StreamRowHash.prime
    }
  }

  private(set) var value: UInt64 = 0

  init(_ value: UInt64 = 0) { self.value = value }

  /// The hash of a whole row.
  ///
  /// - Parameter seeds: Those of the columns.
  init(_ row: [ValueSlice], _ bytes: RawSpan, _ seeds: [Seed]) {
    for place in row.indices where row[place].isDefined { add(row[place], bytes, seeds[place]) }
  }

  /// The hash of one value.
  ///
  /// - Parameter value: The value in the format of changesets.
  init(ofEncoded value: [UInt8], _ seed: Seed) {
    self.value = value.withRawSpan { Self.hash(of: $0, seed) }
  }

  mutating func add(_ value: ValueSlice, _ bytes: RawSpan, _ seed: Seed) {
    self.value &+= Self.hash(of: bytes.extracting(value.encoded), seed)
  }

  mutating func remove(_ value: ValueSlice, _ bytes: RawSpan, _ seed: Seed) {
    self.value &-= Self.hash(of: bytes.extracting(value.encoded), seed)
  }

  /// The hash of a number, as that of its eight bytes, the lowest first.
  static func hash(of number: UInt64, _ seed: Seed) -> UInt64 {
    var hash = (seed.value ^ number) &* mix
    hash ^= hash >> 32
    hash = hash &* mix
    hash ^= hash >> 32
    hash = hash &* mix
    return hash ^ (hash >> 32)
  }

  private static let prime: UInt64 = 0x0000_0100_0000_01b3

  private static let mix: UInt64 = 0xd6e8_feb8_6659_fd93

  /// Multiplies and folds the value as a changeset has it, eight bytes at a time, so that sums tell rows apart. What a changeset
  /// begins a value with tells its length.
  static func hash(of value: RawSpan, _ seed: Seed) -> UInt64 {
    var hash = seed.value
    value.withUnsafeBytes { bytes in
      var offset = 0
      while offset + 8 <= bytes.count {
        hash = (hash ^ UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))) &* mix
        hash ^= hash >> 32
        offset += 8
      }
      var rest: UInt64 = 0
      while offset < bytes.count {
        rest = rest << 8 | UInt64(bytes[offset])
        offset += 1
      }
      hash = (hash ^ rest) &* mix
    }
    hash ^= hash >> 32
    hash = hash &* mix
    return hash ^ (hash >> 32)
  }
}
