import BuckiaEngine
import SQLiteConnections
import SQLiteSchemas

extension DatabaseManager {
  /// Says what of the database would replicate, what would not and why, and what is worth knowing.
  ///
  /// - Throws: `BuckiaError` when there is no such database, `SQLiteError` when it cannot be read.
  public func examine() throws -> DoctorReport {
    let connection = try reader()
    let transaction = try SQLiteTransaction(.deferred, on: connection)
    let schema = try SchemaReader(connection)
    var examination = Examination()
    for entry in schema.entries where entry.kind != .view {
      if Replicability.isOwn(entry.name) || schema.isInside(entry) { continue }
      if let reason = Replicability.refusal(of: entry) {
        examination.skipped.append(SkippedItem(name: entry.name.text, reason: reason))
        continue
      }
      try examination.look(at: schema.definition(of: entry, on: connection), on: connection)
    }
    try examination.lookAtWhole(connection)
    transaction.rollback()
    return DoctorReport(
      replicates: examination.replicates, skipped: examination.skipped, warnings: examination.warnings)
  }
}

/// The findings of one examination.
private struct Examination {
  var replicates: [DoctorReport.Table] = []
  var skipped: [SkippedItem] = []
  var warnings: [String] = []

  mutating func look(at table: TableDefinition, on connection: borrowing SQLiteConnection) throws {
    if let reason = Replicability.refusal(of: table) {
      skipped.append(SkippedItem(name: table.name, reason: reason))
      return
    }
    let key = table.primaryKey.map { table.columns[$0].name }
    replicates.append(
      DoctorReport.Table(name: table.name, key: table.goesByRowID ? "rowid" : key.joined(separator: ", ")))
    if table.goesByRowID, table.module == nil {
      warnings.append(
        "table \"\(table.name)\" has no primary key: its rows go by rowid, which VACUUM may change; "
          + "a primary key keeps diffs small")
    }
    if let refusal = table.creationRefusal {
      warnings.append("table \"\(table.name)\" cannot be created where it is missing: \(refusal)")
    }
    if let settings = try FullTextSettings(of: table, on: connection), !settings.names.isEmpty {
      warnings.append(
        "table \"\(table.name)\" has settings of its own (\(settings.names.joined(separator: ", "))), which do not travel"
      )
    }
    for column in table.columns where column.hasExpressionDefault {
      warnings.append(
        "column \"\(table.name).\(column.name)\": its default is an expression, which does not travel; its values do")
    }
    for column in table.generated {
      warnings.append(
        "column \"\(table.name).\(column.name)\" is generated: it is computed by the receiver where it exists there, "
          + "and never created")
    }
    try lookForNullKeys(in: table, on: connection)
    if !table.foreignKeys.isEmpty { lookForViolations(in: table, on: connection) }
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

  mutating func lookAtWhole(_ connection: borrowing SQLiteConnection) throws {
    let triggers = "SELECT count(*) FROM main.sqlite_schema WHERE type = 'trigger'"
    if let count = try connection.integer(triggers), count > 0 {
      warnings.append(
        "\(count) triggers: but for what they write into full-text and R-tree indexes, they do not fire while diffs are "
          + "applied, unless `--triggers on` says so")
    }
    let damage = try connection.text("PRAGMA quick_check(1)") ?? "ok"
    if damage != "ok" { warnings.append("the database is damaged: \(damage)") }
  }
}
