import BuckiaBytes

/// A large change with the beginnings of its long values only, so that it can be read in little memory.
///
/// The bytes are a change in the same format, behind the same table headers, and good for a `ChangesetReader`.
struct AbridgedChange {
  /// The headers in front of the change, and the change.
  private(set) var bytes: [UInt8] = []
  /// How many bytes that is in the buffer.
  private(set) var sourceCount = 0
  /// The long values, in their order.
  private(set) var longValues: [LongValue] = []

  /// A value of which only the beginning is kept.
  struct LongValue {
    /// Where the beginning of the payload is in `bytes`.
    let kept: Range<Int>
    /// Where the whole payload is in the buffer.
    let source: Range<Int>
  }

  private let source: TemporaryBuffer
  private let start: Int
  private let limit: Int
  private var piece: [UInt8] = []
  private var pieceStart = 0

  /// How much is held in memory.
  struct Limits {
    /// How many bytes of a change are read whole.
    var wholeChange = 8 << 20
    /// How many bytes of a value are kept, at most and at least: fewer where there are many values.
    var kept = 64 << 10
    var leastKept = 256
    /// How many bytes of all values are kept.
    var allKept = 8 << 20
  }

  private static let pieceBytes = 64 << 10
  private let limits: Limits

  /// Reads a change.
  ///
  /// What is no change is left as it is from there on: the reader says what is wrong with it.
  ///
  /// - Parameters:
  ///   - start: Where it begins in the buffer, or the headers in front of it.
  ///   - limit: Where the bytes that may be read end.
  ///   - source: The buffer.
  ///   - table: The table of the change before.
  ///   - limits: How much is kept.
  /// - Throws: `ByteStreamError` when the buffer cannot be read.
  init(
    at start: Int, limit: Int, of source: TemporaryBuffer, in table: ChangesetTable?, limits: Limits
  ) throws(ByteStreamError) {
    self.limits = limits
    self.source = source
    self.start = start
    self.limit = limit
    if try !read(table) {
      // Enough for the reader to see what is wrong. Nothing behind it is of interest.
      for _ in 0..<16 { _ = try copyByte() }
      sourceCount = limit - start
    }
    piece = []
  }

  /// The offset in the buffer that an offset in `bytes` stands for.
  func sourceOffset(of offset: Int) -> Int {
    guard let last = longValues.last(where: { $0.kept.lowerBound <= offset }) else { return start + offset }
    if offset < last.kept.upperBound { return last.source.lowerBound + offset - last.kept.lowerBound }
    return last.source.upperBound + offset - last.kept.upperBound
  }

  // MARK: Reading

  /// - Returns: Whether a whole change stands there.
  private mutating func read(_ known: ChangesetTable?) throws(ByteStreamError) -> Bool {
    var columns = known?.columnCount ?? 0
    var keys = known?.keyFlags.count { $0 != 0 } ?? 0
    var isPatchset = known?.format == .patchset
    while let format = try peek().flatMap({ ChangesetFormat(rawValue: $0) }) {
      guard try copyByte() != nil, let count = try readVarint(copying: true), count <= ChangesetLimits.columns else {
        return false
      }
      isPatchset = format == .patchset
      columns = count
      keys = 0
      for _ in 0..<columns {
        guard let flag = try copyByte() else { return false }
        if flag != 0 { keys += 1 }
      }
      var nameBytes = 0
      while let byte = try copyByte(), byte != 0, nameBytes <= ChangesetLimits.nameBytes { nameBytes += 1 }
    }
    guard let operation = try copyByte().flatMap({ ChangeOperation(rawValue: $0) }), try copyByte() != nil else {
      return false
    }
    let values =
      switch operation {
      case .insert: columns
      case .delete: isPatchset ? keys : columns
      case .update: isPatchset ? columns : 2 * columns
      }
    let kept = min(limits.kept, max(limits.leastKept, limits.allKept / max(1, values)))
    for _ in 0..<values { guard try copyValue(keeping: kept) else { return false } }
    return true
  }

  private mutating func copyValue(keeping kept: Int) throws(ByteStreamError) -> Bool {
    guard let kind = try peek().flatMap({ ValueKind(rawValue: $0) }) else { return false }
    switch kind {
    case .undefined, .null: return try copyByte() != nil
    case .integer, .real:
      for _ in 0..<9 { guard try copyByte() != nil else { return false } }
      return true
    case .text, .blob:
      let before = (bytes: bytes.count, source: sourceCount)
      guard try copyByte() != nil, let count = try readVarint(copying: false), count <= ChangesetLimits.valueBytes,
        count <= limit - start - sourceCount
      else {
        // The length stays as it is, for the reader.
        bytes.removeSubrange(before.bytes...)
        sourceCount = before.source
        return false
      }
      let payload = start + sourceCount..<start + sourceCount + count
      let length = min(count, kept)
      var writer = ChangesetWriter()
      writer.append(varint: UInt64(length))
      bytes += writer.bytes
      if length < count {
        longValues.append(LongValue(kept: bytes.count..<bytes.count + length, source: payload))
      }
      for _ in 0..<length { guard try copyByte() != nil else { return false } }
      sourceCount += count - length
      return true
    }
  }

  private mutating func readVarint(copying: Bool) throws(ByteStreamError) -> Int? {
    var value: UInt64 = 0
    for index in 0..<9 {
      guard let byte = try peek() else { return nil }
      sourceCount += 1
      if copying { bytes.append(byte) }
      if index == 8 { return Int(exactly: value << 8 | UInt64(byte)) }
      value = value << 7 | UInt64(byte & 0x7f)
      if byte < 0x80 { return Int(exactly: value) }
    }
    return nil
  }

  private mutating func copyByte() throws(ByteStreamError) -> UInt8? {
    guard let byte = try peek() else { return nil }
    bytes.append(byte)
    sourceCount += 1
    return byte
  }

  /// The next byte; nil where the bytes end.
  private mutating func peek() throws(ByteStreamError) -> UInt8? {
    let place = start + sourceCount
    guard place < limit else { return nil }
    if !(pieceStart..<pieceStart + piece.count ~= place) {
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: min(Self.pieceBytes, limit - place), alignment: 1)
      defer { buffer.deallocate() }
      let count = try source.read(into: buffer, at: place)
      guard count > 0 else { return nil }
      piece = Array(buffer[..<count])
      pieceStart = place
    }
    return piece[place - pieceStart]
  }
}
