import BuckiaBytes

/// Reads and checks all changes of a buffer, as many at a time as are in memory together.
///
/// Of a change of many megabytes only the beginnings of its long values are read: ``longValue(_:)`` says where the rest is.
///
/// ```swift
/// var scan = ChangesetScan(buffer)
/// while try scan.advance() {
///   try scan.window.withBytes { bytes in
///     while let change = try scan.next(in: bytes) { print(scan.reader.table?.name ?? "", change.operation) }
///   }
/// }
/// ```
package struct ChangesetScan {
  /// The reader, which tells of the change returned last. Its ranges count from the beginning of the window.
  package private(set) var reader = ChangesetReader()
  /// The window that the reader reads in.
  package let window: ChangesetWindow
  /// Where the bytes that may be read end.
  private var limit: Int
  /// True if there will be no more bytes.
  private var isComplete: Bool
  /// How much is held of large changes.
  private let largeChanges: AbridgedChange.Limits
  /// Where the window was begun the last time, in the buffer.
  private var start = -1

  /// Reads all bytes of a buffer.
  package init(_ source: TemporaryBuffer) { self.init(source, largeChanges: AbridgedChange.Limits()) }

  /// - Parameter largeChanges: How much is held of large changes.
  init(_ source: TemporaryBuffer, largeChanges: AbridgedChange.Limits) {
    self.largeChanges = largeChanges
    window = ChangesetWindow(source)
    limit = source.count
    isComplete = true
  }

  /// Reads bytes as they arrive: there are none until `extend` says so.
  package init(arrivingIn source: TemporaryBuffer) {
    largeChanges = AbridgedChange.Limits()
    window = ChangesetWindow(source)
    limit = 0
    isComplete = false
  }

  /// Says how many bytes may be read.
  ///
  /// - Parameters:
  ///   - limit: How many there are.
  ///   - isComplete: True if there will be no more.
  package mutating func extend(to limit: Int, isComplete: Bool) {
    if limit > self.limit { start = -1 }
    self.limit = limit
    self.isComplete = isComplete
  }

  /// Brings the next changes into the window.
  ///
  /// - Returns: false when there are no more bytes than have been read.
  /// - Throws: `ByteStreamError` when they cannot be read.
  package mutating func advance() throws(ByteStreamError) -> Bool {
    // Behind the change in the window there can be more than the window holds of it.
    let next = reader.position < window.count ? window.base + reader.position : window.end
    guard next < limit else { return false }
    let isTried = next == start
    guard !isTried || window.end < limit else { return false }
    if window.base == next, window.abridged != nil || isTried && window.count >= largeChanges.wholeChange {
      try window.abridgeChange(at: next, limit: limit, in: reader.table, limits: largeChanges)
    } else {
      try window.move(to: next, limit: limit, isLarger: isTried && window.base == next)
    }
    start = next
    reader.move(to: next, base: window.base)
    return true
  }

  /// Where the change returned last is in the buffer, table headers not included.
  package func range(of change: Change) -> Range<Int> {
    let start = reader.base + change.range.lowerBound
    return start..<(window.abridged == nil ? reader.base + change.range.upperBound : max(start, window.end))
  }

  /// Where the whole payload of a long value is in the buffer, of which the window has only the beginning; nil for other
  /// values.
  ///
  /// - Parameter value: One of the change returned last.
  package func longValue(_ value: ValueSlice) -> Range<Int>? {
    guard let abridged = window.abridged, value.kind == .text || value.kind == .blob else { return nil }
    return abridged.longValues.first { $0.kept.lowerBound == value.payload }?.source
  }

  /// True if all bytes are in the window or in front of it, and no more will come.
  package var isAtEnd: Bool { isComplete && window.end >= limit }

  /// The next change of those in the window, or nil where it holds no other whole change.
  ///
  /// - Throws: `ChangesetError`, with offsets in the buffer.
  package mutating func next(in bytes: RawSpan) throws(ChangesetError) -> Change? {
    let before = reader.position
    do throws(ChangesetError) {
      if let change = try reader.next(in: bytes) { return change }
    } catch {
      guard error.code == .truncated, !isAtEnd else {
        guard let abridged = window.abridged else { throw error }
        throw ChangesetError(
          error.code, offset: abridged.sourceOffset(of: error.offset - reader.base), table: error.table)
      }
    }
    // Headers without changes are read again with the change that follows them.
    if !isAtEnd { reader.move(to: before) }
    return nil
  }
}

