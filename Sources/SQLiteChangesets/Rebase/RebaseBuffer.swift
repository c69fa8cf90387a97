import BuckiaBytes

/// How conflicts were resolved while changesets were applied, as SQLite writes it into rebase buffers.
///
/// [`sqlite3changeset_apply_v2`](https://sqlite.org/session/sqlite3changeset_apply.html) fills such a buffer with one record for
/// each change that met a conflict. A record looks like a change, but may leave out values where an INSERT must not, so a
/// `ChangesetReader` does not take it: DELETE stands for an incoming DELETE, INSERT for an incoming INSERT or UPDATE. Where a change is
/// marked as indirect, the incoming change was made (REPLACE); the others were left out (OMIT).
struct RebaseBuffer {
  /// What was decided about a row.
  struct Resolution {
    /// What became of a column.
    enum Column {
      /// The incoming change does not set it.
      case untouched
      /// The incoming value, encoded, which was left out.
      case omitted([UInt8])
      /// The incoming value was taken.
      case replaced
    }

    /// True if the incoming change deletes the row.
    var deletes: Bool
    /// True if the incoming change, or an earlier one of the row, was made.
    var isReplaced: Bool
    /// The columns of the table. Key columns are always `omitted`, with the key.
    var columns: [Column]
  }

  /// The resolutions of one table.
  struct Table {
    let keyFlags: [UInt8]
    /// By the bytes of the encoded key.
    var resolutions: [[UInt8]: Resolution] = [:]
  }

  private var tables: [[UInt8]: Table] = [:]

  /// The resolutions of the table with a name, as the bytes of a header have it.
  func table(named name: [UInt8]) -> Table? { tables[name.map(ASCIIName.folded)] }

  /// Adds the resolutions of a changeset that was applied after those added before.
  ///
  /// See [`sqlite3rebaser_configure`](https://sqlite.org/session/sqlite3rebaser_configure.html) for how those of one row are
  /// combined.
  ///
  /// - Throws: `ChangesetError` when the bytes are no rebase buffer.
  mutating func add(_ bytes: RawSpan) throws(ChangesetError) {
    var position = 0
    var header: ChangesetHeader?
    while position < bytes.byteCount {
      if ChangesetFormat(rawValue: bytes.byte(at: position)) != nil {
        let next = try ChangesetHeader(reading: bytes, at: &position)
        guard next.table.format == .changeset else {
          throw ChangesetError(.needsChangeset, offset: next.range.lowerBound, table: next.table.name)
        }
        header = next
        continue
      }
      guard let header else { throw ChangesetError(.changeBeforeTable, offset: position) }
      try addRecord(of: header, bytes, at: &position)
    }
  }

  private mutating func addRecord(
    of header: ChangesetHeader, _ bytes: RawSpan, at position: inout Int
  ) throws(ChangesetError) {
    let start = position
    let table = header.table
    let operation = ChangeOperation(rawValue: bytes.byte(at: start))
    guard operation == .insert || operation == .delete else {
      throw ChangesetError(.unknownOperation, offset: start, table: table.name)
    }
    guard start + 2 <= bytes.byteCount else { throw ChangesetError(.truncated, offset: start, table: table.name) }
    var resolution = Resolution(
      deletes: operation == .delete, isReplaced: bytes.byte(at: start + 1) != 0, columns: [])
    position += 2
    var key: [UInt8] = []
    for column in table.keyFlags.indices {
      let value = try ValueSlice(reading: bytes, at: &position)
      let encoded = bytes.array(value.encoded)
      if table.isKey(column) {
        guard value.isDefined else { throw ChangesetError(.misplacedValue, offset: start, table: table.name) }
        key += encoded
        resolution.columns.append(.omitted(encoded))
      } else if !value.isDefined {
        resolution.columns.append(.untouched)
      } else {
        resolution.columns.append(resolution.isReplaced ? .replaced : .omitted(encoded))
      }
    }
    let name = bytes.array(header.nameRange).map(ASCIIName.folded)
    var known = tables[name] ?? Table(keyFlags: table.keyFlags)
    guard known.keyFlags == table.keyFlags else {
      throw ChangesetError(.incompatibleTables, offset: header.range.lowerBound, table: table.name)
    }
    known.resolutions[key] = known.resolutions[key]?.followed(by: resolution, in: table) ?? resolution
    tables[name] = known
  }
}

