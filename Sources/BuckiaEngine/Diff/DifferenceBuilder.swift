import SQLiteChangesets
import SQLiteConnections
import SQLiteFiles
import SQLiteSchemas

/// A table as it is in the older database.
struct OlderTable {
  /// With the names that its columns have in the newer one.
  let definition: TableDefinition
  /// With its own.
  let stored: TableDefinition
  /// The difference.
  let renames: [ColumnRename]
}

/// One comparison under way: pairs the tables of two schemas and gathers the result.
struct ComparisonRun {
  let options: DiffOptions
  let olderPath: String
  let newerPath: String
  let changeset = ChangesetSpool()
  var tables: [TableDifference] = []
  var skipped: [SkippedItem] = []
  /// Tables that were to be compared by their pages, and why they were not.
  private(set) var fallbacks: [SkippedItem] = []
  /// The pages of both databases; nil when another method was asked for.
  var pages: PagePair?
  /// SQLite's own way to compare; nil when another method was asked for.
  private var session: SessionComparison?
  private var newTables = 0
  private var room = DocumentRoom()

  init(options: DiffOptions, olderPath: String, newerPath: String) {
    self.options = options
    self.olderPath = olderPath
    self.newerPath = newerPath
  }

  private func isWanted(_ table: TableName) -> Bool { options.tables?.contains(table) ?? true }

  mutating func skip(_ name: String, _ reason: String) {
    skipped.append(SkippedItem(name: name, reason: reason))
  }

  /// Compares every ordinary table of the newer database.
  mutating func compareTables(
    _ older: borrowing SQLiteConnection, _ olderSchema: borrowing SchemaReader,
    _ newer: borrowing SQLiteConnection, _ newerSchema: borrowing SchemaReader, progress: (String) throws -> Void
  ) throws {
    let encodings = [try older.text("PRAGMA encoding"), try newer.text("PRAGMA encoding")]
    let needsByteCollation = encodings.contains { $0 != "UTF-8" }
    if needsByteCollation {
      try older.registerByteCollation()
      try newer.registerByteCollation()
    }
    if options.method == .session, encodings[0] == encodings[1] {
      session = try SessionComparison(olderPath: olderPath, newerPath: newerPath)
    }
    for entry in newerSchema.entries where isWanted(entry.name) && entry.kind != .view {
      if Replicability.isOwn(entry.name) || options.tables == nil && newerSchema.isInside(entry) { continue }
      if let reason = Replicability.refusal(of: entry) {
        skip(entry.name.text, reason)
        continue
      }
      try progress(entry.name.text)
      let olderEntry = olderSchema.entry(named: entry.name)
      if let olderEntry, !options.renames.contains(where: { $0.table == entry.name }),
        try pages?.isUnchanged(olderEntry, entry, older, newer) == true
      {
        continue
      }
      let definition = try newerSchema.definition(of: entry, on: newer)
      if let reason = Replicability.refusal(of: definition) {
        skip(entry.name.text, reason)
        continue
      }
      var olderDefinition: TableDefinition?
      if let olderEntry {
        guard olderEntry.kind.hasOwnRows else {
          var reason = "it is no ordinary table in \(olderPath)"
          if case .virtual = olderEntry.kind, let refusal = Replicability.refusal(of: olderEntry) {
            reason = "in \(olderPath) it is \(refusal)"
          }
          skip(entry.name.text, reason)
          continue
        }
        olderDefinition =
          entry.isDefined(like: olderEntry) ? definition : try olderSchema.definition(of: olderEntry, on: older)
      }
      let stored = olderDefinition
      let renames = try rename(&olderDefinition, to: definition)
      guard let table = settle(definition, against: olderDefinition) else { continue }
      if let remark = try remarkOnSettings(of: table, isNew: olderDefinition == nil, older, newer) {
        skip(table.name, remark)
      }
      if olderDefinition != nil, try isSameInside(table, older, olderSchema, newer, newerSchema) { continue }
      let olderTable = olderDefinition.map { OlderTable(definition: $0, stored: stored ?? $0, renames: renames) }
      do {
        try compare(table, with: olderTable, older, newer, needsByteCollation: needsByteCollation)
      } catch let error as SQLiteError where table.module != nil && (error.isCorrupt || error.primaryCode == 1) {
        // What is wrong inside of a virtual table need not keep the others from travelling.
        skip(table.name, "the virtual table cannot be read: \(error.message)")
      }
    }
  }

