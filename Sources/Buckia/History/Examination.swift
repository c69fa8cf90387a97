import SQLiteConnections

extension DatabaseManager {
  /// Examines which parts of the database replicate, which do not and why, with warnings.
  ///
  /// - Throws: `BuckiaError` when there is no such database, or it cannot be read.
  public func examine() throws -> DoctorReport {
    try withReader { connection in
      let transaction = try SQLiteTransaction(.deferred, on: connection)
      let schema = try SchemaReader(connection)
      var report = DoctorReport()
      var tables: [TableDefinition] = []
      for entry in schema.entries {
        if Replicability.isOwn(entry.name) || schema.isInside(entry) { continue }
        if let reason = Replicability.refusal(of: entry) {
          report.skip(entry.name.text, reason)
          continue
        }
        let table = try schema.definition(of: entry)
        if Replicability.refusal(of: table) == nil { tables.append(table) }
        try report.look(at: table, createdBy: entry.sql, on: connection)
      }
      try report.lookAtIntegerKeys(of: tables, usingRanges: KeyRanges.areUsed(by: connection))
      try report.lookAtTriggers(connection)
      try report.lookAtCounters(schema)
      try report.lookAtWhatIsKept(connection)
      try report.lookForHiddenReferences(of: tables, on: connection)
      try report.lookForReusedKeys(of: tables, on: connection)
      try report.lookForOmittedColumns(on: connection)
      try report.lookAtStates(connection)
      try report.lookForDamage(connection)
      transaction.rollback()
      return report
    }
  }
}

extension DoctorReport {
  fileprivate mutating func skip(_ name: String, _ reason: String) {
    skipped.append(SkippedItem(name: name, reason: reason))
  }

  // MARK: One table

  /// - Parameter sql: The statement that it was created with.
  fileprivate mutating func look(
    at table: TableDefinition, createdBy sql: String, on connection: borrowing SQLiteConnection
  ) throws {
    if let reason = Replicability.refusal(of: table) { return skip(table.name, reason) }
    let key = table.primaryKey.map { table.columns[$0].name }
    replicates.append(
      DoctorReport.Table(name: table.name, key: table.isKeyedByRowID ? "rowid" : key.joined(separator: ", ")))
    if table.isKeyedByRowID, table.module == nil { warnings.append(Warning(.noPrimaryKey, table.name)) }
    if let refusal = table.creationRefusal { warnings.append(Warning(.notCreatable, table.name, refusal)) }
    if let settings = try table.fullTextSettings(on: connection), !settings.isEmpty {
      warnings.append(Warning(.fullTextSettings, table.name, settings.map(\.name).joined(separator: ", ")))
    }
    if table.module != nil { return }
    lookAtColumns(of: table)
    if !CreateTableParts.checks(in: sql).isEmpty { warnings.append(Warning(.checkConstraints, table.name)) }
    if CreateTableParts.hasConflictClause(in: sql) { warnings.append(Warning(.conflictClauses, table.name)) }
    try lookAtIndexes(of: table, on: connection)
    try lookForNullKeys(in: table, on: connection)
    if !table.foreignKeys.isEmpty { lookForViolations(in: table, on: connection) }
  }

  private mutating func lookAtColumns(of table: TableDefinition) {
    for column in table.columns where column.hasExpressionDefault {
      warnings.append(Warning(.expressionDefault, table.name, column.name))
    }
    for column in table.columns where !column.hasKnownCollation {
      warnings.append(Warning(.unknownCollation, table.name, column.name, column.collation))
    }
    for column in table.generated { warnings.append(Warning(.generatedColumn, table.name, column.name)) }
  }

  /// Names the indexes that were made by themselves. One that is a whole UNIQUE constraint travels as such.
  private mutating func lookAtIndexes(of table: TableDefinition, on connection: borrowing SQLiteConnection) throws {
    var found: [(name: String, isUnique: Bool, isPartial: Bool)] = []
    let query = "SELECT name, \"unique\", partial FROM pragma_index_list(?1, 'main') WHERE origin = 'c' ORDER BY name"
    try connection.forEachRow(ofCached: query, binding: [table.name]) { row in
      found.append((row.text(at: 0) ?? "", row.integer(at: 1) != 0, row.integer(at: 2) != 0))
    }
    for index in found {
      var hasExpression = false
      var hasOwnOrder = false
      let parts = "SELECT name, coll FROM pragma_index_xinfo(?1, 'main') WHERE key"
      try connection.forEachRow(ofCached: parts, binding: [index.name]) { row in
        guard let name = row.text(at: 0), let column = table.column(named: name) else {
          hasExpression = true
          return
        }
        if !ASCIIName.matches(table.columns[column].collation, row.text(at: 1) ?? "") { hasOwnOrder = true }
      }
      if index.isUnique, !index.isPartial, !hasExpression, !hasOwnOrder { continue }
      let kind = index.isPartial ? "a partial index" : hasExpression ? "an index over expressions" : "an index"
      skip(index.name, "\(kind) on \"\(table.name)\": where the table is missing, it is created without it")
    }
  }

