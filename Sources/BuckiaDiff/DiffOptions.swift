import SQLiteSchemas

/// What identifies the rows of tables without a primary key.
public enum KeylessIdentity: String, Sendable, CaseIterable {
  /// Their rowid: the other side becomes a mirror, rowids included.
  case rowid
  /// By content, counting equal rows: for databases that have assigned rowids independently. There are no UPDATEs then.
  case content
}

/// Options for comparing.
public struct DiffOptions: Sendable {
  /// The tables to compare, or nil for all of them.
  public var tables: [TableName]?
  /// Tables that are never compared, such as a library's records about this very file.
  ///
  /// As with chosen tables, the schema as a whole does not travel then.
  public var excludedTables: Set<TableName> = []
  /// The rows and columns of tables to compare; all of them for other tables.
  ///
  /// They apply to both databases. Conditions make a table take `rows`.
  public var selections: [TableName: RowSelection]
  /// The method, or nil to choose the best for each table.
  public var method: DiffMethod?
  /// True if the result is to travel without table definitions, as a raw changeset: then nothing that needs them is
  /// included.
  public var isRaw: Bool
  /// Columns that were renamed in the newer database. Otherwise such a column counts as new, and the old one as
  /// dropped.
  public var renames: [ColumnRename]
  /// What identifies the rows of tables without a primary key.
  public var keyless: KeylessIdentity
  /// True if a difference from a snapshot also contains changes that were sent before.
  ///
  /// If the database has clocks, a difference contains only unsent changes, unless tables or rows are selected, because
  /// changes that are sent again count as later than those of others. Without clocks it always contains everything.
  public var includesSent = false
  /// Tables without a primary key whose rows are identified by content, regardless of `keyless`.
  package var contentTables: Set<TableName> = []
  /// Tables whose rows are identified by the key of another definition, if both sources have its columns.
  package var keys: [TableName: TableDefinition] = [:]
  /// Columns, by their names in the newer database, whose values are compared and travel as a column of another affinity stores them, if
  /// that loses nothing of them.
  package var affinities: [TableName: [String: Affinity]] = [:]
  /// The rows that may differ, for tables where these are known.
  package var candidates: [TableName: CandidateRows] = [:]
  /// True to throw, before anything is written or recorded as sent, if a raw changeset would have to leave out rows for
  /// lack of definitions.
  package var refusesIncomplete = false
  /// True if databases that share no table may be compared. Otherwise the paths are taken for mixed up.
  public var allowsUnrelated = false

  /// Creates options.
  public init(
    tables: [TableName]? = nil, selections: [TableName: RowSelection] = [:], method: DiffMethod? = nil,
    isRaw: Bool = false, renames: [ColumnRename] = [], keyless: KeylessIdentity = .rowid
  ) {
    self.tables = tables
    self.selections = selections
    self.method = method
    self.isRaw = isRaw
    self.renames = renames
    self.keyless = keyless
  }
}

/// The rows of a table that may differ: elsewhere they are not looked at.
package enum CandidateRows: Equatable, Sendable {
  /// None.
  case none
  /// The rows with an integer key in an interval.
  case within(KeyIntervals)
  /// The rows with a key in a list.
  case listed(in: KeyList)
}

/// A TEMP table with keys of another table.
package struct KeyList: Equatable, Sendable {
  /// Its name in the schema `temp`.
  package let name: String
  /// The number of key columns.
  package let columnCount: Int

  package init(name: String, columnCount: Int) {
    self.name = name
    self.columnCount = columnCount
  }

  /// The column that has a column of the key. No other table has one with this name.
  package static func column(_ place: Int) -> String { "buckia_key_\(place)" }

  /// The list as SQL.
  package var sql: String { "temp.\(SQLText.identifier(name))" }
  /// Its columns as SQL, in the order of the key.
  package var columns: [String] { (0..<columnCount).map(Self.column) }
}
