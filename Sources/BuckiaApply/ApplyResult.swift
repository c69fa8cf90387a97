import BuckiaKSUID
import BuckiaLedger
import BuckiaSchemaPlans

/// What applying did.
package struct ApplyResult: Sendable {
  /// What of the diff is held until there is a place for it.
  package internal(set) var held: [HeldSummary] = []
  /// What had been held of earlier diffs and has been applied now.
  package internal(set) var released: [ReleasedDiff] = []
  /// The numbers.
  package let counts: ApplyCounts
  /// The tables that changed.
  package let changedTables: [String]
  /// What was created and added.
  package internal(set) var schemaChanges: [String]
  /// What is worth knowing, such as indexes that could not be kept up to date.
  package internal(set) var warnings: [Remark]
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

/// What had been held of a diff and has been applied now.
package struct ReleasedDiff: Sendable {
  /// The diff's id; nil where it has none.
  package let diff: KSUID?
  /// Its sender, for people.
  package let sender: String
  /// The name of its file, without its folder.
  package let file: String
  /// The tables that changed.
  package internal(set) var changedTables: [String]
  /// What was done.
  package internal(set) var counts: ApplyCounts
  /// What is still held.
  package internal(set) var held: [HeldSummary]
  /// What is worth knowing.
  package internal(set) var warnings: [Remark]
  let entry: Int64
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
