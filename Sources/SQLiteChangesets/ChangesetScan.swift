import BuckiaByteStreams

/// Reads and checks all changes of a buffer, as many at a time as are in memory together.
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
  /// Where the window was begun the last time, in the buffer.
  private var start = -1

  /// Reads all bytes of a buffer.
  package init(_ source: TemporaryBuffer) {
    window = ChangesetWindow(source)
    limit = source.count
    isComplete = true
  }

  /// Reads bytes as they arrive: there are none until `extend` says so.
  package init(arrivingIn source: TemporaryBuffer) {
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
    let next = window.base + reader.position
    guard next < limit else { return false }
    if next == start {
      guard window.end < limit else { return false }
      try window.move(to: next, limit: limit, isLarger: window.base == next)
    } else {
      try window.move(to: next, limit: limit)
    }
    start = next
    reader.rebase(to: window.base)
    return true
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
      guard error.code == .truncated, !isAtEnd else { throw error }
    }
    // Headers without changes are read again with the change that follows them.
    if !isAtEnd { reader.move(to: before) }
    return nil
  }
}
