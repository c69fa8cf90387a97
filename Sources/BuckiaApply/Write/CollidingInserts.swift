import BuckiaByteStreams
import BuckiaSchemaPlans
import SQLiteChangesets

/// Whether an INSERT whose key is that of a local row, and need not be the one that its author means, waits for the other changes
/// of its table, because one of them may delete that row.
///
/// There are two such keys: one that only compares equal to that of the row (`apple` and `Apple` under NOCASE, 2.0 and 2), and
/// any key where the local table makes one of keys that its author tells apart (`'1'` and `'01'` in an INTEGER column).
/// Whoever changes a key so deletes one row and inserts another. Our own diffs have the DELETE first. What SQLite inverts or
/// other programs write may have the INSERT first: it would meet a conflict, and the DELETE would then take the only row.
final class CollidingInserts {
  /// Whether also an INSERT waits that meets a row with its very key.
  let mergesKeys: Bool
  private let table: Int
  private let summary: ChangesetSummary
  private let changeset: TemporaryBuffer
  /// A change of the row that is inserted, which follows and would find it missing, forbids to wait. Looked up when the first
  /// key collides.
  private lazy var canWait = Result {
    try Changesets.changesEachRowOnce(
      summary.tables[table].table, sections: summary.sections.filter { $0.table == table }.map(\.changes),
      of: changeset)
  }

  /// - Parameters:
  ///   - table: The table's place in the summary.
  ///   - match: Where its columns are here.
  ///   - summary: What is known of all changes.
  ///   - changeset: The changes.
  init(into table: Int, _ match: TableMatch, _ summary: ChangesetSummary, of changeset: TemporaryBuffer) {
    self.table = table
    self.summary = summary
    self.changeset = changeset
    mergesKeys = !ApplyOrder.keepsKeysApart(of: summary.tables[table], in: match)
  }

  /// Whether such an INSERT waits.
  func wait() throws -> Bool { try canWait.get() }
}
