import BuckiaApply
import BuckiaBytes
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Tells the real deletions of a share from rows that have only departed: they left the scope, were withdrawn by
/// another sender, or were removed by an undo.
package struct DepartedRows {
  /// What a change stands for.
  package enum Fate: Sendable {
    /// An edit.
    case edit
    /// The row is not shared any more.
    case departed
    /// The row is not shared any more, and its receiver has brought it here.
    case theirs
  }

  /// The numbers of neighbouring changes with the same fate, in the order of the changeset.
  package private(set) var runs: [(count: Int64, fate: Fate)] = []
  /// The number of departed rows of each table.
  package private(set) var counts: [TableName: Int] = [:]

  /// Looks up the rows that a changeset deletes.
  ///
  /// - Parameters:
  ///   - changeset: The changes from the shared rows to the present ones.
  ///   - definitions: Its tables.
  ///   - share: The share.
  ///   - readers: The keys with which its recipients sign.
  ///   - propagates: True if rows that another sender or an undo has removed here count as deleted.
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
    let provenance = Provenance(on: connection)
    // An unsigned diff counts as a recipient's only if its author has acknowledged the share.
    let acknowledging = try AcknowledgementEntry.all(of: share.number, on: connection).map(\.sender)
    let receivers = try share.isForOne() ? readers.subtracting([RecipientKey.unknown]).union(acknowledging) : []
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      var fate = Fate.edit
      if change.operation == .delete, let table = reader.table.flatMap({ tables.table(of: $0) }),
        table.hasKey(reader.old)
      {
        let key = table.key(reader.old, bytes)
        if try table.finds(table.exactLookup, reader.old, bytes, on: connection)
          || !propagates && RowNotes(.takenBack, of: table.name, for: share.number).contain(key, on: connection)
        {
          let isTheirs = try provenance.brought(reader.old, bytes, of: table, by: receivers)
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

  /// The changes that are not sent.
  ///
  /// - Parameter keeps: True if departed rows stay at the recipients.
  package func leftOut(keeping keeps: Bool) -> [(count: Int64, isLeftOut: Bool)] {
    runs.map { ($0.count, $0.fate == .theirs || keeps && $0.fate == .departed) }
  }

  /// The sent changes that withdraw a row.
  ///
  /// - Parameter keeps: True if rows that have departed stay where they are.
  package func withdrawals(keeping keeps: Bool) -> [(count: Int64, isWithdrawal: Bool)] {
    runs.filter { $0.fate == .edit || !keeps && $0.fate == .departed }.map { ($0.count, $0.fate == .departed) }
  }
}

/// Goes through the withdrawals of a diff, change by change.
struct WithdrawalRuns {
  private let runs: [(count: Int64, isWithdrawal: Bool)]
  private var index = 0
  private var place: Int64 = 0

  init(_ runs: [(count: Int64, isWithdrawal: Bool)]) { self.runs = runs }

  /// True if the next change is a withdrawal.
  mutating func next() -> Bool {
    while index < runs.count, place == runs[index].count {
      index += 1
      place = 0
    }
    guard index < runs.count else { return false }
    place += 1
    return runs[index].isWithdrawal
  }
}
