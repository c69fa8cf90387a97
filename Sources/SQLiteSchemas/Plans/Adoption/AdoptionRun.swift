import SQLiteConnections

/// Carries out a ``SchemaAdoption``, in two halves: ``begin()`` before the changes of the rows, ``finish()`` after them.
///
/// Constraints that rows break only until the changes have been applied are made in the second half. Both must run in one
/// transaction, to be rolled back when either throws.
package final class AdoptionRun {
  private let connection: SQLiteConnection
  private let adoption: SchemaAdoption
  private var unfinished: [(rebuild: TableRebuild, rest: TableRebuild.Rest)] = []
  /// Unique indexes that rows broke.
  private var postponed: [SchemaStatement] = []
  /// Full-text tables that were made and index others.
  private var emptyIndexes: [SchemaStatement] = []

  /// - Parameter connection: The database, with a transaction open. It must outlive this.
  package init(_ adoption: SchemaAdoption, on connection: borrowing SQLiteConnection) {
    self.adoption = adoption
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// Takes all steps, as far as the rows allow it.
  ///
  /// - Returns: What was done, for people.
  /// - Throws: `ReplicationError` with `refusedDefinition`; `SQLiteError` when the database fails.
  package func begin() throws -> [String] {
    try connection.withPlainTableRenames { try adoption.steps.map(take) }
  }

  /// Makes the constraints and the indexes that had to wait.
  ///
  /// - Returns: References of rebuilt tables that lead nowhere: SQLite lets a foreign key be made over them.
  /// - Throws: `ReplicationError` with `refusedDefinition` for a row that does not fit; `SQLiteError` when the database fails.
  package func finish() throws -> [Remark] {
    try connection.withPlainTableRenames {
      for table in unfinished { try table.rebuild.finish(table.rest, on: connection) }
    }
    for index in postponed { try run(index) }
    for table in emptyIndexes {
      let name = table.name.quoted
      try connection.execute("INSERT INTO main.\(name)(\(name)) VALUES ('rebuild')")
    }
    return try adoption.steps.compactMap { try $0.rebuiltTable.flatMap(brokenReferences) }
  }

  private func brokenReferences(of table: TableName) throws -> Remark? {
    do throws(SQLiteError) {
      let count = try connection.integer(
        "SELECT count(*) FROM pragma_foreign_key_check(?1, 'main')", binding: [table.text])
      guard let count, count > 0 else { return nil }
      return Remark(.brokenReferences, table.text, "\(count)")
    } catch {
      guard error.isAboutTheStatement else { throw error }
      return Remark(.unenforceableForeignKey, table.text, error.message)
    }
  }

  private func take(_ step: SchemaAdoption.Step) throws -> String {
    switch step {
    case .drop(let statement):
      try connection.execute("DROP \(statement.kind.rawValue) main.\(statement.name.quoted)")
      return "drop \(statement.subject)"
    case .create(let statement):
      try create(statement)
      return "create \(statement.subject)"
    case .addColumns(let columns, let rebuild):
      if try add(columns, to: rebuild.statement) { return "add \(columns.count) columns to \(rebuild.statement.name)" }
      try run(rebuild)
      return rebuild.description
    case .rebuild(let rebuild):
      try run(rebuild)
      return rebuild.description
    }
  }

  private func run(_ rebuild: TableRebuild) throws {
    if let rest = try rebuild.run(on: connection) { unfinished.append((rebuild, rest)) }
  }

  private func create(_ statement: SchemaStatement) throws {
    if let place = unfinished.firstIndex(where: { $0.rebuild.statement.name == statement.table }),
      statement.kind == .index
    {
      unfinished[place].rest.indexes.append(statement)
      return
    }
    do {
      try run(statement)
    } catch let error as ReplicationError where statement.kind == .index && error.code == .refusedDefinition {
      // Of all statements only this looks at rows.
      return postponed.append(statement)
    }
    if statement.kind == .table, let made = VirtualTableDefinition(parsing: statement.sql),
      let content = made.fullTextContent, !content.isEmpty
    {
      emptyIndexes.append(statement)
    }
  }

  private func run(_ statement: SchemaStatement) throws {
    do throws(SQLiteError) {
      try connection.execute(statement.sql)
    } catch {
      guard error.isAboutTheStatement else { throw error }
      throw ReplicationError(
        .refusedDefinition, "the author's \(statement.subject) cannot be made here: \(error.message)",
        table: statement.table.text, cause: error)
    }
  }

  /// Adds columns to a table.
  ///
  /// - Returns: Whether SQLite can, and the table then has its author's definition, comments included; if not, nothing has changed.
  private func add(_ columns: [String], to statement: SchemaStatement) throws -> Bool {
    try connection.execute("SAVEPOINT buckia_columns")
    let isDone =
      try columns.allSatisfy { column in
        let sql = "ALTER TABLE main.\(statement.name.quoted) ADD COLUMN \(column)"
        return try connection.failure(ofRunning: sql) == nil
      } && isMade(by: statement)
    if !isDone { try connection.execute("ROLLBACK TO buckia_columns") }
    try connection.execute("RELEASE buckia_columns")
    return isDone
  }

  /// Whether a table is defined as a statement says.
  private func isMade(by statement: SchemaStatement) throws -> Bool {
    let query = "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE"
    var found = false
    try connection.forEachRow(of: query, binding: [statement.name.text]) { row in
      let name = row.text(at: 0) ?? ""
      found = SchemaStatement(.table, name: name, table: name, sql: row.text(at: 1) ?? "")
        .equalsIgnoringWhiteSpace(statement)
    }
    return found
  }
}