/// A part of a buffer's bytes in memory.
///
/// A buffer in a file can be far larger than memory, so its bytes are read through a window: a piece of memory of bounded size that
/// a part of the file is copied into. A buffer in memory is one window, and nothing is copied.
///
/// Offsets in ``withBytes(_:)`` count from the beginning of the window; ``base`` is where that lies in the buffer.
package final class ChangesetWindow {
  /// The offset of the window's first byte in the buffer.
  package private(set) var base = 0
  /// How many bytes are in the window.
  package private(set) var count: Int
  /// The offset behind the window's last byte.
  package var end: Int { base + (abridged?.sourceCount ?? count) }
  /// The one large change that is in the window, without most of its long values; nil where all bytes are there.
  private(set) var abridged: AbridgedChange?

  private let source: TemporaryBuffer
  /// All bytes of a buffer in memory.
  private let held: [UInt8]?
  private let usualCount: Int
  private var buffer = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private var isLent = false

  /// Makes a window, which is empty until it is moved unless the buffer is in memory.
  package init(_ source: TemporaryBuffer) {
    self.source = source
    held = source.memoryContents
    count = held?.count ?? 0
    usualCount = source.windowBytes
  }

  deinit { buffer.deallocate() }

  /// Gives the window's bytes to `body`, which must not move the window and must not keep the bytes.
  package func withBytes<Result>(_ body: (RawSpan) throws -> Result) rethrows -> Result {
    if let held { return try held.withRawSpan(body) }
    if let abridged { return try abridged.bytes.withRawSpan(body) }
    isLent = true
    defer { isLent = false }
    // Sound: the buffer holds `count` bytes and stays until the window moves, which it refuses meanwhile.
    return try body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]).bytes)
  }

  /// Makes the window begin at an offset.
  ///
  /// - Parameters:
  ///   - start: The offset. A window over memory stays as it is, which is around any offset.
  ///   - limit: Where the bytes that may be read end.
  ///   - isLarger: True to hold twice as much as now, because what begins there did not fit.
  /// - Throws: `ByteStreamError` when the file cannot be read.
  func move(to start: Int, limit: Int, isLarger: Bool = false) throws(ByteStreamError) {
    guard held == nil else { return }
    let limit = source.settledCount ?? limit
    try read(start, min(isLarger ? max(usualCount, 2 * count) : usualCount, limit - start))
  }

  /// Makes the window hold the one change that begins at an offset, without most of its long values.
  ///
  /// - Parameters:
  ///   - start: The offset of the change, or of the headers in front of it.
  ///   - limit: Where the bytes that may be read end.
  ///   - table: The table of the change before.
  ///   - limits: How much is kept.
  /// - Throws: `ByteStreamError` when the file cannot be read.
  func abridgeChange(
    at start: Int, limit: Int, in table: ChangesetTable?, limits: AbridgedChange.Limits
  ) throws(ByteStreamError) {
    precondition(!isLent, "a window moved while its bytes were in use")
    let change = try AbridgedChange(at: start, limit: limit, of: source, in: table, limits: limits)
    buffer.deallocate()
    buffer = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    abridged = change
    base = start
    count = change.bytes.count
  }

  private func read(_ start: Int, _ wanted: Int) throws(ByteStreamError) {
    abridged = nil
    precondition(!isLent, "a window moved while its bytes were in use")
    // What one large change needed is given back after it.
    if buffer.count < wanted || buffer.count > 2 * max(usualCount, wanted) {
      buffer.deallocate()
      buffer = .allocate(byteCount: max(usualCount, wanted), alignment: 16)
    }
    count = 0
    base = start
    count = try source.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<max(wanted, 0)]), at: start)
  }

  // MARK: Random access

  /// How many bytes are read around a change that is looked at by itself.
  private static let randomBytes = 16 << 10

  /// Gives one change to `body`, wherever it stands.
  ///
  /// - Parameters:
  ///   - offset: Where the change begins in the buffer.
  ///   - walk: One of its table.
  /// - Returns: What `body` returns; nil when no whole change stands there.
  /// - Throws: `ByteStreamError` when the file cannot be read; whatever `body` throws.
  package func withChange<Result>(
    at offset: Int, _ walk: ChangeWalk, _ body: (ChangePlace, RawSpan) throws -> Result
  ) throws -> Result? {
    var wanted = min(usualCount, Self.randomBytes)
    while !(base..<end ~= offset && hasChange(at: offset, walk)) {
      let limit = source.count
      guard held == nil, offset >= 0, offset < limit, end < limit || !(base..<end ~= offset) else { return nil }
      // Going backwards, the changes in front of this one are the next.
      let isBackward = offset < base && base - offset < wanted
      if base == offset { wanted = max(wanted, 2 * count) }
      let start = isBackward ? max(0, offset - wanted * 3 / 4) : offset
      try read(start, min(wanted, limit - start))
      if isBackward, !hasChange(at: offset, walk) { try read(offset, min(wanted, limit - offset)) }
    }
    return try withBytes { bytes in
      guard let place = ChangePlace(at: offset - base, in: bytes) else { return nil }
      return try body(place, bytes)
    }
  }

  private func hasChange(at offset: Int, _ walk: ChangeWalk) -> Bool {
    withBytes { walk.hasWholeChange(at: offset - base, in: $0) }
  }
}

/// A large change with the beginnings of its long values only, so that it can be read in little memory.
///
/// The bytes are a change in the same format, behind the same table headers, and good for a `ChangesetReader`.
struct AbridgedChange {
  /// The headers in front of the change, and the change.
  private(set) var bytes: [UInt8] = []
  /// How many bytes that is in the buffer.
  private(set) var sourceCount = 0
  /// The values of which only the beginning is kept, in their order: where the beginning of the payload is in `bytes`, and where the whole
  /// payload is in the buffer.
  private(set) var longValues: [(kept: Range<Int>, source: Range<Int>)] = []

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

  /// - Returns: True if a whole change stands there.
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
        longValues.append((bytes.count..<bytes.count + length, payload))
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
