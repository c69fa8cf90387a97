import BuckiaBytes
import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import SQLiteSchemas
import SQLiteConnections

extension DatabaseManager {
  /// Says what of the database would replicate, what would not and why, and what is worth knowing.
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
    if table.isKeyedByRowID, table.module == nil { warnings.append(Remark(.noPrimaryKey, table.name)) }
    if let refusal = table.creationRefusal { warnings.append(Remark(.notCreatable, table.name, refusal)) }
    if let settings = try FullTextSettings.read(of: table, on: connection), !settings.isEmpty {
      warnings.append(Remark(.fullTextSettings, table.name, settings.map(\.name).joined(separator: ", ")))
    }
    if table.module != nil { return }
    lookAtColumns(of: table)
    if !CheckConstraints.expressions(in: sql).isEmpty { warnings.append(Remark(.checkConstraints, table.name)) }
    if ConflictClauses.occur(in: sql) { warnings.append(Remark(.conflictClauses, table.name)) }
    try lookAtIndexes(of: table, on: connection)
    try lookForNullKeys(in: table, on: connection)
    if !table.foreignKeys.isEmpty { lookForViolations(in: table, on: connection) }
  }

  private mutating func lookAtColumns(of table: TableDefinition) {
    for column in table.columns where column.hasExpressionDefault {
      warnings.append(Remark(.expressionDefault, table.name, column.name))
    }
    for column in table.columns where !column.hasKnownCollation {
      warnings.append(Remark(.unknownCollation, table.name, column.name, column.collation))
    }
    for column in table.generated { warnings.append(Remark(.generatedColumn, table.name, column.name)) }
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
      if count > 0 { warnings.append(Remark(.brokenReferences, table.name, "\(count)")) }
    } catch {
      // SQLite cannot check a key whose parent has no unique index on its columns.
      warnings.append(Remark(.unenforceableForeignKey, table.name, error.message))
    }
  }

  private mutating func lookForNullKeys(
    in table: TableDefinition, on connection: borrowing SQLiteConnection
  ) throws {
    guard let condition = table.hasNullKeySQL else { return }
    let query = "SELECT count(*) FROM main.\(SQLText.identifier(table.name)) WHERE \(condition)"
    let count = try connection.integer(query) ?? 0
    if count > 0 { warnings.append(Remark(.nullKeys, table.name, "\(count)")) }
  }

  // MARK: The whole

  fileprivate mutating func lookAtTriggers(_ connection: borrowing SQLiteConnection) throws {
    let query = "SELECT name, tbl_name FROM main.sqlite_schema WHERE type = 'trigger' ORDER BY tbl_name, name"
    var count = 0
    try connection.forEachRow(of: query) { row in
      count += 1
      skip(row.text(at: 0) ?? "", "a trigger on \"\(row.text(at: 1) ?? "")\": definitions of this kind do not travel")
    }
    if count > 0 { warnings.append(Remark(.triggers, "\(count)")) }
  }

  fileprivate mutating func lookAtWhatIsKept(_ connection: borrowing SQLiteConnection) throws {
    for part in try HeldPart.all(on: connection) {
      warnings.append(Remark(.heldChanges, part.table, part.file, "\(part.changeCount)", part.reason))
    }
  }

  fileprivate mutating func lookForDamage(_ connection: borrowing SQLiteConnection) throws {
    do {
      // Only the longer check compares the order of indexes, which a collating sequence that stands in for another may not have.
      let check = ConnectionExtensions.ofProcess.collations.isEmpty ? "quick_check" : "integrity_check"
      let damage = try connection.text("PRAGMA \(check)(1)") ?? "ok"
      if damage != "ok" { warnings.append(Remark(.damaged, damage)) }
    } catch {
      // An index by a collating sequence that is the application's own; everything else is damage, or no database.
      guard error.primaryCode == 1 else { throw error }
      warnings.append(Remark(.notCheckable, error.message))
    }
  }
}
