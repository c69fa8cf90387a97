/// Where the key of a table's changes stands in their bytes, and how keys compare.
///
/// Changes are given by the offset of their operation byte, in bytes that a `ChangesetReader` has walked over without an
/// error. Nothing is allocated: sorting asks these questions millions of times.
struct KeyLayout: Sendable {
  /// The key columns in key order: by their ordinals when the header gives them, else as they stand in the table.
  let columns: [Int]
  private let table: ChangesetTable

  init(_ table: ChangesetTable) {
    self.table = table
    let inTableOrder = table.keyFlags.indices.filter { table.isKey($0) }
    let byOrdinal = inTableOrder.sorted { table.keyFlags[$0] < table.keyFlags[$1] }
    let areOrdinals = byOrdinal.enumerated().allSatisfy { Int(table.keyFlags[$1]) == $0 + 1 }
    columns = areOrdinals ? byOrdinal : inTableOrder
  }

  /// Compares the keys of two changes by value: negative, zero or positive.
  func order(_ one: Int, _ other: Int, in bytes: RawSpan) -> Int {
    var (mine, theirs) = (walk(one, in: bytes), walk(other, in: bytes))
    for column in columns {
      let order = mine.value(of: column, in: bytes).order(against: theirs.value(of: column, in: bytes), in: bytes)
      if order != 0 { return order }
    }
    return 0
  }

  /// Orders keys that are equal by value but not the same (1 and 1.0); zero only for identical ones.
  func tieBreak(_ one: Int, _ other: Int, in bytes: RawSpan) -> Int {
    var (mine, theirs) = (walk(one, in: bytes), walk(other, in: bytes))
    for column in columns {
      let order = mine.value(of: column, in: bytes).tieBreak(against: theirs.value(of: column, in: bytes), in: bytes)
      if order != 0 { return order }
    }
    return 0
  }

  /// Whether a change has NULL in its key: such a key names no row, as NULL equals nothing.
  func hasNull(_ change: Int, in bytes: RawSpan) -> Bool {
    var walk = walk(change, in: bytes)
    return columns.contains { walk.value(of: $0, in: bytes).kind == .null }
  }

  private func walk(_ change: Int, in bytes: RawSpan) -> RecordWalk {
    // The key is in the first record of every change: the old one of UPDATE and DELETE, the new one of INSERT and of a
    // patchset's UPDATE.
    let isKeyOnly = table.format == .patchset && bytes.byte(at: change) == ChangeOperation.delete.rawValue
    return RecordWalk(start: change + 2, keyFlags: isKeyOnly ? table.keyFlags : nil)
  }
}

/// Walks from value to value of one record.
private struct RecordWalk {
  private let start: Int
  /// When given, the record holds only the columns that are flagged here.
  private let keyFlags: [UInt8]?
  private var column = 0
  private var position: Int

  init(start: Int, keyFlags: [UInt8]?) {
    self.start = start
    self.keyFlags = keyFlags
    position = start
  }

  /// The value of a column; quick when columns are asked for in rising order.
  mutating func value(of wanted: Int, in bytes: RawSpan) -> ValueSlice {
    if wanted < column {
      column = 0
      position = start
    }
    while column < wanted {
      if keyFlags.map({ $0[column] != 0 }) ?? true { _ = ValueSlice(verified: bytes, at: &position) }
      column += 1
    }
    column += 1
    return ValueSlice(verified: bytes, at: &position)
  }
}
