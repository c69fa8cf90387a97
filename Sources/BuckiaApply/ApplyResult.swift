import BuckiaLedger
import SQLiteSchemas

/// What applying did.
package struct ApplyResult: Sendable {
  /// What of the diff is held until there is a place for it.
  package internal(set) var held: [HeldSummary] = []
  /// What became of earlier diffs of which parts were held and now have a place.
  package internal(set) var released: [ReleasedDiff] = []
  /// The numbers.
  package let counts: ApplyCounts
  /// The tables that changed.
  package internal(set) var changedTables: [String]
  /// What was created and added.
  package internal(set) var schemaChanges: [String]
  /// What is worth knowing, such as indexes that could not be kept up to date.
  package internal(set) var warnings: [Remark]
}

/// How one run over the changes of a diff ended.
enum ApplyEnd {
  /// They are applied.
  case applied(ApplyResult)
  /// Some rows refer to rows that were left out, as only the whole run has shown: everything is to be rolled back and run again
  /// with this.
  case refersToRefused(RefusedRows)
}

extension DiffOutcome {
  /// Adds what applying did.
  mutating func add(_ result: ApplyResult) {
    state = result.held.isEmpty ? .applied : .held
    if !result.held.isEmpty { reason = HeldSummary.reason(result.held) }
    heldParts = result.held.reduce(0) { $0 + $1.partCount }
    set(result.counts)
    schemaChanges = result.schemaChanges
    changedTables = result.changedTables
    warnings += result.warnings
    warnings += result.released.flatMap(\.remarks)
  }
}
