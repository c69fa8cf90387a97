import BuckiaBytes

/// A change of a row as one side has it, where its bytes are, and its place among the changes of the side.
typealias SidedChange = (change: RowChange, range: Range<Int>, place: Int64)

/// All changes of one row: local and incoming ones, of one key or of keys that compare equal.
struct RowGroup {
  /// What the key is known by: the same bytes for keys that compare equal.
  var key: [UInt8]
  var local: [SidedChange] = []
  var incoming: [SidedChange] = []
}

/// The changes of one table in a changeset: the bytes of its sections.
typealias TableChanges = (changeset: TemporaryBuffer, sections: [Range<Int>])

/// The local and incoming changes of a table, brought together by key.
///
/// The changes are wrapped in records, which are sorted by key in bounded memory as often as they are gone through.
struct RowGroups {
  /// The key, the side, the place of the change, and the change.
  private static let record = ChangesetTable(name: "", keyFlags: [1, 0, 0, 0])
  private static let localSide: Int64 = 1

  private let table: ChangesetTable
  private let rules: RebaseTable?
  private let limits: ChangeSorter.Limits
  private var wrapped: SpooledChanges
  private var key: [UInt8] = []

  /// Wraps the changes.
  ///
  /// - Parameters:
  ///   - table: The table, as the local changes describe it.
  ///   - rules: What its definition says; nil where that is not known.
  ///   - local: The local changes.
  ///   - incoming: The incoming changes.
  ///   - limits: How much is held in memory.
  ///   - poll: Is called every few thousand changes. May throw to stop.
  init(
    _ table: ChangesetTable, _ rules: RebaseTable?, local: TableChanges, incoming: TableChanges?,
    limits: ChangeSorter.Limits, poll: () throws -> Void
  ) throws {
    self.table = table
    self.rules = rules
    self.limits = limits
    wrapped = SpooledChanges(in: local.changeset.makeEmpty())
    // Those of a key come in the order in which they are written here.
    if let incoming { try wrap(incoming, side: 0, poll: poll) }
    try wrap(local, side: Self.localSide, poll: poll)
    try wrapped.flush()
  }

  private mutating func wrap(_ changes: TableChanges, side: Int64, poll: () throws -> Void) throws {
    var place: Int64 = 0
    let layout = KeyLayout(table)
    try changes.changeset.forEachChange(in: changes.sections, of: table, poll: poll) { next, end, bytes in
      place += 1
      setKey(of: next, endingAt: end, place, side, layout, in: bytes)
      wrapped.writer.beginChange(.insert)
      wrapped.writer.append(blob: key)
      wrapped.writer.append(integer: side)
      wrapped.writer.append(integer: place)
      bytes.extracting(next.start..<end).withUnsafeBytes { wrapped.writer.append(.blob, $0) }
      try wrapped.endChange()
    }
  }

  private mutating func setKey(
    of change: ChangePlace, endingAt end: Int, _ place: Int64, _ side: Int64, _ layout: KeyLayout, in bytes: RawSpan
  ) {
    key.removeAll(keepingCapacity: true)
    let values = layout.values(of: change.start, in: bytes)
    for (column, value) in zip(layout.columns, values) {
      value.appendComparable(rules?.collation(of: column) ?? .binary, in: bytes, to: &key)
    }
    guard values.contains(where: { $0.kind == .null }) else { return }
    // NULL equals nothing: only its content tells which row is deleted, and an inserted one is another in any case.
    key.append(change.operation.rawValue)
    if change.operation == .delete {
      key += bytes.array(change.values..<end)
    } else {
      key += "\(side) \(place)".utf8
    }
  }