  /// Gives columns of the older database the names that they have in the newer one.
  ///
  /// - Returns: The renames that were declared for the table.
  /// - Throws: `EngineError` with `columnsDiffer` for a rename that is none.
  private func rename(_ older: inout TableDefinition?, to newer: TableDefinition) throws -> [ColumnRename] {
    let name = TableName(newer.name)
    let declared = options.renames.filter { $0.table == name }
    for rename in declared {
      guard let found = older?.column(named: rename.oldName), older?.column(named: rename.newName) == nil,
        newer.column(named: rename.newName) != nil, newer.column(named: rename.oldName) == nil
      else {
        throw EngineError(
          .columnsDiffer,
          "column \"\(name).\(rename.oldName)\" has not become \"\(rename.newName)\": the first must be in \(olderPath) "
            + "only, the second in \(newerPath) only", table: name.text, column: rename.oldName)
      }
      older?.columns[found].name = rename.newName
    }
    return declared
  }

  /// The definition as it travels, or nil when the table cannot; names everything that stays behind.
  private mutating func settle(_ newer: TableDefinition, against older: TableDefinition?) -> TableDefinition? {
    guard let older else {
      if options.isRaw {
        skip(newer.name, "it is new, and a raw changeset carries no table definitions; leave out --raw")
        return nil
      }
      if let refusal = newer.creationRefusal {
        skip(newer.name, "it is new and could not be created elsewhere: \(refusal)")
        return nil
      }
      guard newTables < TableDefinition.newTableLimit else {
        skip(
          newer.name,
          "one diff file creates at most \(TableDefinition.newTableLimit) tables; apply this one, then diff again")
        return nil
      }
      newTables += 1
      nameLostParts(of: newer, comparedWith: nil, columns: newer.columns)
      return newer
    }
    if newer.module != nil || older.module != nil {
      let fate = VirtualComparison.fate(of: newer, against: older, isRaw: options.isRaw)
      if let remark = fate.remark { skip(newer.name, remark) }
      return fate.travels ? newer : nil
    }
    guard newer.hasSameKey(as: older) else {
      skip(newer.name, "its primary key differs between the two databases, so its rows cannot be told apart")
      return nil
    }
    let olderPlaces = ColumnPlaces(older.columns)
    let newerPlaces = ColumnPlaces(newer.columns)
    for column in older.columns where newerPlaces[column.name] == nil {
      let needsValue = column.isNotNull && (column.defaultValue?.isNull ?? !column.hasExpressionDefault)
      skip(
        "\(newer.name).\(column.name)",
        "the column was dropped; others keep it"
          + (needsValue ? ", and being NOT NULL without a default it will refuse new rows there" : ""))
    }
    var table = newer
    let added = newer.columns.filter { olderPlaces[$0.name] == nil }
    if options.isRaw {
      guard added.isEmpty, !options.renames.contains(where: { $0.table == TableName(newer.name) }),
        newer.columns.map({ ASCIIName.folded($0.name) })
          == older.columns.map({ ASCIIName.folded($0.name) })
      else {
        skip(newer.name, "its columns differ, and a raw changeset carries no table definitions; leave out --raw")
        return nil
      }
      return newer
    }
    var allowed = 0
    for column in added {
      var column = column
      if let index = table.column(named: column.name), !column.hasKnownCollation {
        skip(
          "\(newer.name).\(column.name)", "others get the column without its collating sequence \(column.collation)")
        column.collation = "BINARY"
        table.columns[index] = column
      }
      var reason = column.creationRefusal ?? AddedColumnValue.refusal(of: column, isStrict: newer.isStrict)
      if allowed == TableDefinition.newColumnLimit {
        reason =
          "one diff file adds at most \(TableDefinition.newColumnLimit) columns to a table; apply this one, then diff again"
      }
      if let reason {
        skip("\(newer.name).\(column.name)", reason)
        table.removeColumn(named: column.name)
      } else {
        allowed += 1
      }
    }
    nameLostParts(of: newer, comparedWith: older, columns: added)
    for (place, column) in newer.columns.enumerated() {
      guard let index = olderPlaces[column.name],
        TypeCompatibility(incoming: newer.affinity(at: place), local: older.affinity(at: index)) == .contradictory
      else { continue }
      skip(
        "\(newer.name).\(column.name)",
        "its type has changed from \(older.columns[index].declaredType) to \(column.declaredType), which does not "
          + "travel: where it has the old type, the diff is refused")
    }
    return table
  }

