import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections

/// The hash of a stream's version of a row: the sum of the hashes of its values. It can follow an UPDATE without the
/// columns that stay the same.
///
/// The hash shows if a row was edited here since it arrived. Colliding values gain an attacker nothing: only rows of
/// their own would count as unedited.
struct StreamRowHash {
  /// The initial value for the hashes of a column.
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
  /// - Parameter seeds: The initial values of the columns.
  init(_ row: [ValueSlice], _ bytes: RawSpan, _ seeds: [Seed]) {
    for place in row.indices where row[place].isDefined { add(row[place], bytes, seeds[place]) }
  }

  /// The hash of some columns of a result.
  ///
  /// - Parameter seeds: The initial values of the columns.
  init(of row: borrowing SQLiteStatement, from start: Int, _ seeds: [Seed]) {
    let record = row.record(of: start..<start + seeds.count)
    value = record.withRawSpan { StreamRowHash(ValueSlice.values(seeds.count, of: $0), $0, seeds).value }
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
    return finished(hash &* mix)
  }

  private static func finished(_ hash: UInt64) -> UInt64 {
    let mixed = (hash ^ hash >> 32) &* mix
    return mixed ^ (mixed >> 32)
  }

  private static let prime: UInt64 = 0x0000_0100_0000_01b3

  private static let mix: UInt64 = 0xd6e8_feb8_6659_fd93

  /// Multiplies and folds the encoded value, eight bytes at a time. The first bytes of the encoding give its length.
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
    return finished(hash)
  }
}
