import BuckiaBytes

/// Where a change stands in bytes that have been checked: what it does, and the offset of its operation byte.
package struct ChangePlace: Equatable, Sendable {
  /// What the change does.
  package let operation: ChangeOperation
  /// The offset of the operation byte.
  package let start: Int

  /// The offset of the first value of its first record.
  package var values: Int { start + 2 }

  /// True if the change is marked as one that came about indirectly: by a trigger or a foreign-key action.
  package func isIndirect(in bytes: RawSpan) -> Bool { bytes.byte(at: start + 1) != 0 }

  /// The change at an offset; nil where no operation stands.
  @inlinable
  package init?(at start: Int, in bytes: RawSpan) {
    guard let operation = ChangeOperation(rawValue: bytes.byte(at: start)) else { return nil }
    self.operation = operation
    self.start = start
  }
}

/// Walks from change to change of one section without taking them apart: for bytes that a `ChangesetReader` or
/// `ChangesetSummary` has been over without an error.
///
/// It ends where the bytes do not hold the whole next change. Nothing outside them is ever read.
package struct ChangeWalk: Sendable {
  /// The offset of the next change.
  package private(set) var position: Int
  /// The end of the section, or of its part in these bytes.
  private var end: Int
  private let columnCount: Int
  private let keyCount: Int
  private let isPatchset: Bool

  /// Begins at the first change of a section.
  package init(_ changes: Range<Int>, of table: ChangesetTable) {
    position = changes.lowerBound
    end = changes.upperBound
    columnCount = table.columnCount
    keyCount = table.keyFlags.count { $0 != 0 }
    isPatchset = table.format == .patchset
  }

  /// Goes on in a range of other bytes.
  mutating func move(to changes: Range<Int>) {
    position = changes.lowerBound
    end = changes.upperBound
  }

  /// The next change, or nil at the end of the section or before a change that is not wholly there.
  package mutating func next(in bytes: RawSpan) -> ChangePlace? {
    guard position < end, let change = ChangePlace(at: position, in: bytes),
      let next = wholeEnd(of: change, in: bytes)
    else { return nil }
    position = next
    return change
  }

  /// The offset behind a change of this table.
  package func end(of change: ChangePlace, in bytes: RawSpan) -> Int {
    wholeEnd(of: change, in: bytes) ?? bytes.byteCount
  }

  func hasWholeChange(at start: Int, in bytes: RawSpan) -> Bool {
    ChangePlace(at: start, in: bytes).flatMap { wholeEnd(of: $0, in: bytes) } != nil
  }

  private func wholeEnd(of change: ChangePlace, in bytes: RawSpan) -> Int? {
    let values: Int
    switch change.operation {
    case .insert: values = columnCount
    case .delete: values = isPatchset ? keyCount : columnCount
    case .update: values = isPatchset ? columnCount : 2 * columnCount
    }
    let limit = bytes.byteCount
    var cursor = change.values
    for _ in 0..<values {
      guard cursor < limit else { return nil }
      let kind = bytes.byte(at: cursor)
      cursor += 1
      switch kind {
      case 1, 2: cursor += 8
      case 3, 4:
        var length = 0
        var hasMore = true
        for _ in 0..<9 where hasMore {
          guard cursor < limit else { return nil }
          let byte = bytes.byte(at: cursor)
          cursor += 1
          length = length << 7 | Int(byte & 0x7f)
          hasMore = byte >= 0x80
        }
        guard length <= limit - cursor else { return nil }
        cursor += length
      default: break
      }
    }
    return cursor <= limit ? cursor : nil
  }
}

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

extension TemporaryBuffer {
  /// Gives each change of some sections of one table, which have been checked, to `body`.
  ///
  /// - Parameters:
  ///   - sections: The bytes of the sections, as a `ChangesetSummary` has found them.
  ///   - table: The table.
  ///   - poll: Is called every few thousand changes. May throw to stop.
  ///   - body: Gets the place of a change, the offset behind it, and the bytes that both are in.
  /// - Throws: `ByteStreamError` when the changes cannot be read; whatever `poll` and `body` throw.
  @inline(__always)
  func forEachChange(
    in sections: [Range<Int>], of table: ChangesetTable, poll: () throws -> Void = {},
    _ body: (ChangePlace, _ end: Int, RawSpan) throws -> Void
  ) throws {
    var stretches = ChangeStretches(0..<0, of: table, in: ChangesetWindow(self))
    for section in sections {
      stretches.begin(section)
      while try stretches.advance() {
        try poll()
        try stretches.window.withBytes { bytes in
          while let change = stretches.next(in: bytes) { try body(change, stretches.changeEnd, bytes) }
        }
      }
    }
  }
}
