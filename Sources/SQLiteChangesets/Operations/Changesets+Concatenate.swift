import BuckiaBytes

extension Changesets {
  /// Joins changesets or patchsets of any size in bounded memory; see ``concatenated(_:)``.
  ///
  /// - Parameters:
  ///   - changesets: What to join, the oldest first.
  ///   - output: Where the result is added.
  ///   - limits: How much is held in memory.
  ///   - poll: Is called every few thousand changes. May throw to stop.
  /// - Throws: `ChangesetError`, as ``concatenated(_:)``; `ByteStreamError` when a temporary file cannot be read or written;
  ///   whatever `poll` throws. The output may then hold a part of the result.
  package static func concatenate(
    _ changesets: [TemporaryBuffer], into output: TemporaryBuffer, limits: ChangeSorter.Limits = ChangeSorter.Limits(),
    poll: () throws -> Void = {}
  ) throws {
    // Changesets joined end to end are a changeset.
    let joined = changesets.count == 1 ? changesets[0] : output.makeEmpty()
    var builder = ChangesetSummary.Builder()
    var byteCount = 0
    for changeset in changesets {
      try builder.add(contentsOf: changeset, at: byteCount, poll: poll)
      if joined !== changeset { try joined.write(contentsOf: changeset) }
      byteCount += changeset.count
    }
    let summary = builder.finish(byteCount: byteCount)
    for (table, sections) in zip(summary.tables, summary.sectionsByTable) {
      var folding = RowFolding(table.table, limits: limits)
      let byKey = try folding.sortByKey(sections, of: joined, poll: poll)
      var folded = PlacedChanges(like: joined, limits: limits)
      try folding.fold(byKey, into: &folded, poll: poll)
      guard !folded.isEmpty else { continue }
      try output.write(table.header)
      try folded.write(to: output, poll: poll)
    }
  }
}

/// Makes one change of all changes of a row, for the rows of one table.
///
/// The changes are wrapped in records with what they are sorted by: first by key, to find those of one row, then by the
/// place of the row's first change among all changes.
private struct RowFolding {
  /// The first value of the key, which sorts fast, the bytes of all of it, the place of the change, and the change.
  private static let keyed = ChangesetTable(name: "", keyFlags: [1, 2, 0, 0])

  private let table: ChangesetTable
  private let limits: ChangeSorter.Limits
  private var reader: ChangesetReader
  /// The row that is being folded: its key, the place of its first change, and the one change, empty when nothing is left.
  private var key: [UInt8] = []
  private var place: Int64 = 0
  private var change: [UInt8] = []

  init(_ table: ChangesetTable, limits: ChangeSorter.Limits) {
    self.table = table
    self.limits = limits
    reader = ChangesetReader(at: 0, in: table)
  }

  /// Sorts changes by the bytes of their keys, those of one row in author's order.
  mutating func sortByKey(
    _ sections: [Range<Int>], of changeset: TemporaryBuffer, poll: () throws -> Void
  ) throws -> ChangeSorter {
    var wrapped = SpooledChanges(in: changeset.makeEmpty())
    let layout = KeyLayout(table)
    try changeset.forEachChange(in: sections, of: table, poll: poll) { next, end, bytes in
      let count = Int64(wrapped.count)
      wrapped.writer.beginChange(.insert)
      let values = layout.values(of: next.start, in: bytes)
      wrapped.writer.append(values[0], of: bytes)
      key.removeAll(keepingCapacity: true)
      for value in values {
        bytes.extracting(value.encoded).withUnsafeBytes { key.append(contentsOf: $0) }
        // NULL equals nothing: the row has no other change.
        if value.kind == .null { withUnsafeBytes(of: count) { key.append(contentsOf: $0) } }
      }
      wrapped.writer.append(blob: key)
      wrapped.writer.append(integer: count)
      bytes.extracting(next.start..<end).withUnsafeBytes { wrapped.writer.append(.blob, $0) }
      try wrapped.endChange()
    }
    return try wrapped.sorted(as: Self.keyed, limits: limits, poll: poll)
  }

  /// Folds the changes of each row.
  mutating func fold(_ sorter: consuming ChangeSorter, into output: inout PlacedChanges, poll: () throws -> Void) throws
  {
    var sorter = sorter
    key = []
    while try sorter.advance() {
      try poll()
      try sorter.bytes.withRawSpan { bytes in
        while let record = sorter.next(in: bytes) {
          var position = record.values
          _ = ValueSlice(verified: bytes, at: &position)
          let nextKey = bytes.extracting(ValueSlice(verified: bytes, at: &position).payloadRange)
          let nextPlace = ValueSlice(verified: bytes, at: &position).integer(in: bytes)
          let next = bytes.extracting(ValueSlice(verified: bytes, at: &position).payloadRange)
          if key.withRawSpan({ $0.isEqual(to: nextKey) }) {
            try follow(with: next)
          } else {
            try endRow(into: &output)
            Self.copy(nextKey, into: &key)
            place = nextPlace
            Self.copy(next, into: &change)
          }
        }
      }
    }
    try endRow(into: &output)
  }

