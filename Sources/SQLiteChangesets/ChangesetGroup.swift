/// Joins any number of changesets into one that has their effect: each row is changed at most once.
///
/// Equal in effect to [`sqlite3changegroup`](https://sqlite.org/session/changegroup.html). Tables are in order of first
/// appearance, rows in the order in which they were first changed. Rows are the same when their keys have the same kinds
/// and bytes; a key with NULL in it names no row, so such changes all stay, in their order. Whatever cannot happen to
/// one row in sequence (two INSERTs, say) keeps the first change and drops the second, as SQLite does.
///
/// ```swift
/// var group = ChangesetGroup()
/// for file in files { try file.withBytes { try group.add($0) } }
/// let joined = try group.joined()
/// ```
public struct ChangesetGroup: ~Copyable {
  /// Changesets joined end to end are a changeset: all that is added, waiting to be folded.
  private let gathered: ChangesetSpool
  private var directory = TableDirectory()

  /// Makes an empty group.
  ///
  /// - Parameter spool: An empty spool that keeps what is added.
  public init(gatheringInto spool: ChangesetSpool = ChangesetSpool()) { gathered = spool }

  /// Adds a changeset or patchset, which is checked and copied.
  ///
  /// - Throws: `ChangesetError` when the bytes are no changeset, with code `mixedFormats` when a patchset meets a
  ///   changeset, `incompatibleTables` when a table has other columns or another key than before; the group is as it
  ///   was then. `ChangesetSpool.Failure` when the copy fails; the group is then of no more use.
  public mutating func add(_ bytes: RawSpan) throws {
    var extended = directory
    var reader = ChangesetReader()
    while let change = try reader.next(in: bytes) {
      if change.startsTable { _ = try extended.place(of: reader, in: bytes) }
    }
    try gathered.append(0..<bytes.byteCount, of: bytes)
    directory = extended
  }

  /// Joins what has been added so far.
  ///
  /// Takes memory for all that was added, and about 60 bytes for each change.
  ///
  /// - Parameter output: Where the result is added.
  /// - Returns: `output`.
  /// - Throws: `ChangesetSpool.Failure` when the copies cannot be read or the output cannot be written; it may then hold
  ///   a part of the result.
  @discardableResult
  public borrowing func joined(into output: ChangesetSpool = ChangesetSpool()) throws -> ChangesetSpool {
    try gathered.withBytes { bytes in
      var index = try ChangesetIndex(of: bytes)
      for place in index.tables.indices {
        var table = index.take(place)
        table.sortByKey(in: bytes)
        try table.fold(bytes, into: output)
      }
    }
    return output
  }
}

extension Changesets {
  /// Joins changesets or patchsets into one that has their effect, in the order given; see ``ChangesetGroup``.
  ///
  /// - Parameters:
  ///   - changesets: What to join, the oldest first.
  ///   - output: Where the result is added.
  /// - Returns: `output`.
  /// - Throws: As ``ChangesetGroup/add(_:)`` and ``ChangesetGroup/joined(into:)``.
  @discardableResult
  public static func concatenated(
    _ changesets: [ChangesetSpool], into output: ChangesetSpool = ChangesetSpool()
  ) throws -> ChangesetSpool {
    var group = ChangesetGroup()
    for changeset in changesets {
      try changeset.withBytes { try group.add($0) }
    }
    return try group.joined(into: output)
  }
}

extension ChangesetIndex.Table {
  /// Writes one change for each row; the entries must be sorted by key.
  fileprivate func fold(_ bytes: RawSpan, into output: ChangesetSpool) throws {
    var reader = ChangesetReader(at: 0, in: table)
    var writer = ChangesetWriter()
    var hasHeader = false
    for row in rows(in: bytes) {
      if row.count == 1 {
        writer.append(entries[row.lowerBound].start..<entries[row.lowerBound].end, of: bytes)
      } else if let change = try folded(row, with: &reader, in: bytes) {
        change.write(to: &writer, in: table, bytes: bytes)
      } else {
        continue
      }
      if !hasHeader { try output.append(header) }
      hasHeader = true
      try output.append(writer.bytes)
      writer.removeAll()
    }
  }

  /// The ranges of entries that speak of one row each, in the order in which the rows were first changed.
  private func rows(in bytes: RawSpan) -> [Range<Int>] {
    var rows: [Range<Int>] = []
    var start = 0
    for index in entries.indices where index + 1 == entries.count || !areSameRow(index, index + 1, in: bytes) {
      rows.append(start..<(index + 1))
      start = index + 1
    }
    return rows.sorted { entries[$0.lowerBound].ordinal < entries[$1.lowerBound].ordinal }
  }

  private func folded(
    _ row: Range<Int>, with reader: inout ChangesetReader, in bytes: RawSpan
  ) throws(ChangesetError) -> RowChange? {
    var result: RowChange?
    for index in row {
      reader.move(to: entries[index].start)
      guard let change = try reader.next(in: bytes) else { continue }
      let next = RowChange(
        operation: change.operation, isIndirect: change.isIndirect, old: reader.old, new: reader.new)
      result = result.map { $0.followed(by: next, in: table, bytes: bytes) } ?? next
    }
    return result
  }
}
