import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

/// One table as both sources have it.
struct TablePair {
  /// The sent definition, with the columns of the changeset.
  let definition: TableDefinition
  /// The table in the newer source.
  let newer: SourceTable
  /// The table in the older source; nil if it is not there.
  let older: SourceTable?
  /// Columns that have another name in the older source.
  let renames: [ColumnRename]
  /// True if the older table has another primary key, and the newer key identifies its rows.
  var isRekeyed = false
  /// True if all values of a row identify it, and the rowid, which travels as NULL, does not.
  let isIdentifiedByContent: Bool

  /// The columns of the changeset that identify a row, in the order in which rows are sorted.
  var identity: [Int] {
    guard isIdentifiedByContent else { return definition.keyIndexes }
    // Columns that both tables store can be sorted by SQLite, and come first.
    let isInBoth = definition.columns.indices.map { isInOlder(definition.columns[$0].name) }
    return isInBoth.indices.filter { isInBoth[$0] }.map { $0 + 1 }
      + isInBoth.indices.filter { !isInBoth[$0] }.map { $0 + 1 }
  }

  /// The columns that the older source does not have; empty for a new table.
  var newColumns: [String] { older == nil ? [] : definition.columns.map(\.name).filter { !isInOlder($0) } }

  /// True if a condition chooses the rows of either source.
  var hasCondition: Bool { newer.selection?.condition != nil || older?.selection?.condition != nil }

  /// True if columns of either source travel with other values than they have.
  var hasRewrittenColumns: Bool { !newer.rewritten.isEmpty || older?.rewritten.isEmpty == false }

  /// True if only some rows or columns of either source take part.
  var hasSelection: Bool { newer.selection != nil || older?.selection != nil }

  /// True if the definition has changed, even if no row has.
  var isDefinitionNew: Bool { older == nil || !newColumns.isEmpty || !renames.isEmpty }

  private func isInOlder(_ column: String) -> Bool { older?.places[column] != nil }
}

/// A table as one source has it.
struct SourceTable {
  /// The definition with the column names of the changeset, without left-out columns.
  let definition: TableDefinition
  /// With the names that its columns have in the source.
  let stored: TableDefinition
  /// The name that the table has in the source.
  let storedName: String
  /// The sent values of rewritten columns: SQL literals by their place in `stored`.
  let rewritten: [Int: String]
  /// The name by which its rowid can be asked for, if any.
  let rowIDName: String?
  let selection: RowSelection?
  /// The places of the columns of `definition`.
  let places: ColumnLookup

  /// - Parameters:
  ///   - storedName: The name that it has in the source.
  ///   - renames: Columns that have another name in the changeset.
  ///   - affinities: Columns of the changeset whose values are sent as a column of another affinity stores them.
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

extension TableDefinition {
  /// The table with the primary key of its newer form, by which their rows can be compared: receivers that adopt the
  /// newer schema create that key before they apply the changes.
  ///
  /// - Parameters:
  ///   - newer: The newer table.
  ///   - connection: The database of this one.
  /// - Returns: nil if both have the same key, or the newer one does not tell this table's rows apart.
  func rekeyed(like newer: TableDefinition, on connection: borrowing SQLiteConnection) throws -> TableDefinition? {
    guard module == nil, newer.module == nil, !newer.hasSameKey(as: self) else { return nil }
    let key = newer.primaryKey.compactMap { column(named: newer.columns[$0].name) }
    guard key.count == newer.primaryKey.count, !newer.isKeyedByRowID || !isWithoutRowID && rowIDName != nil else {
      return nil
    }
    var table = self
    table.primaryKey = key
    table.isWithoutRowID = false
    if newer.isKeyedByRowID { return table }
    let columns = newer.primaryKey.map { newer.columns[$0] }
    guard columns.allSatisfy(\.hasKnownCollation) else { return nil }
    let names = columns.map { SQLText.identifier($0.name) }
    let terms = zip(columns, names).map { "\($1) COLLATE \($0.collation)" }.joined(separator: ", ")
    let twice = try connection.integer(
      """
      SELECT 1 FROM main.\(SQLText.identifier(name)) WHERE \(names.map { "\($0) IS NOT NULL" }.joined(separator: " AND "))
      GROUP BY \(terms) HAVING count(*) > 1 LIMIT 1
      """)
    return twice == nil ? table : nil
  }
}

/// Decides which parts of a table's definition are sent, and reports the others.
struct TableReconciliation {
  private let newer: TableDefinition
  private let options: DiffOptions
  /// The table as it travels; nil if it does not.
  private(set) var definition: TableDefinition?
  private(set) var skipped: [SkippedItem] = []

  /// - Parameters:
  ///   - newer: The table in the newer database, without the columns that are left out.
  ///   - older: The older table, with the newer names of its columns; nil for a new table.
  ///   - omitted: The columns that are left out.
  ///   - options: The options.
  ///   - canCreate: True if one more table may be created.
  init(
    _ newer: TableDefinition, with older: TableDefinition?, omitting omitted: [ColumnDefinition], options: DiffOptions,
    canCreate: Bool
  ) {
    self.newer = newer
    self.options = options
    for column in omitted where column.needsValue { skip(column: column.name, .requiredColumnOmitted) }
    if options.isRaw, !omitted.isEmpty {
      skip(.omittedColumnsNeedDefinition)
    } else if let older {
      definition = newer.module != nil || older.module != nil ? virtualTable(older) : alteredTable(older)
    } else {
      definition = newTable(canCreate: canCreate)
    }
  }