extension RebaseBuffer.Resolution {
  /// The one resolution that stands for this one and then `next`.
  fileprivate func followed(by next: Self, in table: ChangesetTable) -> Self {
    // The row was deleted here, too: whatever came afterwards met no local row.
    if deletes && isReplaced { return self }
    var result = next
    result.isReplaced = isReplaced || next.isReplaced
    for column in columns.indices {
      switch (columns[column], next.columns[column]) {
      case (.replaced, _): result.columns[column] = .replaced
      case (_, _) where next.isReplaced && !table.isKey(column): result.columns[column] = .replaced
      case (let earlier, .untouched): result.columns[column] = earlier
      default: break
      }
    }
    return result
  }
}

extension Changesets {
  /// Rebases a changeset as [`sqlite3rebaser_rebase`](https://sqlite.org/session/sqlite3rebaser_rebase.html) does, byte for byte.
  ///
  /// Someone has recorded `changeset`, then applied the changesets of others with
  /// [`sqlite3changeset_apply_v2`](https://sqlite.org/session/sqlite3changeset_apply.html), and kept the rebase buffers. The result
  /// can be applied where those changesets have been applied, without the conflicts that are resolved already:
  ///
  /// | local | left out: DELETE | left out: INSERT or UPDATE | taken |
  /// | --- | --- | --- | --- |
  /// | INSERT | as it is | UPDATE; as it is after a DELETE | nothing; as it is after a DELETE |
  /// | UPDATE | INSERT | with the incoming values as old ones | without the columns that were taken |
  /// | DELETE | nothing | with the incoming values as old ones | as it is, or nothing after a DELETE |
  ///
  /// SQLite's rebaser has limits: it loses the columns that only one side has set where the incoming change was left out, keys that compare
  /// equal are different rows, and a local DELETE always wins. ``rebased(_:onto:policy:)`` is right there, and needs no buffer.
  ///
  /// - Parameters:
  ///   - changeset: What was recorded before.
  ///   - buffers: The rebase buffers, the oldest first. They are held in memory.
  /// - Throws: `ChangesetError` when the bytes are no changeset or no rebase buffer; with code `needsChangeset` for a patchset, and
  ///   `incompatibleTables` when a table has other columns or another key in a buffer.
  public static func rebased(_ changeset: [UInt8], resolving buffers: [[UInt8]]) throws -> [UInt8] {
    try inMemory { try rebase(TemporaryBuffer(changeset), resolving: buffers, into: $0) }
  }

  /// Rebases a changeset of any size in bounded memory; see ``rebased(_:resolving:)``.
  ///
  /// - Parameters:
  ///   - changeset: What was recorded before.
  ///   - buffers: The rebase buffers, the oldest first.
  ///   - output: Where the result is added.
  ///   - poll: Is called every few thousand changes. May throw to stop.
  /// - Throws: `ChangesetError`, as ``rebased(_:resolving:)``; `ByteStreamError` when the input cannot be read or the output cannot be
  ///   written; whatever `poll` throws. The output may then hold a part of the result.
  package static func rebase(
    _ changeset: TemporaryBuffer, resolving buffers: [[UInt8]], into output: TemporaryBuffer,
    poll: () throws -> Void = {}
  ) throws {
    var resolutions = RebaseBuffer()
    for buffer in buffers { try buffer.withRawSpan { bytes throws(ChangesetError) in try resolutions.add(bytes) } }
    var rebaser = BufferRebaser(resolutions)
    var scan = ChangesetScan(changeset, largeChanges: AbridgedChange.Limits(wholeChange: .max))
    while try scan.advance() {
      try poll()
      try scan.window.withBytes { bytes in
        while let change = try scan.next(in: bytes) {
          try rebaser.add(change, scan.reader, in: bytes)
          try output.write(rebaser.writer.bytes)
          rebaser.writer.removeAll()
        }
      }
    }
  }
}

