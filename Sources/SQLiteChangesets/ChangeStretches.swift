import BuckiaBytes

/// Goes through changes of one table wherever they are stored, as many at a time as are in memory together.
///
/// Each stretch holds whole changes. Their places count from its beginning and are of no use in the next one.
///
/// ```swift
/// var stretches = ChangeStretches(section.changes, of: table, in: ChangesetWindow(buffer))
/// while try stretches.advance() {
///   try stretches.window.withBytes { bytes in
///     while let change = stretches.next(in: bytes) { … }
///   }
/// }
/// ```
package struct ChangeStretches {
  /// The window that the stretch is in.
  package let window: ChangesetWindow
  private var walk: ChangeWalk
  /// The end of the section in the buffer, as far as it is known.
  private var end: Int
  /// Where the stretch begins in the buffer.
  private var start = -1
  /// Where the next stretch begins before there is any.
  private var first: Int

  /// Begins at the first change of a section, which a `ChangesetReader` or `ChangesetSummary` has been over without an
  /// error.
  package init(_ changes: Range<Int>, of table: ChangesetTable, in window: ChangesetWindow) {
    self.window = window
    walk = ChangeWalk(0..<0, of: table)
    first = changes.lowerBound
    end = changes.upperBound
  }

  /// The offset in the buffer of the next change.
  package var position: Int { start < 0 ? first : window.base + walk.position }

  /// Extends the section.
  package mutating func extend(to end: Int) { self.end = end }

  /// Goes on to the next section of the same table.
  package mutating func begin(_ changes: Range<Int>) {
    first = changes.lowerBound
    end = changes.upperBound
    start = -1
  }

  /// Brings the next changes into the window.
  ///
  /// - Returns: false when there are no more.
  /// - Throws: `ByteStreamError` when they cannot be read.
  package mutating func advance() throws(ByteStreamError) -> Bool {
    let next = position
    guard next < end else { return false }
    if next == start {
      // The change is larger than what was there of it.
      guard window.end < end else { return false }
      try window.move(to: next, limit: end, isLarger: window.base == next)
    } else if next < window.base || next >= window.end {
      try window.move(to: next, limit: end)
    }
    start = next
    walk.move(to: next - window.base..<min(end, window.end) - window.base)
    return true
  }

  /// The next change of the stretch, or nil at its end.
  package mutating func next(in bytes: RawSpan) -> ChangePlace? { walk.next(in: bytes) }

  /// The offset in the window behind the change returned last.
  package var changeEnd: Int { walk.position }
}
