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
      let module = "SELECT 1 FROM pragma_module_list WHERE lower(name) = lower(?1)"
      if try schema.connection.integer(module, binding: [statement.name.text]) != nil {
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
