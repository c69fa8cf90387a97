/// Where the key of a table's changes stands in their bytes, and how keys compare.
///
/// Changes are given by the offset of their operation byte, in bytes that a `ChangesetReader` has walked over without an
/// error. Sorting asks these questions millions of times: nothing is allocated when the key is in column order, and no
/// walk is longer than its record, whatever the header claims.
struct KeyLayout: Sendable {
  /// The key columns in key order: by their ordinals when the header gives them, else as they stand in the table.
  let columns: [Int]
  /// The same columns, counted among the key columns only: their places in the DELETE of a patchset.
  private let ranks: [Int]
  /// The indices of `columns` in the order in which a record holds them.
  private let indicesInColumnOrder: [Int]
  private let isInColumnOrder: Bool
  private let format: ChangesetFormat

  init(_ table: ChangesetTable) {
    let inTableOrder = table.keyFlags.indices.filter { table.isKey($0) }
    let byOrdinal = inTableOrder.indices.sorted {
      table.keyFlags[inTableOrder[$0]] < table.keyFlags[inTableOrder[$1]]
    }
    let areOrdinals = byOrdinal.enumerated().allSatisfy { Int(table.keyFlags[inTableOrder[$1]]) == $0 + 1 }
    ranks = areOrdinals ? byOrdinal : Array(inTableOrder.indices)
    columns = ranks.map { inTableOrder[$0] }
    let ranks = ranks
    indicesInColumnOrder = ranks.indices.sorted { ranks[$0] < ranks[$1] }
    isInColumnOrder = ranks.elementsEqual(inTableOrder.indices)
    format = table.format
  }

  /// Compares the keys of two changes by value: negative, zero or positive.
  func order(_ one: Int, _ other: Int, in bytes: RawSpan) -> Int {
    guard isInColumnOrder else {
      let (mine, theirs) = (values(of: one, in: bytes), values(of: other, in: bytes))
      for place in columns.indices {
        let order = mine[place].order(against: theirs[place], in: bytes)
        if order != 0 { return order }
      }
      return 0
    }
    let (myPlaces, theirPlaces) = (places(in: one, bytes), places(in: other, bytes))
    var (mine, theirs) = (RecordWalk(of: one), RecordWalk(of: other))
    for place in columns.indices {
      let order = mine.value(at: myPlaces[place], in: bytes)
        .order(against: theirs.value(at: theirPlaces[place], in: bytes), in: bytes)
      if order != 0 { return order }
    }
    return 0
  }

  /// Whether the keys of two changes are the same: kinds and bytes.
  func isSame(_ one: Int, _ other: Int, in bytes: RawSpan) -> Bool {
    zip(values(of: one, in: bytes), values(of: other, in: bytes))
      .allSatisfy { $0.isIdentical(to: $1, in: bytes, otherIn: bytes) }
  }

  /// The start of a change's key, as ``ValueSlice/orderPrefix(in:)`` gives it.
  func prefix(of change: Int, in bytes: RawSpan) -> UInt64 {
    var walk = RecordWalk(of: change)
    let isShort = format == .patchset && bytes.byte(at: change) == ChangeOperation.delete.rawValue
    return walk.value(at: isShort ? ranks[0] : columns[0], in: bytes).orderPrefix(in: bytes)
  }

  /// The values of a change's key, in key order.
  func values(of change: Int, in bytes: RawSpan) -> [ValueSlice] {
    let places = places(in: change, bytes)
    var values = [ValueSlice](repeating: .undefined, count: columns.count)
    var walk = RecordWalk(of: change)
    for index in indicesInColumnOrder { values[index] = walk.value(at: places[index], in: bytes) }
    return values
  }

  /// At which places of its first record a change holds its key.
  ///
  /// That is the old record of UPDATE and DELETE, the new one of INSERT and of a patchset's UPDATE.
  private func places(in change: Int, _ bytes: RawSpan) -> [Int] {
    format == .patchset && bytes.byte(at: change) == ChangeOperation.delete.rawValue ? ranks : columns
  }
}

/// Walks from value to value of the first record of a change.
private struct RecordWalk {
  private var place = 0
  private var position: Int

  init(of change: Int) { position = change + 2 }

  /// The value at a place, which must be behind the ones asked for before.
  mutating func value(at wanted: Int, in bytes: RawSpan) -> ValueSlice {
    while place < wanted {
      _ = ValueSlice(verified: bytes, at: &position)
      place += 1
    }
    place += 1
    return ValueSlice(verified: bytes, at: &position)
  }
}
