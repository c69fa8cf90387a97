import BuckiaApply
import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Which deletions of a share are of rows that nobody has deleted: they have only left its scope, or went here because somebody else does
/// not share them any more, or because a diff was taken back.
package struct DepartedRows {
  /// What a change is.
  package enum Fate: Sendable {
    /// Somebody has made it.
    case edit
    /// The row is not shared any more.
    case departed
    /// The row is not shared any more, and its receiver has brought it here.
    case theirs
  }

  /// How many neighbouring changes have the same fate, in the order of the changeset.
  package private(set) var runs: [(count: Int64, fate: Fate)] = []
  /// How many rows of each table have departed.
  package private(set) var counts: [TableName: Int] = [:]

  /// Looks up the rows that a changeset deletes.
  ///
  /// - Parameters:
  ///   - changeset: The changes from what was shared to what is.
  ///   - definitions: Its tables.
  ///   - share: The share.
  ///   - readers: The keys with which its recipients sign.
  ///   - propagates: Whether rows that went here because of somebody else, or of an undo, count as deleted.
  ///   - contents: The rows that only their content identifies.
  ///   - schema: The schema of the database.
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`.
  package init(
    in changeset: TemporaryBuffer, of definitions: [TableDefinition], _ share: ShareEntry,
    readBy readers: Set<String>, propagating propagates: Bool, _ contents: SentContents, _ schema: SchemaReader,
    on connection: borrowing SQLiteConnection
  ) throws {
    let connection = SQLiteConnection(sharing: connection)
    let tables = try KeyedTables(definitions, schema)
    let vouchers = Vouchers(on: connection)
    // Unsigned diffs are those of a recipient only where the recipient has acknowledged the share.
    let acknowledging = try AcknowledgementEntry.all(of: share.number, on: connection).map(\.sender)
    let receivers = try share.isForOne() ? readers.subtracting([RecipientKey.unknown]).union(acknowledging) : []
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      var fate = Fate.edit
      if change.operation == .delete, let table = reader.table.flatMap({ tables.table(of: $0) }),
        table.hasKey(reader.old)
      {
        let key = table.key(reader.old, bytes)
        if try table.finds(table.exactLookup, reader.old, bytes, on: connection)
          || !propagates && TakenBackRows.contains(key, of: table.name, for: share.number, on: connection)
        {
          let isTheirs = try vouchers.brought(reader.old, bytes, of: table, by: receivers)
          fate = isTheirs ? .theirs : .departed
          if !isTheirs { counts[table.name, default: 0] += 1 }
        }
      } else if change.operation == .delete, let header = reader.table,
        let found = try contents.fate(header, reader.old, bytes, receivers: receivers)
      {
        fate = found
        if fate == .departed { counts[TableName(header.name), default: 0] += 1 }
      }
      if let last = runs.indices.last, runs[last].fate == fate {
        runs[last].count += 1
      } else {
        runs.append((1, fate))
      }
    }
  }

  /// Which changes are not sent.
  ///
  /// - Parameter keeps: Whether rows that have departed stay where they are.
  package func leftOut(keeping keeps: Bool) -> [(count: Int64, isLeftOut: Bool)] {
    runs.map { ($0.count, $0.fate == .theirs || keeps && $0.fate == .departed) }
  }

  /// Which of the changes that are sent withdraw a row.
  ///
  /// - Parameter keeps: Whether rows that have departed stay where they are.
  package func withdrawals(keeping keeps: Bool) -> [(count: Int64, isWithdrawal: Bool)] {
    runs.filter { $0.fate == .edit || !keeps && $0.fate == .departed }.map { ($0.count, $0.fate == .departed) }
  }
}
