/// Where a change stands in bytes that have been checked: what it does, and the offset of its operation byte.
package struct ChangePlace: Equatable, Sendable {
  /// What the change does.
  package let operation: ChangeOperation
  /// The offset of the operation byte.
  package let start: Int

  /// The offset of the first value of its first record.
  package var values: Int { start + 2 }

  /// Whether the change is marked as one that came about indirectly: by a trigger or a foreign-key action.
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
