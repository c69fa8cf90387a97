import SQLiteSchemas

/// One table as both sources have it.
struct TablePair {
  /// The table as it travels: its columns are those of the changeset.
  let definition: TableDefinition
  /// The table in the newer source.
  let newer: SourceTable
  /// The table in the older source; nil when it is not there.
  let older: SourceTable?
  /// Columns that have another name in the older source.
  let renames: [ColumnRename]
  /// Whether the older table has another primary key, and its rows are told apart by the newer one's.
  var isRekeyed = false
  /// Whether all values of a row identify it, and the rowid, which travels as NULL, does not.
  let isIdentifiedByContent: Bool

  /// The columns of the changeset that identify a row, in the order in which rows are sorted.
  var identity: [Int] {
    guard isIdentifiedByContent else { return definition.keyIndexes }
    // What both tables store can be sorted by SQLite, and comes first.
    let isInBoth = definition.columns.indices.map { isInOlder(definition.columns[$0].name) }
    return isInBoth.indices.filter { isInBoth[$0] }.map { $0 + 1 }
      + isInBoth.indices.filter { !isInBoth[$0] }.map { $0 + 1 }
  }

  /// The columns that the older source does not have; empty for a new table.
  var newColumns: [String] { older == nil ? [] : definition.columns.map(\.name).filter { !isInOlder($0) } }

  /// Whether a condition chooses the rows of either source.
  var hasCondition: Bool { newer.selection?.condition != nil || older?.selection?.condition != nil }

  /// Whether columns of either source travel with other values than they have.
  var hasRewrittenColumns: Bool { !newer.rewritten.isEmpty || older?.rewritten.isEmpty == false }

  /// Whether only some rows or columns of either source take part.
  var hasSelection: Bool { newer.selection != nil || older?.selection != nil }

  /// Whether there is anything to say about the table, even when no row has changed.
  var isDefinitionNew: Bool { older == nil || !newColumns.isEmpty || !renames.isEmpty }

  private func isInOlder(_ column: String) -> Bool { older?.places[column] != nil }
}

/// A table as one source has it.
struct SourceTable {
  /// With the names that columns have in the changeset, and without those that are left out.
  let definition: TableDefinition
  /// With the names that its columns have in the source.
  let stored: TableDefinition
  /// The name that the table has in the source.
  let storedName: String
  /// The values that columns travel with, instead of those they have: SQL literals by their place in `stored`.
  let rewritten: [Int: String]
  /// The name by which its rowid can be asked for, if any.
  let rowIDName: String?
  let selection: RowSelection?
  /// Where the columns of `definition` stand.
  let places: ColumnLookup

  /// - Parameters:
  ///   - storedName: The name that it has in the source.
  ///   - renames: Columns that have another name in the changeset.
  ///   - affinities: Columns of the changeset that travel as a column of another affinity stores them.
  init(
    _ table: TableDefinition, storedAs storedName: String, renames: [ColumnRename] = [],
    converting affinities: [String: Affinity] = [:], selection: RowSelection?
  ) throws {
    self.storedName = storedName
    // Of all its columns: one that is left out may hide the rowid, too.
    rowIDName = table.rowIDName
    stored = try selection?.applied(to: table) ?? table
    var rewritten = try selection?.rewrittenLiterals(in: stored) ?? [:]
    var definition = stored
    for rename in renames {
      if let column = definition.column(named: rename.oldName) { definition.columns[column].name = rename.newName }
    }
    for (name, affinity) in affinities {
      guard let place = definition.column(named: name), definition.affinity(at: place) != affinity,
        rewritten[place] == nil
      else { continue }
      // Among values of any class, two can become one.
      if definition.affinity(at: place) == .blob, definition.primaryKey.contains(place) { continue }
      rewritten[place] = affinity.converted(SQLText.identifier(stored.columns[place].name))
    }
    self.rewritten = rewritten
    self.definition = definition
    self.selection = selection
    places = ColumnLookup(definition.columns)
  }
}
