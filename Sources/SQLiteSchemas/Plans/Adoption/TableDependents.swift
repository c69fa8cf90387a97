import SQLiteConnections

/// The indexes and triggers of a table, which go with it and are made again by the statements that made them.
struct TableDependents {
  private let present: [SchemaStatement]
  /// What is to be made: what was there, and perhaps more or less.
  private var wanted: [SchemaStatement]
  /// Triggers of the application's own, with the statements that make them on TEMP.
  private let temporary: [(name: String, sql: String)]

  init(of table: TableName, on connection: borrowing SQLiteConnection) throws {
    let query = """
      SELECT type, name, tbl_name, sql FROM main.sqlite_schema
      WHERE tbl_name = ?1 COLLATE NOCASE AND type IN ('index', 'trigger') AND sql IS NOT NULL ORDER BY rowid
      """
    var found: [SchemaStatement] = []
    try connection.forEachRow(of: query, binding: [table.text]) { row in
      guard let kind = SchemaStatement.Kind(rawValue: row.text(at: 0) ?? "") else { return }
      found.append(
        SchemaStatement(kind, name: row.text(at: 1) ?? "", table: row.text(at: 2) ?? "", sql: row.text(at: 3) ?? ""))
    }
    present = found
    wanted = found
    var triggers: [(String, String)] = []
    let ofTemporary = "SELECT name, sql FROM temp.sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE"
    try connection.forEachRow(of: ofTemporary, binding: [table.text]) { row in
      // SQLite stores it without the word TEMP.
      let sql = row.text(at: 1) ?? ""
      triggers.append((row.text(at: 0) ?? "", "CREATE TEMP \(sql.dropFirst("CREATE ".count))"))
    }
    temporary = triggers
  }

  /// The indexes among them.
  var indexes: [SchemaStatement] { present.filter { $0.kind == .index } }

  /// The same, of which the indexes are not made again.
  var withoutIndexes: TableDependents {
    var rest = self
    rest.wanted.removeAll { $0.kind == .index }
    return rest
  }

  /// The same and other indexes, which are made first.
  func adding(_ indexes: [SchemaStatement]) -> TableDependents {
    var more = self
    more.wanted = indexes + wanted
    return more
  }

  func drop(on connection: borrowing SQLiteConnection) throws {
    for statement in present {
      try connection.execute("DROP \(statement.kind.rawValue) main.\(statement.name.quoted)")
    }
    for trigger in temporary { try connection.execute("DROP TRIGGER temp.\(SQLText.identifier(trigger.name))") }
  }

  /// Makes them again.
  ///
  /// - Returns: Nil when that is done; else why the first of them cannot be made: rows that a unique index refuses, or a column that
  ///   is gone.
  func make(on connection: borrowing SQLiteConnection) throws -> ReplicationError? {
    for statement in wanted {
      do throws(SQLiteError) {
        try connection.execute(statement.sql)
      } catch {
        guard error.isAboutTheStatement else { throw error }
        return refusal(statement, error.message)
      }
    }
    for trigger in temporary { try connection.execute(trigger.sql) }
    return nil
  }

  private func refusal(_ statement: SchemaStatement, _ reason: String) -> ReplicationError {
    ReplicationError(
      .refusedDefinition,
      "the \(statement.subject) of table \"\(statement.table)\" cannot be kept with the author's schema: \(reason)",
      table: statement.table.text)
  }
}
