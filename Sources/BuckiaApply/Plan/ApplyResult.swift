import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteSchemas

/// What applying did.
package struct ApplyResult: Sendable {
  /// What of the diff is held until there is a place for it.
  package internal(set) var held: [HeldSummary] = []
  /// The earlier diffs with held parts that have been applied now.
  package internal(set) var released: [ReleasedDiff] = []
  /// The numbers.
  package let counts: ApplyCounts
  /// The tables that changed.
  package internal(set) var changedTables: [String]
  /// The created tables and added columns, as sentences.
  package internal(set) var schemaChanges: [String]
  /// Warnings, such as about indexes that could not be kept up to date.
  package internal(set) var warnings: [Warning]
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
  /// Adds the result of applying.
  mutating func add(_ result: ApplyResult) {
    state = result.held.isEmpty ? .applied : .held
    if !result.held.isEmpty { reason = HeldSummary.reason(result.held) }
    heldParts = result.held.reduce(0) { $0 + $1.partCount }
    set(result.counts)
    schemaChanges = result.schemaChanges
    changedTables = result.changedTables
    warnings += result.warnings
    warnings += result.released.flatMap(\.warnings)
  }
}

/// The held part of one table of a diff.
package struct HeldSummary: Sendable {
  /// The table.
  package let table: String
  /// The columns; empty for the whole table.
  package let columns: [String]
  /// The number of changes.
  package let changes: Int
  /// Why, for people.
  package let reason: String
}

extension HeldSummary {
  /// Summarizes a held part.
  init(_ part: HeldPart) {
    self.init(table: part.table, columns: part.columnNames, changes: part.changeCount, reason: part.reason)
  }

  /// The number of held tables or columns.
  package var partCount: Int { max(1, columns.count) }

  /// A sentence about the held parts.
  package static func reason(_ held: [HeldSummary]) -> String {
    held.map { part in
      let changes = part.changes == 1 ? "1 change" : "\(part.changes) changes"
      return "\(changes) of \(part.table) kept: \(part.reason)"
    }.joined(separator: "; ")
  }
}

extension DiffOutcome {
  /// Sets the counts.
  mutating func set(_ counts: ApplyCounts) {
    inserted = counts.inserted
    updated = counts.updated
    deleted = counts.deleted
    conflicts = counts.conflicts
    decidedByRule = counts.decidedByRule
    omitted = counts.omitted
  }
}

extension ApplyCounts {
  /// Counts a row that was written.
  mutating func add(_ operation: ChangeOperation) {
    switch operation {
    case .insert: inserted += 1
    case .update: updated += 1
    case .delete: deleted += 1
    }
  }

  /// The counts when every change of a changeset is written.
  init(expecting summary: ChangesetSummary) {
    self.init(inserted: summary.inserted, updated: summary.updated, deleted: summary.deleted)
  }

  /// The counts when every change of one of its tables is written.
  init(expecting table: ChangesetSummary.Table) {
    self.init(inserted: table.inserted, updated: table.updated, deleted: table.deleted)
  }
}