  private mutating func follow(with next: RawSpan) throws(ChangesetError) {
    guard !change.isEmpty else { return Self.copy(next, into: &change) }
    next.withUnsafeBytes { change.append(contentsOf: $0) }
    var folded = ChangesetWriter()
    let both = change
    try both.withRawSpan { (bytes) throws(ChangesetError) in
      reader.move(to: 0)
      guard let first = try RowChange(next: &reader, in: bytes), let second = try RowChange(next: &reader, in: bytes)
      else { return }
      first.followed(by: second, in: table, bytes: bytes)?.write(to: &folded, in: table, bytes: bytes)
    }
    change = folded.bytes
  }

  private mutating func endRow(into output: inout PlacedChanges) throws(ByteStreamError) {
    guard !change.isEmpty else { return }
    try output.add(change, at: place)
    change.removeAll(keepingCapacity: true)
  }

  private static func copy(_ bytes: RawSpan, into array: inout [UInt8]) {
    array.removeAll(keepingCapacity: true)
    bytes.withUnsafeBytes { array.append(contentsOf: $0) }
  }
}

/// One change of one row, taken apart, and what becomes of two that follow each other.
///
/// All values are slices of the same bytes: joining changes picks values and never makes one.
struct RowChange {
  var operation: ChangeOperation
  var isIndirect: Bool
  /// As in `ChangesetReader`: one for each column, undefined where there is none.
  var old: [ValueSlice]
  var new: [ValueSlice]

  /// Takes apart the next change of a reader; nil at the end.
  init?(next reader: inout ChangesetReader, in bytes: RawSpan) throws(ChangesetError) {
    guard let change = try reader.next(in: bytes) else { return nil }
    operation = change.operation
    isIndirect = change.isIndirect
    old = reader.old
    new = reader.new
  }

  /// The one change that does what this one and then `next` do, or nil when nothing is left to do.
  ///
  /// | first | then INSERT | then UPDATE | then DELETE |
  /// | --- | --- | --- | --- |
  /// | INSERT | (first) | INSERT | nothing |
  /// | UPDATE | (first) | UPDATE | DELETE |
  /// | DELETE | UPDATE | (first) | (first) |
  ///
  /// In parentheses: this cannot happen to one row, and the first stands, as in
  /// [`sqlite3changegroup_add`](https://sqlite.org/session/sqlite3changegroup_add.html). The result is indirect when both
  /// are. An UPDATE of a changeset loses the columns that end as they began, and with the last of them itself; a patchset
  /// knows no old values, so its UPDATEs stay.
  func followed(by next: RowChange, in table: ChangesetTable, bytes: RawSpan) -> RowChange? {
    var result = self
    result.isIndirect = isIndirect && next.isIndirect
    switch (operation, next.operation) {
    case (.insert, .delete):
      return nil
    case (.insert, .update):
      result.new = zip(new, next.new).map { $1.isDefined ? $1 : $0 }
    case (.update, .update):
      result.old = zip(old, next.old).map { $0.isDefined ? $0 : $1 }
      result.new = zip(new, next.new).map { $1.isDefined ? $1 : $0 }
      return result.withoutEqualColumns(in: table, bytes: bytes)
    case (.update, .delete):
      result.operation = .delete
      result.old = zip(old, next.old).map { $0.isDefined ? $0 : $1 }
      result.new = next.new
    case (.delete, .insert):
      result.operation = .update
      result.new = next.new.indices.map { table.isKey($0) ? .undefined : next.new[$0] }
      return result.withoutEqualColumns(in: table, bytes: bytes)
    case (.insert, .insert), (.update, .insert), (.delete, .update), (.delete, .delete):
      return self
    }
    return result
  }

  private func withoutEqualColumns(in table: ChangesetTable, bytes: RawSpan) -> RowChange? {
    guard table.format == .changeset else { return self }
    var result = self
    var isNeeded = false
    for column in new.indices where !table.isKey(column) {
      if old[column].isIdentical(to: new[column], in: bytes, otherIn: bytes) {
        result.old[column] = .undefined
        result.new[column] = .undefined
      } else {
        isNeeded = true
      }
    }
    return isNeeded ? result : nil
  }

  /// Adds the change to a writer that is among the changes of its table.
  func write(to writer: inout ChangesetWriter, in table: ChangesetTable, bytes: RawSpan) {
    writer.beginChange(operation, isIndirect: isIndirect)
    let isPatchset = table.format == .patchset
    if operation == .delete || (operation == .update && !isPatchset) {
      for column in old.indices where !isPatchset || table.isKey(column) { writer.append(old[column], of: bytes) }
    }
    if operation != .delete {
      for column in new.indices {
        // A patchset's UPDATE is one record that holds the key too.
        let isKey = isPatchset && operation == .update && table.isKey(column)
        writer.append(isKey ? old[column] : new[column], of: bytes)
      }
    }
  }
}
