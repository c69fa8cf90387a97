/// Takes a record apart: the values of one row, as they are stored.
///
/// See <https://sqlite.org/fileformat2.html#record_format>. A reader is used for one record after the other; what it says
/// holds until the next.
public final class RecordReader {
  /// What kind of value a field holds.
  public enum Kind: Sendable {
    case null, integer, real, text, blob
  }

  private struct Field {
    var type: UInt32
    var start: Int
    var count: Int
  }

  /// How many fields there are, of those that are wanted.
  public private(set) var fieldCount = 0
  private var fields: UnsafeMutableBufferPointer<Field>
  private var bytes = UnsafeRawBufferPointer(start: nil, count: 0)

  /// - Parameter limit: How many fields are wanted: those behind them are not looked at.
  public init(limit: Int) { fields = .allocate(capacity: limit) }

  deinit { fields.deallocate() }

  /// Reads a record's header.
  ///
  /// - Parameters:
  ///   - bytes: The whole payload; it must stay where it is as long as the reader is asked about it.
  ///   - page: Where it is from, for the error.
  /// - Throws: `DatabaseFileError` with `badRecord`, where SQLite would find damage, too.
  public func read(_ bytes: UnsafeRawBufferPointer, page: Int) throws(DatabaseFileError) {
    self.bytes = bytes
    fieldCount = 0
    var position = 0
    guard let size = bytes.varint(at: &position), size >= UInt64(position), size <= UInt64(bytes.count) else {
      throw Self.fault(page)
    }
    let end = Int(size)
    var start = end
    var count = 0
    while position < end, count < fields.count {
      guard let type = bytes.varint(at: &position), type <= 0xffff_ffff else { throw Self.fault(page) }
      let length: Int
      switch type {
      case 0, 8, 9: length = 0
      case 1...4: length = Int(type)
      case 5: length = 6
      case 6, 7: length = 8
      // Reserved; never in a well-formed file.
      case 10, 11: throw Self.fault(page)
      default: length = Int(type - 12) >> 1
      }
      fields[count] = Field(type: UInt32(type), start: start, count: length)
      start += length
      count += 1
    }
    guard position <= end, start <= bytes.count else { throw Self.fault(page) }
    // Where all fields have been read, they must fill the record.
    if position == end, start != bytes.count { throw Self.fault(page) }
    fieldCount = count
  }

  private static func fault(_ page: Int) -> DatabaseFileError {
    DatabaseFileError(.badRecord, page: page, "a row's header does not fit its length")
  }

  /// What a field holds. A number that is none (NaN) is NULL to SQLite.
  public func kind(_ field: Int) -> Kind {
    switch fields[field].type {
    case 0: .null
    case 7: real(field).isNaN ? .null : .real
    case 1...6, 8, 9: .integer
    default: fields[field].type & 1 == 1 ? .text : .blob
    }
  }

  /// The value of a field that holds an integer.
  public func integer(_ field: Int) -> Int64 {
    let field = fields[field]
    switch field.type {
    case 8: return 0
    case 9: return 1
    default:
      var value = Int64(Int8(bitPattern: bytes[field.start]))
      for offset in 1..<max(1, field.count) { value = value << 8 | Int64(bytes[field.start + offset]) }
      return value
    }
  }

  /// The value of a field that holds a floating-point number.
  public func real(_ field: Int) -> Double {
    Double(bitPattern: bytes.number64(at: fields[field].start))
  }

  /// The bytes of a field that holds text, in the encoding of the database, or a blob.
  public func payload(_ field: Int) -> UnsafeRawBufferPointer {
    let field = fields[field]
    return UnsafeRawBufferPointer(rebasing: bytes[field.start..<field.start + field.count])
  }
}