  private mutating func skip(_ code: SkipReason.Code, _ arguments: String...) {
    skipped.append(SkippedItem(name: newer.name, reason: SkipReason(code, arguments)))
  }

  private mutating func skip(column: String, _ code: SkipReason.Code, _ arguments: String...) {
    skipped.append(SkippedItem(name: "\(newer.name).\(column)", reason: SkipReason(code, arguments)))
  }

  private mutating func newTable(canCreate: Bool) -> TableDefinition? {
    if options.isRaw {
      skip(.newTableNeedsDefinition)
    } else if let refusal = newer.creationRefusal {
      skip(.notCreatable, refusal)
    } else if !canCreate {
      skip(.tooManyNewTables, "\(TableDefinition.newTableLimit)")
    } else {
      reportLostExpressions(comparedWith: nil, newColumns: newer.columns)
      return newer
    }
    return nil
  }

  /// A virtual table that is in both databases: nothing can be added to one that exists, nor taken away.
  private mutating func virtualTable(_ older: TableDefinition) -> TableDefinition? {
    guard let module = newer.module, let olderModule = older.module else {
      skip(.virtualAndOrdinary)
      return nil
    }
    guard module.name == olderModule.name else {
      skip(.moduleDiffers, olderModule.name, module.name)
      return nil
    }
    let names = [newer, older].map { $0.columns.map { Array(ASCIIName.folded($0.name).utf8) } }
    // Without definitions, columns are found by their order alone.
    let hasSameNames = options.isRaw ? names[0] == names[1] : Set(names[0]) == Set(names[1])
    guard hasSameNames, newer.hasSameKey(as: older) else {
      skip(.virtualColumnsDiffer)
      return nil
    }
    if module != olderModule { skip(.moduleArgumentsDiffer) }
    return newer
  }

  private mutating func alteredTable(_ older: TableDefinition) -> TableDefinition? {
    guard newer.hasSameKey(as: older) else {
      skip(.keyDiffers)
      return nil
    }
    let newerPlaces = ColumnLookup(newer.columns)
    for column in older.columns where newerPlaces[column.name] == nil {
      skip(column: column.name, column.needsValue ? .requiredColumnDropped : .columnDropped)
    }
    if options.isRaw {
      let names = [newer, older].map { $0.columns.map { ASCIIName.folded($0.name) } }
      if names[0] == names[1], !options.renames.contains(where: { $0.table == TableName(newer.name) }) { return newer }
      skip(.columnsNeedDefinition)
      return nil
    }
    let olderPlaces = ColumnLookup(older.columns)
    let added = newer.columns.filter { olderPlaces[$0.name] == nil }
    let table = withAddableColumns(of: added)
    reportLostExpressions(comparedWith: older, newColumns: added)
    for key in newer.foreignKeys where !older.foreignKeys.contains(where: { $0.isSame(as: key) }) {
      skip(.newForeignKey, key.parent)
    }
    reportTypeChanges(older, olderPlaces)
    return table
  }

  /// The table without those new columns that cannot be added elsewhere.
  private mutating func withAddableColumns(of added: [ColumnDefinition]) -> TableDefinition {
    var table = newer
    var count = 0
    for var column in added {
      if !column.hasKnownCollation, let index = table.column(named: column.name) {
        skip(column: column.name, .collationDropped, column.collation)
        column.collation = "BINARY"
        table.columns[index] = column
      }
      let refusal = column.creationRefusal ?? AddedColumnValue.refusal(of: column, isStrict: newer.isStrict)
      if count == TableDefinition.newColumnLimit {
        skip(column: column.name, .tooManyNewColumns, "\(count)")
      } else if let refusal {
        skip(column: column.name, .columnNotAddable, refusal)
      } else {
        count += 1
        continue
      }
      table.removeColumn(named: column.name)
    }
    return table
  }

  private mutating func reportLostExpressions(comparedWith older: TableDefinition?, newColumns: [ColumnDefinition]) {
    for column in newColumns where column.hasExpressionDefault { skip(column: column.name, .expressionDefault) }
    for column in newer.generated
    where older?.generated.contains(where: { ASCIIName.matches($0.name, column.name) }) != true {
      skip(column: column.name, .generatedColumn)
    }
  }

  private mutating func reportTypeChanges(_ older: TableDefinition, _ olderPlaces: ColumnLookup) {
    for (place, column) in newer.columns.enumerated() {
      guard let index = olderPlaces[column.name],
        TypeCompatibility(incoming: newer.affinity(at: place), local: older.affinity(at: index)) == .contradictory
      else { continue }
      skip(column: column.name, .typeChanged, older.columns[index].declaredType, column.declaredType)
    }
  }
}

extension ColumnDefinition {
  /// True if an INSERT must give the column a value.
  fileprivate var needsValue: Bool { isNotNull && (defaultValue?.isNull ?? !hasExpressionDefault) }
}

extension ForeignKey {
  /// True if both lead from the same columns to the same ones.
  fileprivate func isSame(as other: ForeignKey) -> Bool {
    TableName(parent) == TableName(other.parent) && columns.elementsEqual(other.columns, by: ASCIIName.matches)
      && parentColumns.elementsEqual(other.parentColumns, by: ASCIIName.matches)
  }
}