  private mutating func lookForViolations(in table: TableDefinition, on connection: borrowing SQLiteConnection) {
    do {
      let query = "SELECT count(*) FROM pragma_foreign_key_check(?1)"
      let count = try connection.integer(query, binding: [table.name]) ?? 0
      if count > 0 { warnings.append(Warning(.brokenReferences, table.name, "\(count)")) }
    } catch {
      // SQLite cannot check a key whose parent has no unique index on its columns.
      warnings.append(Warning(.unenforceableForeignKey, table.name, error.message))
    }
  }

  private mutating func lookForNullKeys(
    in table: TableDefinition, on connection: borrowing SQLiteConnection
  ) throws {
    guard let condition = table.hasNullKeySQL else { return }
    let query = "SELECT count(*) FROM main.\(SQLText.identifier(table.name)) WHERE \(condition)"
    let count = try connection.integer(query) ?? 0
    if count > 0 { warnings.append(Warning(.nullKeys, table.name, "\(count)")) }
  }

  // MARK: The whole

  fileprivate mutating func lookAtTriggers(_ connection: borrowing SQLiteConnection) throws {
    let query = "SELECT name, tbl_name FROM main.sqlite_schema WHERE type = 'trigger' ORDER BY tbl_name, name"
    var count = 0
    try connection.forEachRow(of: query) { row in
      count += 1
      skip(row.text(at: 0) ?? "", "a trigger on \"\(row.text(at: 1) ?? "")\": definitions of this kind do not travel")
    }
    if count > 0 { warnings.append(Warning(.triggers, "\(count)")) }
  }

  fileprivate mutating func lookAtWhatIsKept(_ connection: borrowing SQLiteConnection) throws {
    for part in try HeldPart.all(on: connection) {
      warnings.append(Warning(.heldChanges, part.table, part.file, "\(part.changeCount)", part.reason))
    }
  }

  fileprivate mutating func lookForDamage(_ connection: borrowing SQLiteConnection) throws {
    do {
      // Only the longer check compares the order of indexes, which can be wrong under a substituted collating sequence.
      let damage = try connection.damage(comparingIndexes: !ConnectionExtensions.ofProcess.collations.isEmpty)
      if let damage { warnings.append(Warning(.damaged, damage)) }
    } catch {
      // An index with a collating sequence of the application. All other errors are damage, or not a database.
      guard error.primaryCode == 1 else { throw error }
      warnings.append(Warning(.notCheckable, error.message))
    }
  }
}

/// Warns of problems that arise only when several people write: keys that each copy assigns, and counts that each copy
/// keeps.
extension DoctorReport {
  /// Names the tables whose integer keys SQLite assigns, referenced tables first.
  ///
  /// - Parameter usesRanges: True if AUTOINCREMENT tables have ranges of their own.
  mutating func lookAtIntegerKeys(of tables: [TableDefinition], usingRanges usesRanges: Bool) {
    let parents = Set(tables.flatMap { $0.foreignKeys.map { TableName($0.parent) } })
    let names = tables.filter(\.givesOutKeys).map(\.name)
    let autoIncrement = Set(tables.filter(\.isAutoIncrement).map(\.name))
    let ordered = names.filter { parents.contains(TableName($0)) } + names.filter { !parents.contains(TableName($0)) }
    warnings +=
      usesRanges
      ? ordered.filter { !autoIncrement.contains($0) }.map { Warning(.noKeyRange, $0) }
      : ordered.map { Warning(.integerKeys, $0) }
  }

  /// Names the columns that triggers maintain: counts of other tables' rows, and times of changes.
  mutating func lookAtCounters(_ schema: SchemaReader) throws {
    warnings += try schema.columnsKeptByTriggers().map {
      Warning($0.isTime ? .timesKept : .counters, $0.table, $0.column)
    }
  }
}