  private mutating func compare(
    _ table: TableDefinition, with olderTable: OlderTable?, _ older: borrowing SQLiteConnection,
    _ newer: borrowing SQLiteConnection, needsByteCollation: Bool
  ) throws {
    var changes = ChangeCollector()
    var method = DiffMethod.rows
    // Nobody is told that a virtual table takes `rows`: it has no pages, and there is no other way.
    if let olderTable, let pages, table.module == nil {
      let reason =
        if goesByContent(table) {
          "its rows are told apart by content"
        } else if !olderTable.renames.isEmpty {
          "its columns were renamed"
        } else {
          try comparePages(table, olderTable.definition, pages, older, newer, into: changes)
        }
      if let reason {
        fallbacks.append(SkippedItem(name: table.name, reason: reason))
        changes = ChangeCollector()
      } else {
        method = .pages
      }
    }
    if let session, let olderTable, olderTable.renames.isEmpty,
      try session.compare(table, olderTable.definition, into: changes)
    {
      method = .session
    } else if method == .rows {
      let brokenText = try RowMerge(
        newer: table, older: olderTable, needsByteCollation: needsByteCollation, goesByContent: goesByContent(table)
      )
      .run(older: older, newer: newer, into: changes)
      for column in brokenText.sorted() {
        skip(
          "\(table.name).\(table.changesetColumns[column])",
          "some of its text is not valid UTF-16, which changes cannot carry: it travels as SQLite converts it")
      }
    }
    let olderPlaces = olderTable.map { ColumnPlaces($0.definition.columns) }
    let newColumns = olderPlaces.map { places in table.columns.map(\.name).filter { places[$0] == nil } } ?? []
    let renames = olderTable?.renames ?? []
    guard !changes.isEmpty || olderTable == nil || !newColumns.isEmpty || !renames.isEmpty else { return }
    guard options.isRaw || room.take(table) else {
      return skip(table.name, "there is no room in one diff file for so many tables; apply this one, then diff again")
    }
    let header = ChangesetTable(name: table.name, keyFlags: table.keyFlags)
    try changes.finish(header, into: changeset)
    tables.append(
      TableDifference(
        definition: table, inserted: changes.inserted, updated: changes.updated, deleted: changes.deleted,
        method: method, isNew: olderTable == nil, newColumns: newColumns, renames: renames))
  }

  /// Full-text tables are linked to others by their rowids.
  private func goesByContent(_ table: TableDefinition) -> Bool {
    table.goesByRowID && table.module == nil && options.keyless == .content
  }

  /// Compares a table by its pages.
  ///
  /// - Returns: Why that cannot be done; what has been collected is then of no use.
  func comparePages(
    _ table: TableDefinition, _ olderTable: TableDefinition, _ pages: PagePair, _ older: borrowing SQLiteConnection,
    _ newer: borrowing SQLiteConnection, into changes: ChangeCollector
  ) throws -> String? {
    do {
      guard let comparison = try pages.comparison() else { return pages.refusal ?? "the pages cannot be read" }
      let olderRoots = try pages.roots(of: .older, on: older)
      let newerRoots = try pages.roots(of: .newer, on: newer)
      guard table.hasSameColumns(as: olderTable),
        let olderStored = try StoredTable(olderTable, olderRoots, on: older),
        let newerStored = try StoredTable(table, newerRoots, on: newer), olderStored.signature == newerStored.signature
      else { return "its definition differs between the two databases" }
      try PageMerge(table, older: olderStored, newer: newerStored, comparison, into: changes).run()
      return nil
    } catch let error as DatabaseFileError {
      return "\(error)"
    } catch is MissingValues.Unknown {
      return "rows from before a column was added have a default that is computed"
    }
  }

  /// Names what is different and does not travel: dropped tables, views, triggers, indexes.
  mutating func nameWhatStays(
    _ older: borrowing SQLiteConnection, _ olderSchema: borrowing SchemaReader,
    _ newer: borrowing SQLiteConnection, _ newerSchema: borrowing SchemaReader
  ) throws {
    for entry in olderSchema.entries where isWanted(entry.name) && entry.kind.hasOwnRows {
      guard newerSchema.entry(named: entry.name) == nil, Replicability.refusal(of: entry) == nil else { continue }
      skip(entry.name.text, "the table was dropped; others keep it")
    }
    nameLostClauses(olderSchema, newerSchema)
    try nameLostCollations(newer)
    guard options.tables == nil else { return }
    let query = """
      SELECT type, name, sql FROM main.sqlite_schema
      WHERE type IN ('index', 'trigger', 'view') AND sql IS NOT NULL ORDER BY type, name
      """
    // By their bytes: names that Swift takes for equal can be those of two objects.
    func bytes(_ row: borrowing SQLiteStatement, _ columns: Int...) -> [UInt8] {
      columns.flatMap { Array(row.textBytes(at: $0)) + [0] }
    }
    var known: [[UInt8]: [UInt8]] = [:]
    try older.forEachRow(of: query) { row in known[bytes(row, 0, 1)] = bytes(row, 2) }
    var found: [SkippedItem] = []
    try newer.forEachRow(of: query) { row in
      let sql = known[bytes(row, 0, 1)]
      guard sql != bytes(row, 2) else { return }
      found.append(
        SkippedItem(
          name: row.text(at: 1) ?? "",
          reason: "a \(sql == nil ? "new" : "changed") \(row.text(at: 0) ?? ""); definitions of this kind do not travel"
        ))
    }
    skipped += found
  }
}
