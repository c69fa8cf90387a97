import BuckiaKSUID
import SQLiteChangesets
import SQLiteSchemas

/// How the difference of two tables is found. All methods find the same one.
public enum DiffMethod: String, Sendable, CaseIterable {
  /// Both files are read once, and only rows on pages that differ are looked at. Tables it cannot do take `rows`.
  case pages
  /// A merge join of two ordered scans. Works for every table.
  case rows
  /// `sqlite3session_diff`. Tables it cannot do, and those it would get wrong, take `rows`.
  case session
}

/// By what rows of tables without a primary key are told apart.
public enum KeylessIdentity: String, Sendable, CaseIterable {
  /// By rowid: the other side becomes a mirror, rowids included.
  case rowid
  /// By content, each row as often as it is there: for databases that have given their rows rowids of their own. Nothing is
  /// an UPDATE then.
  case content
}

/// What to compare, and how.
public struct DiffOptions: Sendable {
  /// The tables to compare, or nil for all of them.
  public var tables: [TableName]?
  /// The method, or nil to choose the best for each table.
  public var method: DiffMethod?
  /// Whether the result is to travel without table definitions (`--raw`): then nothing that needs them is included.
  public var isRaw: Bool
  /// Columns that have another name in the newer database: else such a column is a new one, and the old one is dropped.
  public var renames: [ColumnRename]
  /// By what rows of tables without a primary key are told apart.
  public var keyless: KeylessIdentity

  /// Makes options.
  public init(
    tables: [TableName]? = nil, method: DiffMethod? = nil, isRaw: Bool = false, renames: [ColumnRename] = [],
    keyless: KeylessIdentity = .rowid
  ) {
    self.tables = tables
    self.method = method
    self.isRaw = isRaw
    self.renames = renames
    self.keyless = keyless
  }
}

/// Something that does not travel, and why. Nothing is left out without one of these.
public struct SkippedItem: Equatable, Sendable {
  /// The table, or `table.column`, or another object.
  public let name: String
  /// The reason, as a sentence for people.
  public let reason: String

  /// Makes an item.
  public init(name: String, reason: String) {
    self.name = name
    self.reason = reason
  }
}

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
  /// Tables that took `rows` because `pages` could not do them, and why.
  public let fallbacks: [SkippedItem]
  /// The greatest id in either database's ledger: new ids must be greater.
  public let newestID: KSUID?

  /// Whether there is nothing to ship.
  public var isEmpty: Bool { tables.isEmpty }
}
