import BuckiaBytes
import SQLiteSchemas

/// Decides what of a table's definition travels, and names what does not.
struct TableReconciliation {
  private let newer: TableDefinition
  private let options: DiffOptions
  /// The table as it travels; nil where it does not.
  private(set) var definition: TableDefinition?
  private(set) var skipped: [SkippedItem] = []

  /// - Parameters:
  ///   - newer: The table in the newer database, without the columns that are left out.
  ///   - older: The table in the older database, with the names that its columns have in the newer one; nil where it is new.
  ///   - omitted: The columns that are left out.
  ///   - options: What is wanted.
  ///   - canCreate: Whether one more table may be created.
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
  /// Whether an INSERT must give the column a value.
  fileprivate var needsValue: Bool { isNotNull && (defaultValue?.isNull ?? !hasExpressionDefault) }
}

extension ForeignKey {
  /// Whether both lead from the same columns to the same ones.
  fileprivate func isSame(as other: ForeignKey) -> Bool {
    TableName(parent) == TableName(other.parent) && columns.elementsEqual(other.columns, by: ASCIIName.matches)
      && parentColumns.elementsEqual(other.parentColumns, by: ASCIIName.matches)
  }
}
