import SQLiteSchemas

/// What identifies the rows of tables without a primary key.
public enum KeylessIdentity: String, Sendable, CaseIterable {
  /// Their rowid: the other side becomes a mirror, rowids included.
  case rowid
  /// Their content, each row as often as it is there: for databases that have given their rows rowids of their own. Nothing
  /// is an UPDATE then.
  case content
}

/// What to compare, and how.
public struct DiffOptions: Sendable {
  /// The tables to compare, or nil for all of them.
  public var tables: [TableName]?
  /// Tables that are never compared, such as those in which a library notes what it has done to this very file.
  ///
  /// As with chosen tables, the schema as a whole does not travel then.
  public var excludedTables: Set<TableName> = []
  /// Which rows and columns of a table to compare: all of them where a table is not named.
  ///
  /// They apply to both databases. Conditions make a table take `rows`.
  public var selections: [TableName: RowSelection]
  /// The method, or nil to choose the best for each table.
  public var method: DiffMethod?
  /// True if the result is to travel without table definitions, as a raw changeset: then nothing that needs them is
  /// included.
  public var isRaw: Bool
  /// Columns that have another name in the newer database: else such a column is a new one, and the old one is dropped.
  public var renames: [ColumnRename]
  /// What identifies the rows of tables without a primary key.
  public var keyless: KeylessIdentity
  /// True if a difference from a snapshot has everything since that was made, also what was sent before.
  ///
  /// If the database keeps clocks, it only has what is new, unless tables or rows are selected: what is sent once more
  /// counts as later than what others have changed since. Of a database without clocks a difference always has
  /// everything.
  public var includesSent = false
  /// Tables without a primary key whose rows go by their content, whatever `keyless` says.
  package var contentTables: Set<TableName> = []
  /// Tables whose rows are told apart by the key of another definition, where both sources have its columns.
  package var keys: [TableName: TableDefinition] = [:]
  /// Columns, by their names in the newer database, whose values are compared and travel as a column of another affinity stores them, if
  /// that loses nothing of them.
  package var affinities: [TableName: [String: Affinity]] = [:]
  /// The rows of tables that may differ, as far as it is known.
  package var candidates: [TableName: CandidateRows] = [:]
  /// True if a raw changeset that would have to leave rows out for want of definitions is an error, before anything is
  /// written, or noted as sent.
  package var refusesIncomplete = false
  /// True if databases that share no table may be compared. Otherwise the paths are taken for mixed up.
  public var allowsUnrelated = false

  /// Makes options.
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
  /// Those with a key, one integer, in an interval.
  case within(KeyIntervals)
  /// Those with a key in a list.
  case listed(in: KeyList)
}

/// A TEMP table with keys of another table.
package struct KeyList: Equatable, Sendable {
  /// Its name in the schema `temp`.
  package let name: String
  /// How many columns the key has.
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
