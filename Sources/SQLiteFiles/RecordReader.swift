import BuckiaBytes

/// Decodes records: the values of one row. See <https://sqlite.org/fileformat2.html#record_format>.
///
/// One reader decodes any number of records, one after the other. Values are valid until the next record is read.
///
/// A record does not know its table. Columns have the order of the CREATE TABLE statement, but for two exceptions: an
/// INTEGER PRIMARY KEY is stored as NULL, its value is the rowid; and WITHOUT ROWID tables store their key columns first.
/// A REAL column may hold an integer in place of a whole number.
public final class RecordReader {
  /// A value of a record.
  ///
  /// Text and blobs point into the record.
  public enum Value {
    /// NULL.
    case null
    /// An integer.
    case integer(Int64)
    /// A floating-point number, never NaN.
    case real(Double)
    /// Text in the encoding of the database.
    case text(UnsafeRawBufferPointer)
    /// A blob.
    case blob(UnsafeRawBufferPointer)
  }

  /// The storage class of a value.
  package enum StorageClass: Sendable {
    case null, integer, real, text, blob
  }

  private struct Column {
    var serialType: UInt32
    var start: Int
    var count: Int
  }

  /// The number of columns of the current record, up to the reader's limit.
  public private(set) var columnCount = 0
  private var columns: UnsafeMutableBufferPointer<Column>
  private var bytes = UnsafeRawBufferPointer(start: nil, count: 0)

  /// The most columns that SQLite can be compiled for. See <https://sqlite.org/limits.html#max_column>.
  private static let columnLimit = 32_767

  /// Creates a reader.
  ///
  /// - Parameter limit: The number of columns to decode, from the first.
  public init(limit: Int) { columns = .allocate(capacity: max(0, min(limit, Self.columnLimit))) }

  deinit { columns.deallocate() }

  /// Decodes the header of a record.
  ///
  /// - Parameters:
  ///   - bytes: The whole payload. It must stay valid while values are read.
  ///   - page: The page number to report in the error.
  /// - Throws: `DatabaseFileError` with `badRecord`, in the cases in which SQLite reports a corrupt database, too.
  public func read(_ bytes: UnsafeRawBufferPointer, page: Int) throws(DatabaseFileError) {
    self.bytes = bytes
    columnCount = 0
    var position = 0
    guard let size = bytes.varint(at: &position), size >= UInt64(position), size <= UInt64(bytes.count) else {
      throw Self.fault(page)
    }
    let end = Int(size)
    var start = end
    var count = 0
    while position < end, count < columns.count {
      guard let type = bytes.varint(at: &position), type <= 0xffff_ffff else { throw Self.fault(page) }
      let length: Int
      switch type {
      case 0, 8, 9: length = 0
      case 1...4: length = Int(type)
      case 5: length = 6
      case 6, 7: length = 8
      // Reserved for internal use; never in a well-formed file.
      case 10, 11: throw Self.fault(page)
      default: length = Int(type - 12) >> 1
      }
      columns[count] = Column(serialType: UInt32(type), start: start, count: length)
      start += length
      count += 1
    }
    guard position <= end, start <= bytes.count else { throw Self.fault(page) }
    // When all columns have been decoded, they must fill the record.
    if position == end, start != bytes.count { throw Self.fault(page) }
    columnCount = count
  }

  private static func fault(_ page: Int) -> DatabaseFileError {
    DatabaseFileError(.badRecord, page: page, "the header of a record does not match its size")
  }

  /// A value of the current record.
  ///
  /// - Parameter column: The index of the column, from 0.
  /// - Returns: nil when the record has no such column. A row that is older than an added column has none for it; SQLite
  ///   reads the column's default then (<https://sqlite.org/lang_altertable.html#alter_table_add_column>).
  public func value(at column: Int) -> Value? {
    guard column >= 0, column < columnCount else { return nil }
    switch storageClass(column) {
    case .null: return .null
    case .integer: return .integer(integer(column))
    case .real: return .real(real(column))
    case .text: return .text(payload(column))
    case .blob: return .blob(payload(column))
    }
  }

  // MARK: Unchecked access

  // The engine switches over the storage class itself. Each caller has checked the column, and reads what it holds.

  /// The storage class of a column. SQLite reads NaN as NULL.
  package func storageClass(_ column: Int) -> StorageClass {
    switch columns[column].serialType {
    case 0: .null
    case 7: real(column).isNaN ? .null : .real
    case 1...6, 8, 9: .integer
    default: columns[column].serialType & 1 == 1 ? .text : .blob
    }
  }

  /// The value of a column that holds an integer.
  package func integer(_ column: Int) -> Int64 {
    let column = columns[column]
    switch column.serialType {
    case 8: return 0
    case 9: return 1
    default:
      var value = Int64(Int8(bitPattern: bytes[column.start]))
      for offset in 1..<max(1, column.count) { value = value << 8 | Int64(bytes[column.start + offset]) }
      return value
    }
  }

  /// The value of a column that holds a floating-point number.
  package func real(_ column: Int) -> Double {
    Double(bitPattern: bytes.number64(at: columns[column].start))
  }

  /// The bytes of a column that holds text or a blob.
  package func payload(_ column: Int) -> UnsafeRawBufferPointer {
    let column = columns[column]
    return UnsafeRawBufferPointer(rebasing: bytes[column.start..<column.start + column.count])
  }
}

/// Big-endian integers and varints. The fixed-size reads are unchecked: the caller has checked that the bytes exist.
extension UnsafeRawBufferPointer {
  /// The two bytes at an offset as a big-endian integer.
  @inline(__always)
  func number16(at offset: Int) -> Int { Int(self[offset]) << 8 | Int(self[offset + 1]) }

  /// The four bytes at an offset as a big-endian integer.
  @inline(__always)
  func number32(at offset: Int) -> UInt32 {
    UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  /// The eight bytes at an offset as a big-endian integer.
  @inline(__always)
  func number64(at offset: Int) -> UInt64 {
    UInt64(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  /// Reads a varint of one to nine bytes and moves past it. See <https://sqlite.org/fileformat2.html#varint>.
  ///
  /// - Returns: nil when the buffer ends inside the varint.
  @inline(__always)
  func varint(at position: inout Int) -> UInt64? {
    guard position < count else { return nil }
    let first = self[position]
    position += 1
    if first < 0x80 { return UInt64(first) }
    return longVarint(UInt64(first & 0x7f), at: &position)
  }

  private func longVarint(_ start: UInt64, at position: inout Int) -> UInt64? {
    var value = start
    for _ in 0..<7 {
      guard position < count else { return nil }
      let byte = self[position]
      position += 1
      value = value << 7 | UInt64(byte & 0x7f)
      if byte < 0x80 { return value }
    }
    guard position < count else { return nil }
    value = value << 8 | UInt64(self[position])
    position += 1
    return value
  }

  /// True if both buffers hold the same bytes.
  @inline(__always)
  func isEqual(to other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count else { return false }
    guard count > 0, let mine = baseAddress, let theirs = other.baseAddress else { return true }
    // Sound: both have `count` bytes.
    return memcmp(mine, theirs, count) == 0
  }
}
