import BuckiaApply
import BuckiaLedger
import SQLiteSchemas

/// What ``DatabaseManager/resolve(_:taking:options:)`` did.
public struct ResolveReport: Sendable {
  /// Each conflict, in the order given. Of conflicts that a filter has chosen, the first 1,000 that were resolved, and the first 1,000
  /// that were not, in the order of their numbers.
  public let conflicts: [ResolvedConflict]
  /// What became of all of them.
  public let counts: ResolveCounts
  /// The rules that the answers were kept as.
  public let rules: [ConflictRule]
  /// The tables that were changed.
  public let changedTables: [String]
  /// The rows that were changed, by table, where the options ask for them; else empty.
  public let changedRows: [ChangedRows]
  /// Sentences about rows that refer to others which are not there, because of what was written.
  public let violations: [String]
  /// What is worth knowing.
  public let warnings: [Remark]
  /// Whether nothing was changed, because only a report was wanted.
  public let isDryRun: Bool

  /// The conflicts that were resolved, of ``conflicts``.
  public var resolved: [ResolvedConflict] { conflicts.filter { $0.refusal == nil } }
  /// The conflicts that were not, of ``conflicts``.
  public var refused: [ResolvedConflict] { conflicts.filter { $0.refusal != nil } }
}
