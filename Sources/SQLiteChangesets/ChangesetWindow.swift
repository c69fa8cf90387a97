import BuckiaBytes

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
  ///   - isLarger: Whether to hold twice as much as now, because what begins there did not fit.
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
