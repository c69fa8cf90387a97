import BuckiaDiff
import BuckiaLedger
import SQLiteSchemas

/// What merging two databases did: see <doc:Merging>.
public struct MergeReport: Sendable {
  /// The merged database.
  public internal(set) var path: String
  /// Whether there was a base. Without one, only rows that are equal on both sides are one row.
  public let hasBase: Bool
  /// Whether nothing was changed, because only a report was wanted.
  public let isDryRun: Bool
  /// Rows inserted.
  public internal(set) var inserted = 0
  /// Rows updated.
  public internal(set) var updated = 0
  /// Rows deleted.
  public internal(set) var deleted = 0
  /// Changes that were not written.
  public internal(set) var omitted = 0
  /// How many conflicts of each table, kind and outcome were recorded, or would have been.
  public internal(set) var conflictCounts: [ConflictCount] = []
  /// The first 10,000 of the conflicts that a dry run would have recorded; empty where it was none, since
  /// ``DatabaseManager/conflicts(matching:)`` has them.
  public internal(set) var dryRunConflicts: [ConflictRecord] = []
  /// What both sides have changed in the schema, each in another way. The database keeps its own; only this report names them.
  public internal(set) var schemaConflicts: [SchemaConflict] = []
  /// Whether all that the other side has changed in the schema was taken, but for what is a conflict. If not, a remark says why, and what
  /// is left out is among those that were skipped.
  public internal(set) var isSchemaMerged = true
  /// What was, or would be, created, added, changed and dropped, as sentences.
  public internal(set) var schemaChanges: [String] = []
  /// What of the other database could not be compared or taken, and why.
  public internal(set) var skipped: [SkippedItem] = []
  /// What is worth knowing although it stops nothing.
  public internal(set) var warnings: [Remark] = []
  /// The tables that changed.
  public internal(set) var changedTables: [String] = []
  /// How long it took, in seconds.
  public internal(set) var seconds = 0.0

  /// How many conflicts of rows were recorded, or would have been.
  public var conflicts: Int { conflictCounts.reduce(0) { $0 + $1.count } }
  /// True if nothing is left for a person to decide, and nothing that the other side has changed was left out.
  public var isClean: Bool {
    conflictCounts.isEmpty && schemaConflicts.isEmpty && isSchemaMerged && !skipped.contains(where: \.leavesRowsOut)
      && !warnings.contains { $0.code == .keyChanged }
  }
}