/// Rebases one change after the other.
private struct BufferRebaser {
  var writer = ChangesetWriter()
  private let resolutions: RebaseBuffer
  private var table: RebaseBuffer.Table?

  init(_ resolutions: RebaseBuffer) { self.resolutions = resolutions }

  /// Writes what becomes of a change, with the header in front of it.
  mutating func add(_ change: Change, _ reader: ChangesetReader, in bytes: RawSpan) throws(ChangesetError) {
    guard let header = reader.table else { return }
    if change.startsTable {
      guard header.format == .changeset else {
        throw ChangesetError(
          .needsChangeset, offset: reader.base + reader.headerRange.lowerBound, table: header.name)
      }
      table = resolutions.table(named: bytes.array(reader.nameRange))
      if let table, table.keyFlags.count != header.columnCount {
        throw ChangesetError(
          .incompatibleTables, offset: reader.base + reader.headerRange.lowerBound, table: header.name)
      }
      writer.append(reader.headerRange, of: bytes)
    }
    var position = change.range.lowerBound + 2
    let first = record(of: header, at: &position, in: bytes)
    guard let table, let resolution = table.resolutions[key(of: first, in: header, bytes)] else {
      return writer.append(change.range, of: bytes)
    }
    switch change.operation {
    case .insert where resolution.deletes: writer.append(change.range, of: bytes)
    case .insert where resolution.isReplaced: break
    case .insert:
      writer.beginChange(.update, isIndirect: change.isIndirect)
      for column in resolution.columns { append(column) }
      for value in first { writer.append(value, of: bytes) }
    case .update where resolution.deletes && resolution.isReplaced: break
    case .update where resolution.deletes:
      let new = record(of: header, at: &position, in: bytes)
      writer.beginChange(.insert, isIndirect: change.isIndirect)
      for (value, column) in zip(new, resolution.columns) {
        if value.isDefined { writer.append(value, of: bytes) } else { append(column) }
      }
    case .update:
      let new = record(of: header, at: &position, in: bytes)
      addUpdate(old: first, new: new, change, resolution, in: header, bytes)
    case .delete where resolution.deletes: break
    case .delete:
      writer.beginChange(.delete, isIndirect: change.isIndirect)
      for (value, column) in zip(first, resolution.columns) {
        if case .omitted(let encoded) = column {
          writer.append(encoded: encoded)
        } else {
          writer.append(value, of: bytes)
        }
      }
    }
  }

  private mutating func addUpdate(
    old: [ValueSlice], new: [ValueSlice], _ change: Change, _ resolution: RebaseBuffer.Resolution,
    in header: ChangesetTable, _ bytes: RawSpan
  ) {
    let isKept = header.keyFlags.indices.contains { column in
      if case .replaced = resolution.columns[column] { return false }
      return !header.isKey(column) && old[column].isDefined
    }
    guard isKept else { return }
    writer.beginChange(.update, isIndirect: change.isIndirect)
    for (column, value) in old.enumerated() {
      switch resolution.columns[column] {
      case .omitted(let encoded) where !header.isKey(column) && value.isDefined: writer.append(encoded: encoded)
      case .replaced: writer.appendUndefined()
      default: writer.append(value, of: bytes)
      }
    }
    for (column, value) in new.enumerated() {
      if case .replaced = resolution.columns[column] {
        writer.appendUndefined()
      } else {
        writer.append(value, of: bytes)
      }
    }
  }

  private mutating func append(_ column: RebaseBuffer.Resolution.Column) {
    if case .omitted(let encoded) = column { writer.append(encoded: encoded) } else { writer.appendUndefined() }
  }

  /// The values of a record as they stand in the bytes: what SQLite writes there and never applies is copied, too.
  private func record(of table: ChangesetTable, at position: inout Int, in bytes: RawSpan) -> [ValueSlice] {
    table.keyFlags.map { _ in ValueSlice(verified: bytes, at: &position) }
  }

  private func key(of record: [ValueSlice], in table: ChangesetTable, _ bytes: RawSpan) -> [UInt8] {
    record.indices.filter { table.isKey($0) }.flatMap { bytes.array(record[$0].encoded) }
  }
}
