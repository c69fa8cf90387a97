import BuckiaApply
import BuckiaBytes
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The rows that recipients of a share have sent and that were deleted here, as far as the share has not sent the
/// deletion.
///
/// A share is the difference between its scope and the rows that its recipients are known to have: those that were sent
/// to them, which are in the baseline, and those that they have sent. Of the latter only hashes are kept. A deleted row
/// of theirs is therefore added to the baseline by its key, and its deletion names the version that was here
/// (``SentOriginKeys``).
package struct UnsentDeletions {
  /// The keys of the deleted rows, in the format of changesets.
  package private(set) var gone: [TableName: Set<[UInt8]>] = [:]
  /// The tables whose baselines have got the recipients' rows without a key.
  private var counted: Set<TableName> = []

  /// The tables whose baselines were changed.
  package var tables: Set<TableName> { counted.union(gone.keys) }

  /// Finds the rows, and adds them to the baseline.
  ///
  /// - Parameters:
  ///   - share: The share.
  ///   - senders: The recipients' signing keys, in the ledger's form.
  ///   - isSnapshot: True to examine all rows that they have sent, because no diff has been sent yet; false to examine
  ///     those since the last diff.
  ///   - baseline: The rows that were sent.
  ///   - rows: The scope.
  ///   - schema: The schema of the database.
  /// - Throws: `SQLiteError`, `ReplicationError`; `LedgerError` for a newer ledger.
  package init(
    of share: ShareEntry, from senders: Set<String>, isSnapshot: Bool, _ baseline: Baseline, _ rows: ScopeRows,
    _ schema: SchemaReader, on connection: borrowing SQLiteConnection
  ) throws {
    let connection = SQLiteConnection(sharing: connection)
    let provenance = Provenance(on: connection)
    let unsent = try isSnapshot ? [:] : RowNotes.unsent(by: share.number, on: connection)
    let selections = rows.selections
    for name in rows.tables where isSnapshot || unsent[name] != nil {
      guard let local = try schema.table(named: name) else { continue }
      let sent = try (selections[name] ?? RowSelection()).applied(to: local)
      // Recipients of a part of a table need not have all rows of the dataset.
      let common = rows.isWhole(name) ? senders.union([CopiedRows.datasetSender]) : senders
      if let table = try ContentTables([sent], schema, on: connection)[name] {
        // The table's columns may have changed since the rows were recorded, which this puts into the present ones.
        _ = try table.counted()
        let held =
          try isSnapshot
          ? table.deleted(heldBy: common.union([SentContents.holder(of: share.number)]))
          : table.held(
            RowNotes.unsent(by: share.number, on: connection)[name]?.counts ?? [:], areForOne: share.isForOne())
        if !held.isEmpty {
          counted.insert(name)
          try baseline.set(held, of: table, sent)
        }
      }
      guard let table = KeyedTable(sent, local) else { continue }
      var found: Set<[UInt8]> = []
      // A parked row is not deleted.
      let parked = Set(try ParkedRows.all(of: name, on: connection).map(\.key))
      func look(_ key: [UInt8], _ brought: [ProvenanceEntry]) throws {
        let isHere = try key.withRawSpan {
          try table.finds(table.lookup, table.row(withKey: $0), $0, on: connection)
        }
        // A row that was never accepted was not here, and a row that an undo has removed was not deleted.
        guard !isHere, !parked.contains(key),
          try ![share.number, RowNotes.laterShares].contains(where: {
            try RowNotes(.takenBack, of: name, for: $0).contain(key, on: connection)
          }),
          try brought.contains(where: {
            try RowNotes(untakenFrom: $0.number).state(of: table.folded(key), on: connection) != RowState.absent
          })
        else { return }
        found.insert(key)
      }
      if isSnapshot {
        try provenance.forEach(of: table, from: common) { try look($0, [$1]) }
      } else {
        for key in unsent[name]?.keys ?? [] {
          let brought = try key.withRawSpan { try provenance.found(table.row(withKey: $0), $0, of: table) }
          try look(key, brought.map(\.entry).filter { senders.contains($0.sender) })
        }
      }
      guard !found.isEmpty else { continue }
      gone[name] = found
      try baseline.add(found.sorted { $0.lexicographicallyPrecedes($1) }, of: sent)
    }
  }
}
