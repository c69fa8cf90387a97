import BuckiaLedger
import SQLiteSchemas

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
