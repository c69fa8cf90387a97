import BuckiaBytes

/// Where one value of a change lies in the bytes of its changeset.
///
/// Nothing is copied: the slice stays good for as long as the bytes it was read from.
public struct ValueSlice: Equatable, Sendable {
  /// What kind of value it is.
  public let kind: ValueKind
  /// The offset of the kind byte.
  public let start: Int
  /// The offset of the payload: the number, or the bytes of text or blob.
  public let payload: Int
  /// The length of the payload in bytes: 8 for numbers, 0 for NULL and undefined.
  public let count: Int

  @inlinable
  init(kind: ValueKind, start: Int, payload: Int, count: Int) {
    self.kind = kind
    self.start = start
    self.payload = payload
    self.count = count
  }

  /// No value: the column is left alone.
  package static let undefined = ValueSlice(kind: .undefined, start: 0, payload: 0, count: 0)

  /// True if there is a value (NULL is one).
  public var isDefined: Bool { kind != .undefined }

  /// The whole encoded value, kind byte and length included.
  public var encoded: Range<Int> { start..<(payload + count) }

  /// The payload's place.
  public var payloadRange: Range<Int> { payload..<(payload + count) }

  /// The integer, if `kind` is `.integer`; the bits of the number, if it is `.real`.
  @inlinable
  public func bits(in bytes: RawSpan) -> UInt64 {
    UInt64(bigEndian: bytes.loadEightBytes(at: payload))
  }

  /// The value as an integer; only meaningful for `.integer`.
  @inlinable
  public func integer(in bytes: RawSpan) -> Int64 { Int64(bitPattern: bits(in: bytes)) }

  /// The value as a double; only meaningful for `.real`.
  @inlinable
  public func real(in bytes: RawSpan) -> Double { Double(bitPattern: bits(in: bytes)) }

  /// True if two values are the same: kind and bytes, so 1 and 1.0 differ, as do `a` and `A`.
  func isIdentical(to other: ValueSlice, in bytes: RawSpan, otherIn otherBytes: RawSpan) -> Bool {
    guard kind == other.kind, count == other.count else { return false }
    return bytes.extracting(payloadRange).isEqual(to: otherBytes.extracting(other.payloadRange))
  }

  /// Reads a value from bytes that a `ChangesetReader` has walked over without an error.
  ///
  /// Bytes that are no value are read as "undefined", one byte long.
  @inlinable
  package init(verified bytes: RawSpan, at position: inout Int) {
    let start = position
    var payload = start + 1
    var count = 0
    let kind: ValueKind
    switch bytes.byte(at: start) {
    case 1:
      kind = .integer
      count = 8
    case 2:
      kind = .real
      count = 8
    case 3:
      kind = .text
      count = ValueSlice.verifiedLength(in: bytes, at: &payload)
    case 4:
      kind = .blob
      count = ValueSlice.verifiedLength(in: bytes, at: &payload)
    case 5: kind = .null
    default: kind = .undefined
    }
    position = payload + count
    self.init(kind: kind, start: start, payload: payload, count: count)
  }

  /// The length in front of text and blobs: a varint of at most five bytes, since lengths stay below 2^31.
  @inlinable
  static func verifiedLength(in bytes: RawSpan, at position: inout Int) -> Int {
    var length = 0
    for _ in 0..<9 {
      let byte = bytes.byte(at: position)
      position += 1
      length = length << 7 | Int(byte & 0x7f)
      if byte < 0x80 { break }
    }
    return length
  }

  /// Reads the value that stands at `position` and moves on behind it.
  ///
  /// - Throws: `ChangesetError` when no whole value stands there.
  package init(reading bytes: RawSpan, at position: inout Int) throws(ChangesetError) {
    let start = position
    guard start >= 0, start < bytes.byteCount else { throw ChangesetError(.truncated, offset: start) }
    guard let kind = ValueKind(rawValue: bytes.byte(at: start)) else {
      throw ChangesetError(.unknownValueKind, offset: start)
    }
    var cursor = start + 1
    let count: Int
    switch kind {
    case .undefined, .null: count = 0
    case .integer, .real: count = 8
    case .text, .blob:
      let length = try readVarint(at: &cursor, in: bytes)
      guard length <= UInt64(ChangesetLimits.valueBytes) else { throw ChangesetError(.badLength, offset: start) }
      count = Int(length)
    }
    guard bytes.byteCount - cursor >= count else { throw ChangesetError(.truncated, offset: start) }
    position = cursor + count
    self.init(kind: kind, start: start, payload: cursor, count: count)
  }
}

/// The fixed part of a change: what it does and where it stands.
public struct Change: Equatable, Sendable {
  /// What the change does.
  public let operation: ChangeOperation
  /// True if the change came about indirectly: by a trigger or a foreign-key action.
  public let isIndirect: Bool
  /// The bytes of the whole change, operation byte included.
  public let range: Range<Int>
  /// True if a table header stands between this change and the one before it.
  public let startsTable: Bool
}

