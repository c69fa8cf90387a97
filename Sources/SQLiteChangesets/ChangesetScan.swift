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
  /// Whether there will be no more bytes.
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
  ///   - isComplete: Whether there will be no more.
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

  /// Whether all bytes are in the window or in front of it, and no more will come.
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