  /// Gives the changes of one row after the other to `body`, in the order of their keys.
  ///
  /// - Throws: `ByteStreamError` when a temporary file cannot be read or written; whatever `poll` and `body` throw.
  func forEach(poll: () throws -> Void, _ body: (RowGroup, RawSpan) throws -> Void) throws {
    var sorter = try ChangeSorter(
      Self.record, sections: [0..<wrapped.buffer.count], of: wrapped.buffer, limits: limits, poll: poll)
    var reader = ChangesetReader(at: 0, in: table)
    while try sorter.advance() {
      try poll()
      try sorter.bytes.withRawSpan { bytes in
        var group: RowGroup?
        while let record = sorter.next(in: bytes) {
          var position = record.values
          let key = ValueSlice(verified: bytes, at: &position).payloadRange
          let side = ValueSlice(verified: bytes, at: &position).integer(in: bytes)
          let place = ValueSlice(verified: bytes, at: &position).integer(in: bytes)
          let range = ValueSlice(verified: bytes, at: &position).payloadRange
          reader.move(to: range.lowerBound)
          guard let change = try RowChange(next: &reader, in: bytes) else { continue }
          let isSameRow = group.map { $0.key.withRawSpan { $0.isEqual(to: bytes.extracting(key)) } } ?? false
          if !isSameRow {
            if let group { try body(group, bytes) }
            group = RowGroup(key: bytes.array(key))
          }
          let sided = (change: change, range: range, place: place)
          if side == Self.localSide { group?.local.append(sided) } else { group?.incoming.append(sided) }
        }
        if let group { try body(group, bytes) }
      }
    }
  }
}

/// Local and incoming changes, each row changed at most once on either side, brought together by table.
struct RebaseSides {
  /// A table that either side changes.
  struct Table {
    let table: ChangesetTable
    /// The bytes of its header.
    let header: [UInt8]
    let local: TableChanges
    /// The incoming changes; nil for none.
    let incoming: TableChanges?
  }

  /// The tables of the local changes, then those that only the incoming changes have.
  let tables: [Table]

  /// Joins the changes of each row, and checks that the two speak of the same tables.
  ///
  /// - Throws: `ChangesetError`, as ``Changesets/rebased(_:onto:policy:)``; `ByteStreamError` when a temporary file fails; whatever `poll`
  ///   throws.
  init(
    local: TemporaryBuffer, incoming: TemporaryBuffer, limits: ChangeSorter.Limits, poll: () throws -> Void
  ) throws {
    let (mine, mySummary) = try Self.folded(local, limits, poll)
    let (theirs, theirSummary) = try Self.folded(incoming, limits, poll)
    let (mySections, theirSections) = (mySummary.sectionsByTable, theirSummary.sectionsByTable)
    var tables: [Table] = []
    var isPaired = [Bool](repeating: false, count: theirSummary.tables.count)
    for (entry, sections) in zip(mySummary.tables, mySections) {
      let place = theirSummary.tables.firstIndex { ASCIIName.matches($0.table.name, entry.table.name) }
      if let place {
        let other = theirSummary.tables[place].table
        guard other.keyFlags.elementsEqual(entry.table.keyFlags, by: { ($0 != 0) == ($1 != 0) }) else {
          throw ChangesetError(.incompatibleTables, offset: 0, table: entry.table.name)
        }
        isPaired[place] = true
      }
      tables.append(
        Table(
          table: entry.table, header: entry.header, local: (mine, sections),
          incoming: place.map { (theirs, theirSections[$0]) }))
    }
    for (place, entry) in theirSummary.tables.enumerated() where !isPaired[place] {
      tables.append(
        Table(
          table: entry.table, header: entry.header, local: (mine, []),
          incoming: (theirs, theirSections[place])))
    }
    self.tables = tables
  }

  private static func folded(
    _ changeset: TemporaryBuffer, _ limits: ChangeSorter.Limits, _ poll: () throws -> Void
  ) throws -> (TemporaryBuffer, ChangesetSummary) {
    let output = changeset.makeEmpty()
    try Changesets.concatenate([changeset], into: output, limits: limits, poll: poll)
    let summary = try ChangesetSummary.of(output, poll: poll)
    if summary.format == .patchset {
      throw ChangesetError(.needsChangeset, offset: 0, table: summary.tables.first?.table.name)
    }
    return (output, summary)
  }
}