/// Walks the changes of a changeset or patchset without copying.
///
/// The reader holds offsets only; the bytes are passed to each call and must be the same every time, or others that
/// `move(to:base:)` was given. Any input is safe: everything is bounds-checked, and what SQLite would not write is an error with its offset. Follows
/// `sqlite3session.c`; see <https://sqlite.org/session/changegroup.html> for the format.
///
/// ```swift
/// var reader = ChangesetReader()
/// while let change = try reader.next(in: bytes) {
///   print(reader.table?.name ?? "", change.operation, reader.new.count)
/// }
/// ```
public struct ChangesetReader: Sendable {
  /// The table of the change read last.
  public private(set) var table: ChangesetTable?
  /// The bytes of that table's header.
  public private(set) var headerRange: Range<Int> = 0..<0
  /// The bytes of that table's name in the header, without the NUL that ends it.
  ///
  /// Tell tables apart by these bytes: `String` takes canonically equivalent names for equal, SQLite does not.
  package private(set) var nameRange: Range<Int> = 0..<0
  /// The old values of the change read last, one for each column; undefined where there is none. All undefined for an
  /// INSERT. For patchsets only key columns are defined. An old value of a column that an UPDATE leaves alone is left
  /// out here as SQLite leaves it out (rebased changesets of older versions hold such values).
  public private(set) var old: [ValueSlice] = []
  /// The new values of the change read last, one for each column. All undefined for a DELETE. Key columns of an UPDATE
  /// are undefined too: SQLite writes one where a key became another that it takes for equal (1 and 1.0, or `a` and `A`
  /// under NOCASE), but never applies it.
  public private(set) var new: [ValueSlice] = []
  /// True if the change read last does not say all that its author saw: an UPDATE without the old value of a column that it
  /// sets, a DELETE without the row. So it is with all of a patchset.
  package private(set) var lacksOldValues = false
  /// Where the next call goes on reading.
  package private(set) var position: Int
  /// Where the bytes begin in the changeset: all other offsets, but those of errors, count from there.
  package private(set) var base = 0

  /// The key columns of the table, so that the short DELETE of a patchset costs no walk over thousands of columns that
  /// a header may claim.
  private var keyColumns: [Int] = []
  /// True if `old` and `new` are all undefined.
  private var oldIsClear = true
  private var newIsClear = true

  /// Starts at the beginning of a changeset.
  public init() { position = 0 }

  /// Starts at a change inside the changes of a table whose header was read before.
  package init(at position: Int, in table: ChangesetTable) {
    self.position = position
    use(table)
  }

  /// Moves to the offset of another change of the same table, or of the table header in front of it.
  package mutating func move(to position: Int) { self.position = position }

  /// Says that the bytes of the next calls begin elsewhere in the changeset.
  ///
  /// - Parameters:
  ///   - offset: The offset in the changeset of the next change, or of the table header in front of it.
  ///   - base: Where the bytes begin.
  package mutating func move(to offset: Int, base: Int) {
    position = offset - base
    self.base = base
  }

  /// Reads the next change.
  ///
  /// - Returns: The change, or nil at the end. `table`, `old` and `new` speak of it until the next call.
  /// - Throws: `ChangesetError` for anything that is no well-formed change. The reader must not be used after that.
  public mutating func next(in bytes: RawSpan) throws(ChangesetError) -> Change? {
    do throws(ChangesetError) {
      return try read(bytes)
    } catch {
      throw ChangesetError(error.code, offset: base + error.offset, table: error.table)
    }
  }

  private mutating func read(_ bytes: RawSpan) throws(ChangesetError) -> Change? {
    let end = bytes.byteCount
    var startsTable = false
    while position < end, let format = ChangesetFormat(rawValue: bytes.byte(at: position)) {
      try readHeader(format, in: bytes)
      startsTable = true
    }
    guard position < end else { return nil }
    let start = position
    guard let operation = ChangeOperation(rawValue: bytes.byte(at: start)) else {
      throw failure(.unknownOperation, at: start)
    }
    guard let table else { throw ChangesetError(.changeBeforeTable, offset: start) }
    guard start + 2 <= end else { throw failure(.truncated, at: start) }
    let isIndirect = bytes.byte(at: start + 1) != 0
    position = start + 2

    let isPatchset = table.format == .patchset
    lacksOldValues = isPatchset && operation == .delete && keyColumns.count < table.columnCount
    switch operation {
    case .insert:
      clearOld()
      newIsClear = false
      try Self.readRecord(of: table, into: &new, at: &position, in: bytes)
      guard new.allSatisfy(\.isDefined) else { throw failure(.misplacedValue, at: start) }
    case .delete:
      clearNew()
      oldIsClear = false
      if isPatchset {
        for column in keyColumns {
          // Other columns of `old` are never set in a patchset.
          old[column] = try Self.readValue(of: table, at: &position, in: bytes)
          guard old[column].isDefined else { throw failure(.misplacedValue, at: start) }
        }
      } else {
        try Self.readRecord(of: table, into: &old, at: &position, in: bytes)
        guard old.allSatisfy(\.isDefined) else { throw failure(.misplacedValue, at: start) }
      }
    case .update:
      if isPatchset { clearOld() } else { try Self.readRecord(of: table, into: &old, at: &position, in: bytes) }
      oldIsClear = false
      newIsClear = false
      try Self.readRecord(of: table, into: &new, at: &position, in: bytes)
      for column in new.indices {
        if table.isKey(column) {
          // A patchset's UPDATE is one record, with the key in it; the key is what the row is found by.
          if isPatchset { swap(&old[column], &new[column]) }
          guard old[column].isDefined else { throw failure(.misplacedValue, at: start) }
          new[column] = .undefined
        } else if !new[column].isDefined {
          old[column] = .undefined
        } else if !old[column].isDefined {
          lacksOldValues = true
        }
      }
    }
    return Change(
      operation: operation, isIndirect: isIndirect, range: start..<position, startsTable: startsTable)
  }