extension TableDefinition {
  /// True if SQLite gives the rows their keys: an INTEGER PRIMARY KEY that is no other table's key
  /// (<https://sqlite.org/autoinc.html>).
  var givesOutKeys: Bool {
    guard primaryKey.count == 1, !isWithoutRowID, module == nil else { return false }
    let key = columns[primaryKey[0]]
    let refers = foreignKeys.contains { $0.columns.contains { ASCIIName.matches($0, key.name) } }
    return ASCIIName.matches(key.declaredType, "INTEGER") && !refers
  }
}

extension DoctorReport {
  /// Names the columns that seem to refer to rows of other tables by an undeclared integer key: if an incoming row gets
  /// a new key because its own is in use, such columns would keep referring to the old one.
  ///
  /// - Parameters:
  ///   - tables: The tables that replicate.
  ///   - connection: The database, whose shares may declare references.
  /// - Throws: `SQLiteError`; `ReplicationError` when the ledger is damaged.
  mutating func lookForHiddenReferences(of tables: [TableDefinition], on connection: borrowing SQLiteConnection) throws
  {
    let declared = try ShareEntry.all(on: connection).flatMap { try ShareScope(json: $0.scope).references }
    for parent in tables where parent.hasIntegerKey {
      for child in tables {
        for (place, column) in child.columns.enumerated()
        where column.seemsToRefer(to: parent.name) && child.affinity(at: place) == .integer {
          let isDeclared =
            child.foreignKeys.contains { $0.columns.contains { ASCIIName.matches($0, column.name) } }
            || declared.contains {
              $0.table == TableName(child.name) && $0.columns.contains { ASCIIName.matches($0, column.name) }
            }
          // A column that repeats its table's name describes the row itself, like the price of a `price`.
          let isOwn =
            child.name == parent.name
            && (child.primaryKey.contains(place) || ASCIIName.matches(column.name, parent.name))
          if !isDeclared, !isOwn { warnings.append(Warning(.hiddenReference, child.name, column.name, parent.name)) }
        }
      }
    }
  }

  /// Names the shared tables in which a new row can get the key of a deleted one.
  ///
  /// - Parameters:
  ///   - tables: The tables that replicate.
  ///   - connection: The database.
  /// - Throws: `SQLiteError`.
  mutating func lookForReusedKeys(of tables: [TableDefinition], on connection: borrowing SQLiteConnection) throws {
    let shared = try Set(
      ShareEntry.all(on: connection).flatMap { try BaselineEntry.all(of: $0.number, on: connection) }.map(\.table))
    for table in tables where table.givesOutKeys && !table.isAutoIncrement && shared.contains(TableName(table.name)) {
      warnings.append(Warning(.reusedKeys, table.name))
    }
  }

  /// Names the tables of which shares leave out columns by name. A new column would be shared.
  ///
  /// - Throws: `SQLiteError`; `ReplicationError` when the ledger is damaged.
  mutating func lookForOmittedColumns(on connection: borrowing SQLiteConnection) throws {
    for scope in try ShareEntry.all(on: connection).map({ try ShareScope(json: $0.scope) }) {
      for table in scope.tables where !table.omittedColumns.isEmpty {
        let warning = Warning(.laterColumns, table.name.text)
        if !warnings.contains(warning) { warnings.append(warning) }
      }
    }
  }

  /// Names the tables whose state digests do not match the recorded rows.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  mutating func lookAtStates(_ connection: borrowing SQLiteConnection) throws {
    for state in try StateEntry.altered(on: connection) {
      warnings.append(Warning(.stateAltered, state.table.text, state.shortStream))
    }
  }
}

extension TableDefinition {
  /// True if the key is one integer, which each copy of a database gives out by itself.
  fileprivate var hasIntegerKey: Bool { primaryKey.count == 1 && affinity(at: primaryKey[0]) == .integer }
}

extension ColumnDefinition {
  /// True if it is named as columns are that refer to a table: `photo_id`, `photoid` or `id_photo`, for `photo` or `photos`, or as the
  /// table itself.
  fileprivate func seemsToRefer(to table: String) -> Bool {
    let column = ASCIIName.folded(name)
    let parent = ASCIIName.folded(table)
    let names = parent.hasSuffix("s") ? [parent, String(parent.dropLast())] : [parent]
    return parent.utf8.count > 1 && column == parent
      || names.contains { $0.utf8.count > 1 && [$0 + "_id", $0 + "id", "id_" + $0].contains(column) }
  }
}
