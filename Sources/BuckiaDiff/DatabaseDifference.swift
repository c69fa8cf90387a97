import BuckiaBytes
import SQLiteChangesets
import SQLiteSchemas

/// What changed in one table.
package struct TableDifference: Sendable {
  /// The table as it is in the newer database, with the columns of the changeset in their order.
  package let definition: TableDefinition
  /// Rows in the newer database only.
  package let inserted: Int
  /// Rows in both, with other values.
  package let updated: Int
  /// Rows in the older database only.
  package let deleted: Int
  /// How it was found.
  package let method: DiffMethod
  /// Whether the table is missing in the older database.
  package let isNew: Bool
  /// Columns that are missing in the older database.
  package let newColumns: [String]
  /// Columns that have another name in the older database.
  package let renames: [ColumnRename]
}

/// The difference of two databases: what turns the older into the newer.
package struct DatabaseDifference {
  /// The changes, table by table; inside a table deletes, then updates, then inserts, each by key.
  package let changeset: TemporaryBuffer
  /// The tables with changes, in the order of the changeset, and those with a new definition but no rows.
  package let tables: [TableDifference]
  /// What does not travel.
  package let skipped: [SkippedItem]
  /// Tables that took `rows` because `pages` could not compare them, and why.
  package let fallbacks: [SkippedItem]

  /// The newer database's schema as SQL; nil where the schemas are equal, or it cannot travel.
  package var author: AuthorSchema?

  /// Whether there is nothing to ship.
  package var isEmpty: Bool { tables.isEmpty && author == nil }
}
