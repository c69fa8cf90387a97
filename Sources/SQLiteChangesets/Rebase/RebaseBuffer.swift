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

    /// Whether the incoming change deletes the row.
    var deletes: Bool
    /// Whether the incoming change, or an earlier one of the row, was made.
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
