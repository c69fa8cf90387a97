import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
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

/// What is held of one table of a diff.
package struct HeldSummary: Sendable {
  /// The table.
  package let table: String
  /// The columns; empty where it is the whole table.
  package let columns: [String]
  /// How many changes.
  package let changes: Int
  /// Why, for people.
  package let reason: String
}

extension HeldSummary {
  /// What is held in a part.
  init(_ part: HeldPart) {
    self.init(table: part.table, columns: part.columnNames, changes: part.changeCount, reason: part.reason)
  }

  /// How many tables and columns that is.
  package var partCount: Int { max(1, columns.count) }

  /// What is held, in one sentence.
  package static func reason(_ held: [HeldSummary]) -> String {
    held.map { part in
      let changes = part.changes == 1 ? "1 change" : "\(part.changes) changes"
      return "\(changes) of \(part.table) kept: \(part.reason)"
    }.joined(separator: "; ")
  }
}

/// What became of one file.
public struct DiffOutcome: Sendable {
  /// The diff file's id; nil when it has none or could not be read.
  public var id: KSUID?
  /// The file.
  public var path: String
  /// The sender, for people: a trusted contact's name, "you", "unsigned", "unknown" for a file that could not be read that far, or "key …" with the verified key.
  public var sender: String
  /// The verified key of the sender in hex; nil where no signature says whose it is.
  public var senderKey: String?
  /// What became of it.
  public var state: DiffState
  /// Rows inserted.
  public var inserted = 0
  /// Rows updated.
  public var updated = 0
  /// Rows deleted.
  public var deleted = 0
  /// Conflicts met.
  public var conflicts = 0
  /// Those of them that a rule has decided, which is an answer that was kept.
  public var decidedByRule = 0
  /// Changes that were not written.
  public var omitted = 0
  /// What was, or would be, created and added, as sentences.
  public var schemaChanges: [String] = []
  /// What becomes of every table and column that is not the same in the diff and here, and why.
  public var plan: [SchemaNote] = []
  /// How many tables and columns are kept for an upgrade.
  public var heldParts = 0
  /// Why it was refused or waits.
  public var reason: String?
  /// The code of the error behind the reason, such as `badTarHeader`, `key-differs` or `conflict`.
  public var code: BuckiaErrorCode?
  /// What is worth knowing although it is no refusal, such as an index that wants rebuilding.
  public var warnings: [Remark] = []
  /// Whether the file has been removed, because all it holds is in the database.
  public var isRemoved = false
  /// The tables that changed.
  public var changedTables: [String] = []
}

extension DiffOutcome {
  /// Takes the numbers of what was done.
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
