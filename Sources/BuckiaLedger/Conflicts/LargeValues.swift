import SQLiteChangesets
import SQLiteConnections

/// The table `buckia_value`: the large values of conflict records, each stored once however many records have it.
///
/// In a record, a reference replaces such a value: a type byte that no changeset has, and the number of the value.
/// Otherwise a small file with many changes of a row that has a large value would copy that value for each of them.
enum LargeValues {
  static let definition = """
    CREATE TABLE main.buckia_value(
      value INTEGER PRIMARY KEY,
      hash INTEGER NOT NULL,
      content BLOB NOT NULL
    );
    CREATE INDEX main.buckia_value_hash ON buckia_value(hash);
    """

  /// From how many bytes on a value is stored by itself.
  static let byteLimit = 256
  /// The kind byte of a reference; the number of the value follows in eight bytes, big-endian.
  private static let reference: UInt8 = 6

  /// A record with references in the place of its large values, which are stored.
  ///
  /// - Parameters:
  ///   - record: Encoded values, one after the other.
  ///   - room: The number of bytes that may be added to the table; values that do not fit are left out of the record.
  ///     Nil for no limit.
  ///   - connection: The database, with a transaction open.
  static func compacted(
    _ record: RawSpan, room: inout Int?, on connection: borrowing SQLiteConnection
  ) throws -> [UInt8] {
    var writer = ChangesetWriter()
    var position = 0
    while position < record.byteCount {
      let value = ValueSlice(verified: record, at: &position)
      guard value.count > byteLimit else {
        writer.append(value, of: record)
        continue
      }
      let encoded = record.extracting(value.encoded)
      // Sound: the bytes are bound, run and unbound within the closure.
      guard let number = try encoded.withUnsafeBytes({ try number(of: $0, room: &room, on: connection) }) else {
        writer.appendUndefined()
        continue
      }
      writer.append(encoded: [reference])
      withUnsafeBytes(of: number.bigEndian) { writer.append(encoded: $0) }
    }
    return writer.bytes
  }

  /// The number of a value, which is stored if it is missing; nil if there is no room for it.
  private static func number(
    of encoded: UnsafeRawBufferPointer, room: inout Int?, on connection: borrowing SQLiteConnection
  ) throws -> Int64? {
    let hash = Int64(bitPattern: hash(encoded))
    let find = try connection.cached("SELECT value FROM main.buckia_value WHERE hash = ?1 AND content = ?2")
    try find.statement.bind(hash, at: 0)
    try find.statement.bind(blobNoCopy: encoded, at: 1)
    let known = try find.statement.step() ? find.statement.integer(at: 0) : nil
    find.statement.reset()
    find.statement.clearBindings()
    if let known { return known }
    if let left = room {
      guard encoded.count <= left else { return nil }
      room = left - encoded.count
    }
    let insert = try connection.cached("INSERT INTO main.buckia_value(hash, content) VALUES (?1, ?2) RETURNING value")
    try insert.statement.bind(hash, at: 0)
    try insert.statement.bind(blobNoCopy: encoded, at: 1)
    defer {
      insert.statement.reset()
      insert.statement.clearBindings()
    }
    return try insert.statement.step() ? insert.statement.integer(at: 0) : nil
  }

  /// FNV-1a with 64 bits (RFC 9923). It only finds candidates; bytes are compared.
  private static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return hash
  }

  /// Reads records, with their large values.
  final class Reader {
    private let connection: SQLiteConnection
    /// Values that were read last, and how many bytes they have.
    private var known: [Int64: ChangesetValue?] = [:]
    private var knownBytes = 0
    private let cacheLimit: Int

    /// - Parameter cacheLimit: The most bytes of values that are cached for later records.
    init(on connection: borrowing SQLiteConnection, cacheLimit: Int = 32 << 20) {
      self.connection = SQLiteConnection(sharing: connection)
      self.cacheLimit = cacheLimit
    }

    /// The values of a record; nil for undefined ones.
    ///
    /// - Throws: `ChangesetError` when the record is damaged, `SQLiteError`.
    func values(of record: [UInt8]) throws -> [ChangesetValue?] {
      var values: [ChangesetValue?] = []
      var position = 0
      while position < record.count {
        if let number = try Self.reference(in: record, at: &position) {
          values.append(try value(number))
        } else {
          values.append(
            try record.withRawSpan { span in ChangesetValue(try ValueSlice(reading: span, at: &position), in: span) })
        }
      }
      return values
    }

    /// The encoded values of a record, exact to the byte; nil for undefined ones.
    ///
    /// - Parameter readsLargeValues: False to return nil for large values, too.
    /// - Throws: `ChangesetError` when the record is damaged, `SQLiteError`.
    func encodedValues(of record: [UInt8], readingLargeValues readsLargeValues: Bool = true) throws -> [[UInt8]?] {
      var values: [[UInt8]?] = []
      var position = 0
      while position < record.count {
        if let number = try Self.reference(in: record, at: &position) {
          let content = readsLargeValues ? try content(number) : []
          values.append(content.isEmpty ? nil : content)
        } else {
          let value = try record.withRawSpan { span in try ValueSlice(reading: span, at: &position) }
          values.append(value.isDefined ? Array(record[value.encoded]) : nil)
        }
      }
      return values
    }

    /// True if a record refers to large values.
    ///
    /// - Throws: `ChangesetError` when the record is damaged.
    func hasLargeValues(_ record: [UInt8]) throws -> Bool {
      var position = 0
      while position < record.count {
        if record[position] == LargeValues.reference { return true }
        _ = try record.withRawSpan { try ValueSlice(reading: $0, at: &position) }
      }
      return false
    }

    /// The number of the large value in a reference at a position, and the position after it; nil for an ordinary
    /// value.
    private static func reference(in record: [UInt8], at position: inout Int) throws -> Int64? {
      guard record[position] == LargeValues.reference else { return nil }
      guard record.count - position > 8 else { throw ChangesetError(.truncated, offset: position) }
      defer { position += 9 }
      return record[(position + 1)...(position + 8)].reduce(0) { $0 << 8 | Int64($1) }
    }

    /// The encoded values of the record in a column of a row; nil for none.
    func encodedValues(_ row: borrowing SQLiteStatement, at column: Int) throws -> [[UInt8]?]? {
      row.isNull(at: column) ? nil : try encodedValues(of: row.blob(at: column))
    }

    /// The encoded value with a number; empty if it is missing.
    private func content(_ number: Int64) throws -> [UInt8] {
      try connection.first(ofCached: "SELECT content FROM main.buckia_value WHERE value = ?1", number) {
        $0.blob(at: 0)
      } ?? []
    }

    private func value(_ number: Int64) throws -> ChangesetValue? {
      if let value = known[number] { return value }
      let content = try content(number)
      let value = try ChangesetValue.record(content).first ?? nil
      if knownBytes + content.count > cacheLimit {
        known.removeAll()
        knownBytes = 0
      }
      known[number] = .some(value)
      knownBytes += content.count
      return value
    }
  }
}
