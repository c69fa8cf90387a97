import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A hash of values that is equal wherever a search by content takes them for equal.
///
/// Where a column has an affinity, numbers hash by their value, whatever their storage class. Where it has none, 1 and 1.0 hash
/// differently, as do 0.0 and -0.0. It is seeded anew in each process: nobody can choose rows that collide.
struct ContentHash {
  private var hasher = Hasher()

  /// The hash of all values that were added.
  var value: Int64 { Int64(hasher.finalize()) }

  private enum Kind: UInt8 { case null, integer, real, text, blob }

  /// Adds a value of a stored row.
  ///
  /// - Parameters:
  ///   - column: Its place in the row that the statement stands on.
  ///   - affinity: The column's affinity.
  mutating func add(_ column: Int, of row: borrowing SQLiteStatement, _ affinity: Affinity) {
    switch row.storageClass(at: column) {
    case .null: addNull()
    case .integer: add(row.integer(at: column), affinity)
    case .real: add(row.real(at: column), affinity)
    case .text: add(.text, row.textBytes(at: column))
    case .blob: add(.blob, row.blobBytes(at: column))
    }
  }

  /// Adds a value of a change, which the column would store as it is, or as an equal number.
  mutating func add(_ value: ValueSlice, in bytes: RawSpan, _ affinity: Affinity) {
    switch value.kind {
    case .undefined, .null: addNull()
    case .integer: add(value.integer(in: bytes), affinity)
    case .real: add(value.real(in: bytes), affinity)
    case .text: bytes.extracting(value.payloadRange).withUnsafeBytes { add(.text, $0) }
    case .blob: bytes.extracting(value.payloadRange).withUnsafeBytes { add(.blob, $0) }
    }
  }

  private mutating func addNull() { hasher.combine(Kind.null.rawValue) }

  private mutating func add(_ number: Int64, _ affinity: Affinity) {
    if affinity != .blob, Int64(exactly: Double(number)) == number { return add(Double(number), affinity) }
    hasher.combine(Kind.integer.rawValue)
    hasher.combine(number)
  }

  private mutating func add(_ number: Double, _ affinity: Affinity) {
    // SQLite takes NaN for NULL.
    if number.isNaN { return addNull() }
    hasher.combine(Kind.real.rawValue)
    hasher.combine(number == 0 && affinity != .blob ? 0 : number.bitPattern)
  }

  private mutating func add(_ kind: Kind, _ bytes: UnsafeRawBufferPointer) {
    hasher.combine(kind.rawValue)
    hasher.combine(bytes.count)
    hasher.combine(bytes: bytes)
  }
}
