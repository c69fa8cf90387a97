/// Where a change stands in bytes that have been checked: what it does, and the offset of its operation byte.
public struct ChangePlace: Equatable, Sendable {
  /// What the change does.
  public let operation: ChangeOperation
  /// The offset of the operation byte.
  public let start: Int

  /// The offset of the first value of its first record.
  public var values: Int { start + 2 }

  /// Whether the change is marked as one that came about indirectly: by a trigger or a foreign-key action.
  public func isIndirect(in bytes: RawSpan) -> Bool { bytes.byte(at: start + 1) != 0 }

  /// Speaks of the change at an offset; nil where no operation stands.
  @inlinable
  public init?(at start: Int, in bytes: RawSpan) {
    guard let operation = ChangeOperation(rawValue: bytes.byte(at: start)) else { return nil }
    self.operation = operation
    self.start = start
  }
}

/// Walks from change to change of one section without taking them apart: for bytes that a `ChangesetReader` or
/// `ChangesetSummary` has been over without an error.
///
/// Other bytes end the walk early, or the process: nothing outside them is ever read.
public struct ChangeWalk: Sendable {
  /// The offset of the next change.
  public private(set) var position: Int
  /// The end of the section, as far as it is known.
  public private(set) var end: Int
  @usableFromInline let columnCount: Int
  @usableFromInline let keyCount: Int
  @usableFromInline let isPatchset: Bool

  /// Begins at the first change of a section.
  public init(_ changes: Range<Int>, of table: ChangesetTable) {
    position = changes.lowerBound
    end = changes.upperBound
    columnCount = table.columnCount
    keyCount = table.keyFlags.count { $0 != 0 }
    isPatchset = table.format == .patchset
  }

  /// Says that the section goes on.
  public mutating func extend(to end: Int) { self.end = end }

  /// The next change, or nil at the end of the section.
  public mutating func next(in bytes: RawSpan) -> ChangePlace? {
    guard position < end, let change = ChangePlace(at: position, in: bytes) else { return nil }
    position = self.end(of: change, in: bytes)
    return change
  }

  /// The offset behind a change of this table.
  public func end(of change: ChangePlace, in bytes: RawSpan) -> Int {
    var cursor = change.values
    switch change.operation {
    case .insert: skipValues(columnCount, at: &cursor, in: bytes)
    case .delete: skipValues(isPatchset ? keyCount : columnCount, at: &cursor, in: bytes)
    case .update: skipValues(isPatchset ? columnCount : 2 * columnCount, at: &cursor, in: bytes)
    }
    return cursor
  }
}

/// Moves behind so many values of bytes that have been checked.
@inlinable
public func skipValues(_ count: Int, at position: inout Int, in bytes: RawSpan) {
  for _ in 0..<count { _ = ValueSlice(verified: bytes, at: &position) }
}
