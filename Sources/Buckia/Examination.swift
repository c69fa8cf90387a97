import BuckiaDiff
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteConnections
import SQLiteSchemas

/// The findings of one examination of a database.
struct Examination {
  private(set) var replicates: [DoctorReport.Table] = []
  private(set) var skipped: [SkippedItem] = []
  private(set) var warnings: [String] = []

  mutating func skip(_ name: String, _ reason: String) { skipped.append(SkippedItem(name: name, reason: reason)) }

  // MARK: One table

  /// - Parameter sql: The statement that it was created with.
  mutating func look(
    at table: TableDefinition, createdBy sql: String, on connection: borrowing SQLiteConnection
  ) throws {
    if let reason = Replicability.refusal(of: table) { return skip(table.name, reason) }
    let key = table.primaryKey.map { table.columns[$0].name }
    replicates.append(
      DoctorReport.Table(name: table.name, key: table.isKeyedByRowID ? "rowid" : key.joined(separator: ", ")))
    if table.isKeyedByRowID, table.module == nil {
      warnings.append(
        "table \"\(table.name)\" has no primary key: its rows go by rowid, which VACUUM may change; "
          + "a primary key keeps diffs small, `diff --keyless content` compares by what is in them")
    }
    if let refusal = table.creationRefusal {
      warnings.append("table \"\(table.name)\" cannot be created where it is missing: \(refusal)")
    }
    if let settings = try FullTextSettings.read(of: table, on: connection), !settings.isEmpty {
      warnings.append(
        "table \"\(table.name)\" has settings of its own (\(settings.map(\.name).joined(separator: ", "))), which do not travel"
      )
    }
    if table.module != nil { return }
    lookAtColumns(of: table)
    lookAtClauses(of: table, sql)
    try lookAtIndexes(of: table, on: connection)
    try lookForNullKeys(in: table, on: connection)
    if !table.foreignKeys.isEmpty { lookForViolations(in: table, on: connection) }
  }

  private mutating func lookAtColumns(of table: TableDefinition) {
    for column in table.columns where column.hasExpressionDefault {
      warnings.append(
        "column \"\(table.name).\(column.name)\": its default is an expression, which does not travel; its values do")
    }
    for column in table.columns where !column.hasKnownCollation {
      warnings.append(
        "column \"\(table.name).\(column.name)\": its collating sequence \(column.collation) does not travel; where an index "
          + "needs it, only a program that has it can apply diffs")
    }
    for column in table.generated {
      warnings.append(
        "column \"\(table.name).\(column.name)\" is generated: it is computed by the receiver where it exists there, "
          + "and never created")
    }
  }

  private mutating func lookAtClauses(of table: TableDefinition, _ sql: String) {
    if !CheckConstraints.expressions(in: sql).isEmpty {
      warnings.append(
        "table \"\(table.name)\" has CHECK constraints, which do not travel: where it is missing, it is created without them"
      )
    }
    if ConflictClauses.occur(in: sql) {
      warnings.append(
        "table \"\(table.name)\" has ON CONFLICT clauses, which do not travel and do not count while diffs are applied")
    }
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
      if count > 0 {
        warnings.append("table \"\(table.name)\" has \(count) rows that refer to others that are not there")
      }
    } catch {
      // SQLite cannot check a key whose parent has no unique index on its columns.
      warnings.append("table \"\(table.name)\" has a foreign key that cannot be enforced: \(error.message)")
    }
  }

  private mutating func lookForNullKeys(
    in table: TableDefinition, on connection: borrowing SQLiteConnection
  ) throws {
    guard let condition = table.hasNullKeySQL else { return }
    let query = "SELECT count(*) FROM main.\(SQLText.identifier(table.name)) WHERE \(condition)"
    let count = try connection.integer(query) ?? 0
    if count > 0 {
      warnings.append(
        "table \"\(table.name)\" has \(count) rows with NULL in the primary key: they are told apart by content alone")
    }
  }

  // MARK: The whole

  mutating func lookAtTriggers(_ connection: borrowing SQLiteConnection) throws {
    let query = "SELECT name, tbl_name FROM main.sqlite_schema WHERE type = 'trigger' ORDER BY tbl_name, name"
    var count = 0
    try connection.forEachRow(of: query) { row in
      count += 1
      skip(row.text(at: 0) ?? "", "a trigger on \"\(row.text(at: 1) ?? "")\": definitions of this kind do not travel")
    }
    if count > 0 {
      warnings.append(
        "\(count) triggers: but for what they write into full-text and R-tree indexes, they do not fire while diffs are "
          + "applied, unless `--triggers on` says so")
    }
  }

  mutating func lookAtWhatIsKept(_ connection: borrowing SQLiteConnection) throws {
    for part in try HeldPart.all(on: connection) {
      let changes = part.changeCount == 1 ? "1 change" : "\(part.changeCount) changes"
      warnings.append(
        "\(changes) of table \"\(part.table)\" from \(part.file) are kept until there is a place for them: \(part.reason); "
          + "the next apply after that takes them")
    }
  }

  mutating func lookForDamage(_ connection: borrowing SQLiteConnection) throws {
    do {
      let damage = try connection.text("PRAGMA quick_check(1)") ?? "ok"
      if damage != "ok" { warnings.append("the database is damaged: \(damage)") }
    } catch {
      // An index by a collating sequence that is the application's own; everything else is damage, or no database.
      guard error.primaryCode == 1 else { throw error }
      warnings.append("the database cannot be checked for damage: \(error.message)")
    }
  }
}
