import SQLiteChangesets
import SQLiteConnections
import SQLiteFiles
import SQLiteSchemas

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
  private var newTables = 0

  init(options: DiffOptions, olderPath: String, newerPath: String) {
    self.options = options
    self.olderPath = olderPath
    self.newerPath = newerPath
  }

  private func isWanted(_ table: TableName) -> Bool { options.tables?.contains(table) ?? true }

  private mutating func skip(_ name: String, _ reason: String) {
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
    for entry in newerSchema.entries where isWanted(entry.name) && entry.kind != .view {
      if Replicability.isOwn(entry.name) || options.tables == nil && newerSchema.isInside(entry) { continue }
      if let reason = Replicability.refusal(of: entry) {
        skip(entry.name.text, reason)
        continue
      }
      try progress(entry.name.text)
      let definition = try newerSchema.definition(of: entry, on: newer)
      if let reason = Replicability.refusal(of: definition) {
        skip(entry.name.text, reason)
        continue
      }
      let olderEntry = olderSchema.entry(named: entry.name)
      let olderDefinition: TableDefinition?
      if let olderEntry {
        guard olderEntry.kind.hasOwnRows else {
          var reason = "it is no ordinary table in \(olderPath)"
          if case .virtual = olderEntry.kind, let refusal = Replicability.refusal(of: olderEntry) {
            reason = "in \(olderPath) it is \(refusal)"
          }
          skip(entry.name.text, reason)
          continue
        }
        olderDefinition = try olderSchema.definition(of: olderEntry, on: older)
      } else {
        olderDefinition = nil
      }
      guard let table = settle(definition, against: olderDefinition) else { continue }
      if let remark = try remarkOnSettings(of: table, isNew: olderDefinition == nil, older, newer) {
        skip(table.name, remark)
      }
      if olderDefinition != nil, try isSameInside(table, older, olderSchema, newer, newerSchema) { continue }
      do {
        try compare(table, with: olderDefinition, older, newer, needsByteCollation: needsByteCollation)
      } catch let error as SQLiteError where table.module != nil && (error.isCorrupt || error.primaryCode == 1) {
        // What is wrong inside of a virtual table need not keep the others from travelling.
        skip(table.name, "the virtual table cannot be read: \(error.message)")
      }
    }
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
      nameLostParts(of: newer, columns: newer.columns)
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
    for column in older.columns where newer.column(named: column.name) == nil {
      let needsValue = column.isNotNull && (column.defaultValue?.isNull ?? !column.hasExpressionDefault)
      skip(
        "\(newer.name).\(column.name)",
        "the column was dropped; others keep it"
          + (needsValue ? ", and being NOT NULL without a default it will refuse new rows there" : ""))
    }
    var table = newer
    let added = newer.columns.filter { older.column(named: $0.name) == nil }
    if options.isRaw {
      guard added.isEmpty,
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
    nameLostParts(of: newer, columns: added)
    for (place, column) in newer.columns.enumerated() {
      guard let index = older.column(named: column.name),
        TypeCompatibility(incoming: newer.affinity(at: place), local: older.affinity(at: index)) == .contradictory
      else { continue }
      skip(
        "\(newer.name).\(column.name)",
        "its type has changed from \(older.columns[index].declaredType) to \(column.declaredType), which does not "
          + "travel: where it has the old type, the diff is refused")
    }
    for column in newer.generated where !older.generated.contains(where: { ASCIIName.matches($0.name, column.name) }) {
      skip("\(newer.name).\(column.name)", "a generated column is computed from its expression, which does not travel")
    }
    return table
  }

  private mutating func nameLostParts(of table: TableDefinition, columns: [ColumnDefinition]) {
    // The default of a column that is not a literal is lost only where the column is made anew.
    for column in columns where column.hasExpressionDefault {
      skip("\(table.name).\(column.name)", "its default is an expression, which does not travel; its values do")
    }
  }

  private mutating func compare(
    _ table: TableDefinition, with olderTable: TableDefinition?, _ older: borrowing SQLiteConnection,
    _ newer: borrowing SQLiteConnection, needsByteCollation: Bool
  ) throws {
    var changes = ChangeCollector()
    var method = DiffMethod.rows
    // Nobody is told that a virtual table takes `rows`: it has no pages, and there is no other way.
    if let olderTable, let pages, table.module == nil {
      let reason = try comparePages(table, olderTable, pages, older, newer, into: changes)
      if let reason {
        fallbacks.append(SkippedItem(name: table.name, reason: reason))
        changes = ChangeCollector()
      } else {
        method = .pages
      }
    }
    if options.method == .session, let olderTable,
      try SessionComparison.run(table, olderTable, olderPath: olderPath, newerPath: newerPath, into: changes)
    {
      method = .session
    } else if method == .rows {
      try RowMerge(newer: table, older: olderTable, needsByteCollation: needsByteCollation)
        .run(older: older, newer: newer, into: changes)
    }
    let newColumns = olderTable.map { old in table.columns.map(\.name).filter { old.column(named: $0) == nil } } ?? []
    guard !changes.isEmpty || olderTable == nil || !newColumns.isEmpty else { return }
    let header = ChangesetTable(name: table.name, keyFlags: table.keyFlags)
    try changes.finish(header, into: changeset)
    tables.append(
      TableDifference(
        definition: table, inserted: changes.inserted, updated: changes.updated, deleted: changes.deleted,
        method: method, isNew: olderTable == nil, newColumns: newColumns))
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
      // Most tables of a database with thousands of them are one page, and the same as they were.
      if let root = newerRoots[table], root == olderRoots[olderTable], comparison.isEqualLeaf(root.page) { return nil }
      guard table.columns.map(\.name) == olderTable.columns.map(\.name),
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
      guard newerSchema.entry(named: entry.name) == nil, entry.name.refusal == nil else { continue }
      skip(entry.name.text, "the table was dropped; others keep it")
    }
    try nameChangedConstraints(older, newer)
    guard options.tables == nil else { return }
    let query = """
      SELECT type, name, sql FROM main.sqlite_schema
      WHERE type IN ('index', 'trigger', 'view') AND sql IS NOT NULL ORDER BY type, name
      """
    var known: [String: String] = [:]
    try older.forEachRow(of: query) { row in
      known["\(row.text(at: 0) ?? "") \(row.text(at: 1) ?? "")"] = row.text(at: 2) ?? ""
    }
    var found: [SkippedItem] = []
    try newer.forEachRow(of: query) { row in
      let type = row.text(at: 0) ?? ""
      let name = row.text(at: 1) ?? ""
      guard let sql = known["\(type) \(name)"] else {
        found.append(SkippedItem(name: name, reason: "a new \(type); definitions of this kind do not travel"))
        return
      }
      if sql != row.text(at: 2) {
        found.append(SkippedItem(name: name, reason: "a changed \(type); definitions of this kind do not travel"))
      }
    }
    skipped += found
  }

  /// Names the tables whose CHECK constraints differ: elsewhere the old ones may refuse the new rows.
  private mutating func nameChangedConstraints(
    _ older: borrowing SQLiteConnection, _ newer: borrowing SQLiteConnection
  ) throws {
    guard !tables.isEmpty else { return }
    let newerSQL = try Self.createStatements(newer)
    let olderSQL = try Self.createStatements(older)
    for table in tables where table.definition.module == nil {
      let name = table.definition.name
      let found = CheckConstraints.expressions(in: newerSQL[TableName(name)] ?? "")
      let known = table.isNew ? [] : CheckConstraints.expressions(in: olderSQL[TableName(name)] ?? "")
      guard found != known else { continue }
      skip(
        name,
        table.isNew
          ? "its CHECK constraints do not travel: the table is created without them"
          : "its CHECK constraints have changed, which does not travel: where the old ones hold, they may refuse rows")
    }
  }

  /// The statement that each table was created with.
  private static func createStatements(_ connection: borrowing SQLiteConnection) throws -> [TableName: String] {
    var statements: [TableName: String] = [:]
    try connection.forEachRow(of: "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table'") { row in
      statements[TableName(row.text(at: 0) ?? "")] = row.text(at: 1) ?? ""
    }
    return statements
  }
}
