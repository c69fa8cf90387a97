import SQLiteConnections

/// What makes the author's schema of the local one: which statements are run, and what stays as it is.
///
/// Only where the user has chosen it. Before anything is planned, the author's statements have been tried in an empty database
/// (``SchemaRehearsal``). What exists here and never was the author's stays.
package struct SchemaAdoption: Sendable {
  /// One step, in the order in which they are taken.
  enum Step: Sendable {
    /// Something is dropped that the author has dropped, or has made otherwise.
    case drop(SchemaStatement)
    /// Something is made by the author's statement.
    case create(SchemaStatement)
    /// Columns are added, each by its definition; where SQLite refuses that, the table is rebuilt.
    case addColumns([String], TableRebuild)
    case rebuild(TableRebuild)

    /// The table that gets another definition.
    var rebuiltTable: TableName? {
      switch self {
      case .drop, .create: nil
      case .addColumns(_, let rebuild), .rebuild(let rebuild): rebuild.statement.name
      }
    }
  }

  private(set) var steps: [Step] = []
  /// What becomes of every object of the schema that differs.
  package private(set) var notes: [SchemaNote] = []

  private let local: [SchemaStatement]
  private let present: [SchemaStatement.Identity: SchemaStatement]
  /// What the author has dropped or replaced.
  private let replaced: [SchemaStatement.Identity: AuthorSchema.Replaced]
  private let renames: ColumnRenames
  /// The tables that their author dropped, and that are dropped here.
  private var droppedTables: Set<TableName> = []
  /// The tables that their author dropped, and that stay.
  private var keptTables: Set<TableName> = []

  /// The tables whose rows or columns change, in the order of the steps.
  package var changedTables: [TableName] {
    steps.compactMap { step in
      if case .drop(let statement) = step, statement.kind == .table { return statement.name }
      return step.rebuiltTable
    }
  }

  /// Plans.
  ///
  /// - Parameters:
  ///   - author: The author's schema.
  ///   - renames: The renames that are known.
  ///   - schema: The local schema.
  /// - Returns: nil when there is nothing to do.
  /// - Throws: `ReplicationError` with `refusedDefinition` when a statement is refused, a name is taken here, or something would be
  ///   lost; `SQLiteError` when the schema cannot be read. Nothing has been changed.
  package init?(of author: AuthorSchema, renames: ColumnRenames, local schema: SchemaReader) throws {
    self.renames = renames
    local = try schema.statements()
    present = Dictionary(local.map { ($0.identity, $0) }) { first, _ in first }
    replaced = Dictionary(author.replaced.map { ($0.statement.identity, $0) }) { first, _ in first }
    let wanted = author.statements.filter { present[$0.identity]?.equalsIgnoringWhiteSpace($0) != true }
    let all = Set(author.statements.map(\.identity))
    let gone = local.filter { replaced[$0.identity] != nil && !all.contains($0.identity) }
    if wanted.isEmpty, gone.isEmpty { return nil }

    let functions = SchemaRehearsal.functions(of: local)
    let library = schema.connection.library
    let rehearsal = try SchemaRehearsal(of: author.statements, allowing: functions, with: library)
    let before = try SchemaRehearsal(
      of: author.replaced.map(\.statement).filter { $0.kind == .table }, allowing: functions, with: library)
    try requireFreeNames(for: wanted, on: schema)
    try planDrops(wanted: wanted, gone: gone, in: schema)
    for statement in wanted where statement.kind == .table {
      try plan(statement, rehearsal.definitions, before.definitions, in: schema)
    }
    for statement in wanted where statement.kind != .table { create(statement) }
  }

  private mutating func note(_ action: SchemaNote.Action, _ statement: SchemaStatement, _ detail: String) {
    let table = statement.kind == .table || statement.kind == .view ? statement.name : statement.table
    notes.append(SchemaNote(action, table.text, nil, detail))
  }

  // MARK: Names

  /// Refuses statements whose name stands for something else here that is not the author's.
  private func requireFreeNames(for wanted: [SchemaStatement], on schema: SchemaReader) throws {
    // Triggers have names of their own, all others share theirs.
    let taken = Dictionary(
      local.filter { $0.kind != .trigger && replaced[$0.identity] == nil }.map { ($0.name, $0) }
    ) { first, _ in first }
    for statement in wanted {
      if statement.kind != .trigger, let taken = taken[statement.name], taken.kind != statement.kind {
        throw Self.refusal(statement, "here that is the name of the \(taken.subject)")
      }
      guard statement.kind == .table, schema.entry(named: statement.name) == nil else { continue }
      if try schema.hasModule(named: statement.name.text) {
        throw Self.refusal(statement, "it would hide a module of that name")
      }
    }
  }

  private static func refusal(_ statement: SchemaStatement, _ reason: String) -> ReplicationError {
    ReplicationError(
      .refusedDefinition, "the author's \(statement.subject) cannot be made here: \(reason)",
      table: statement.table.text)
  }

  // MARK: Drops

  private mutating func planDrops(
    wanted: [SchemaStatement], gone: [SchemaStatement], in schema: SchemaReader
  ) throws {
    for statement in gone where statement.kind == .table { try planDrop(ofTable: statement, in: schema) }
    let new = Set(wanted.map(\.identity))
    let changed = local.filter { $0.kind != .table && new.contains($0.identity) }
    for kind in [SchemaStatement.Kind.trigger, .view, .index] {
      for statement in gone + changed where statement.kind == kind && !keptTables.contains(statement.table) {
        // What belongs to a table goes with it.
        if droppedTables.contains(statement.table), kind != .view { continue }
        steps.append(.drop(statement))
        if !new.contains(statement.identity) {
          note(.drop, statement, "\(statement.subject): its author has dropped it")
        }
      }
    }
    for statement in gone where droppedTables.contains(statement.name) && statement.kind == .table {
      steps.append(.drop(statement))
    }
  }

  /// A table is dropped only if it holds the very rows that it held where its author dropped it.
  private mutating func planDrop(ofTable statement: SchemaStatement, in schema: SchemaReader) throws {
    let content = replaced[statement.identity]?.content
    let entry = schema.entry(named: statement.name)
    let own = try entry.flatMap { try schema.content(of: $0) }
    guard own == content else {
      keptTables.insert(statement.name)
      return note(.keep, statement, "its author has dropped it, but here it holds rows that were not there")
    }
    droppedTables.insert(statement.name)
    note(.drop, statement, "\(statement.subject): its author has dropped it")
    for other in local where other.table == statement.name && other.kind != .table {
      if replaced[other.identity] != nil { continue }
      note(.drop, other, "\(other.subject): it goes with its table")
    }
  }

  // MARK: Tables

  private mutating func plan(
    _ statement: SchemaStatement, _ definitions: [TableName: TableDefinition],
    _ older: [TableName: TableDefinition], in schema: SchemaReader
  ) throws {
    guard let present = present[statement.identity] else { return create(statement) }
    guard let definition = definitions[statement.name], definition.module == nil,
      let entry = schema.entry(named: statement.name), entry.kind == .table
    else {
      return note(.leaveOut, statement, "the definition of a virtual table: the one that is here stays")
    }
    if let known = older[statement.name], let lost = try schema.valuesLost(in: definition, since: known, renames),
      lost.content != replaced[statement.identity]?.content, let column = lost.columns.first
    {
      let change =
        definition.column(named: column) == nil
        ? "the author's table no longer has column" : "the author's table has another type for column"
      throw ReplicationError(
        .columnsDiffer,
        "\(change) \"\(statement.name).\(column)\", which holds values here that its author did not have: they would be lost",
        table: statement.name.text, column: column)
    }
    let rebuild = try TableRebuild(
      statement, as: definition, from: schema.definition(of: entry), knownColumns: older[statement.name],
      renames: renames)
    if let parts = CreateTableParts(parsing: statement.sql),
      let added = CreateTableParts(parsing: present.sql)?.addedColumns(in: parts)
    {
      steps.append(.addColumns(added, rebuild))
      for column in added { note(.add, statement, column) }
    } else {
      steps.append(.rebuild(rebuild))
      note(.rebuild, statement, statement.sql)
    }
  }

  private mutating func create(_ statement: SchemaStatement) {
    steps.append(.create(statement))
    note(present[statement.identity] == nil ? .create : .replace, statement, statement.sql)
  }
}

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
  package func finish() throws -> [Warning] {
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

  private func brokenReferences(of table: TableName) throws -> Warning? {
    do throws(SQLiteError) {
      let count = try connection.integer(
        "SELECT count(*) FROM pragma_foreign_key_check(?1, 'main')", binding: [table.text])
      guard let count, count > 0 else { return nil }
      return Warning(.brokenReferences, table.text, "\(count)")
    } catch {
      guard error.isAboutTheStatement else { throw error }
      return Warning(.unenforceableForeignKey, table.text, error.message)
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
      if try add(columns, to: rebuild.statement) {
        let name = columns.count == 1 ? CreateTableParts.name(inColumn: columns[0]) : nil
        return name.map { "add column \(rebuild.statement.name).\($0)" }
          ?? "add \(columns.count) columns to \(rebuild.statement.name)"
      }
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
  /// - Returns: True if SQLite can, and the table then has its author's definition, comments included; if not, nothing has changed.
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

  /// True if a table is defined as a statement says.
  private func isMade(by statement: SchemaStatement) throws -> Bool {
    let query = "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE"
    return try connection.rows(of: query, statement.name.text) { row in
      let name = row.text(at: 0) ?? ""
      return SchemaStatement(.table, name: name, table: name, sql: row.text(at: 1) ?? "")
        .equalsIgnoringWhiteSpace(statement)
    } == [true]
  }
}