  private func failure(_ code: ChangesetError.Code, at offset: Int) -> ChangesetError {
    ChangesetError(code, offset: offset, table: table?.name)
  }

  private mutating func clearOld() {
    guard !oldIsClear else { return }
    for index in old.indices { old[index] = .undefined }
    oldIsClear = true
  }

  private mutating func clearNew() {
    guard !newIsClear else { return }
    for index in new.indices { new[index] = .undefined }
    newIsClear = true
  }

  private mutating func use(_ table: ChangesetTable) {
    self.table = table
    keyColumns = table.keyFlags.indices.filter { table.isKey($0) }
    if old.count == table.columnCount {
      clearOld()
      clearNew()
    } else {
      old = Array(repeating: .undefined, count: table.columnCount)
      new = old
      oldIsClear = true
      newIsClear = true
    }
  }

  private mutating func readHeader(_ format: ChangesetFormat, in bytes: RawSpan) throws(ChangesetError) {
    if let table, table.format != format { throw ChangesetError(.mixedFormats, offset: position) }
    let header = try ChangesetHeader(reading: bytes, at: &position)
    headerRange = header.range
    nameRange = header.nameRange
    use(header.table)
  }

  private static func readRecord(
    of table: ChangesetTable, into values: inout [ValueSlice], at position: inout Int, in bytes: RawSpan
  ) throws(ChangesetError) {
    for column in values.indices { values[column] = try readValue(of: table, at: &position, in: bytes) }
  }

  private static func readValue(
    of table: ChangesetTable, at position: inout Int, in bytes: RawSpan
  ) throws(ChangesetError) -> ValueSlice {
    do throws(ChangesetError) {
      return try ValueSlice(reading: bytes, at: &position)
    } catch {
      throw ChangesetError(error.code, offset: position, table: table.name)
    }
  }
}

/// Reads SQLite's variable-length integer: up to nine bytes, seven bits in each of the first eight.
///
/// See <https://sqlite.org/fileformat2.html#varint>.
func readVarint(at cursor: inout Int, in bytes: RawSpan) throws(ChangesetError) -> UInt64 {
  let start = cursor
  var value: UInt64 = 0
  for index in 0..<9 {
    guard cursor < bytes.byteCount else { throw ChangesetError(.truncated, offset: start) }
    let byte = bytes.byte(at: cursor)
    cursor += 1
    if index == 8 { return value << 8 | UInt64(byte) }
    value = value << 7 | UInt64(byte & 0x7f)
    if byte < 0x80 { return value }
  }
  return value
}

extension [UInt8] {
  /// Gives the bytes to `body`; they must not be kept beyond it.
  ///
  /// The array's own `span` would do, but needs macOS 26 and iOS 26.
  ///
  /// - Throws: Whatever `body` throws.
  public func withRawSpan<Result, Failure: Error>(
    _ body: (RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // Sound: the buffer is the array's, which stays as it is while `body` runs.
    try withUnsafeBufferPointer { (buffer) throws(Failure) in try body(UnsafeRawBufferPointer(buffer).bytes) }
  }
}

extension RawSpan {
  /// The byte at an offset; out of bounds traps, so callers check `byteCount` first.
  @inlinable
  @inline(__always)
  func byte(at offset: Int) -> UInt8 {
    // Sound: the load checks the bounds, and every bit pattern is a byte.
    unsafeLoadUnaligned(fromByteOffset: offset, as: UInt8.self)
  }

  /// Eight bytes as they stand; the caller says in which order they are. Out of bounds traps.
  @inlinable
  @inline(__always)
  func loadEightBytes(at offset: Int) -> UInt64 {
    // Sound: the load checks the bounds, and every bit pattern is a number.
    unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
  }

  /// A copy of a range of bytes.
  public func array(_ range: Range<Int>) -> [UInt8] {
    extracting(range).withUnsafeBytes { Array($0) }
  }

  /// True if two spans hold the same bytes.
  func isEqual(to other: RawSpan) -> Bool {
    byteCount == other.byteCount && byteOrder(against: other) == 0
  }

  /// Compares byte by byte, a prefix before what continues it: negative, zero or positive.
  package func byteOrder(against other: RawSpan) -> Int {
    withUnsafeBytes { mine in other.withUnsafeBytes { mine.byteOrder(against: $0) } }
  }
}
