import SQLiteChangesets
import SQLiteSchemas

/// What changed in one table.
public struct TableDifference: Sendable {
  /// The table as it is in the newer database, with the columns of the changeset in their order.
  public let definition: TableDefinition
  /// Rows in the newer database only.
  public let inserted: Int
  /// Rows in both, with other values.
  public let updated: Int
  /// Rows in the older database only.
  public let deleted: Int
  /// How it was found.
  public let method: DiffMethod
  /// Whether the table is missing in the older database.
  public let isNew: Bool
  /// Columns that are missing in the older database.
  public let newColumns: [String]
  /// Columns that have another name in the older database.
  public let renames: [ColumnRename]
}

/// The difference of two databases: what turns the older into the newer.
public struct DatabaseDifference {
  /// The changes, table by table; inside a table deletes, then updates, then inserts, each by key.
  public let changeset: ChangesetSpool
  /// The tables with changes, in the order of the changeset, and those with a new definition but no rows.
  public let tables: [TableDifference]
  /// What does not travel.
  public let skipped: [SkippedItem]
  /// Tables that took `rows` because `pages` could not compare them, and why.
  public let fallbacks: [SkippedItem]

  /// Whether there is nothing to ship.
  public var isEmpty: Bool { tables.isEmpty }
}
