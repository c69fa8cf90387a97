import SQLiteConnections
import SQLiteSchemas

/// Runs an author's statements in an empty database of our own before they touch another one.
///
/// SQLite's authorizer is asked about everything: that a statement makes the one thing it claims to make, and that what it makes
/// would only read and write the author's own tables. A view and a trigger do nothing when they are made, so they are used
/// once: a statement that would set them off is prepared and never run. What SQLite stores must be the statement, byte for byte.
package struct SchemaRehearsal: Sendable {
  /// The tables as SQLite understands them, those of virtual ones included whose rows travel.
  package private(set) var definitions: [TableName: TableDefinition] = [:]

  private let statements: [SchemaStatement]
  private let policy: StatementPolicy

  /// Tries statements.
  ///
  /// - Parameters:
  ///   - statements: What ``AuthorSchema/refusal`` accepts, in its order.
  ///   - functions: Functions that may be called besides SQLite's own pure ones, in lower case: those that the schema of the
  ///     receiver uses already.
  ///   - library: The copy of SQLite of the receiver's connection.
  /// - Throws: `ReplicationError` with `refusedDefinition` for the first statement that is refused, and why.
  package init(
    of statements: [SchemaStatement], allowing functions: Set<String> = [], with library: SQLiteLibrary
  ) throws {
    self.statements = statements
    policy = StatementPolicy(of: statements, allowing: functions)
    if let reason = ViewNesting(statements).refusal { throw Self.refusal(reason) }
    let connection = try SQLiteConnection(opening: ":memory:", as: .create, with: library)
    // What only the author's program has is known by its name here.
    try connection.readThroughUnknownCollations()
    var stubs = SQLiteFunctions(on: connection)
    do {
      for name in functions.subtracting(SQLFunctions.pure) {
        try stubs.add(name, argumentCount: nil) { _ in .null }
      }
      try run(on: connection)
    } catch {
      // They must go while the connection is there.
      _ = stubs.removeAll()
      throw error
    }
    _ = stubs.removeAll()
  }

  private mutating func run(on connection: borrowing SQLiteConnection) throws {
    for statement in statements { try make(statement, on: connection) }
    try use(on: connection)
    let schema = try SchemaReader(connection)
    try requireNoShadows(among: schema)
    for entry in schema.entries where entry.kind.hasOwnRows {
      definitions[entry.name] = try schema.definition(of: entry)
    }
  }

  /// The functions that statements may call, in lower case; rather too many than too few.
  package static func functions(of statements: [SchemaStatement]) -> Set<String> {
    statements.reduce(into: Set()) { $0.formUnion(SQLReferences(of: $1.sql).functions) }
      .filter { !$0.isEmpty && $0.utf8.count < 256 }
  }

  private static func refusal(_ reason: String) -> ReplicationError { ReplicationError(.refusedDefinition, reason) }

  private func refusal(_ statement: SchemaStatement, _ reason: String) -> ReplicationError {
    ReplicationError(
      .refusedDefinition, "the author's \(statement.subject) is refused: \(reason)", table: statement.table.text)
  }

  // MARK: Making

  private func make(_ statement: SchemaStatement, on connection: borrowing SQLiteConnection) throws {
    if let made = VirtualTableDefinition(parsing: statement.sql) {
      // A module makes tables of its own, about which it cannot be asked. Its arguments are not SQL.
      if let reason = StatementPolicy.refusal(ofArguments: made) { throw refusal(statement, reason) }
      if let reason = try connection.failure(ofRunning: statement.sql) { throw refusal(statement, reason) }
    } else {
      try connection.withAuthorizer({ [policy] in policy.allows($0, making: statement) }) { connection in
        if let reason = try connection.failure(ofRunning: statement.sql) { throw refusal(statement, reason) }
      }
    }
    let query = "SELECT type, tbl_name, sql FROM main.sqlite_schema WHERE name = ?1 AND type = ?2"
    var isStoredAlike = false
    try connection.forEachRow(of: query, binding: [statement.name.text, statement.kind.rawValue]) { row in
      isStoredAlike =
        TableName(row.text(at: 1) ?? "") == statement.table
        && row.textBytes(at: 2).elementsEqual(statement.sql.utf8)
    }
    guard isStoredAlike else { throw refusal(statement, "SQLite understands something else by it") }
  }

  /// Refuses a table that a module would take for one of its own.
  private func requireNoShadows(among schema: SchemaReader) throws {
    for statement in statements where statement.kind == .table {
      if case .shadow? = schema.entry(named: statement.name)?.kind {
        throw refusal(statement, "a table of that name would hold the insides of a virtual table")
      }
    }
  }

  // MARK: Using

  /// Prepares what would set off each view, trigger, default and constraint.
  private func use(on connection: borrowing SQLiteConnection) throws {
    let used = statements.filter { statement in
      statement.kind == .view || statement.kind == .table && VirtualTableDefinition(parsing: statement.sql) == nil
    }
    // The first use of a table-valued function sets it up, which looks to the authorizer like a write into the schema.
    for name in StatementPolicy.tableFunctions {
      _ = try connection.failure(ofPreparing: "SELECT * FROM \(name.quoted)('[]')")
    }
    try prepare(used.map { ($0, ["SELECT * FROM main.\($0.name.quoted)"]) }, on: connection)
    var events: [TableName: [TriggerDefinition.Event]] = [:]
    for statement in statements where statement.kind == .trigger {
      guard let trigger = TriggerDefinition(parsing: statement.sql) else { continue }
      events[statement.table, default: []].append(trigger.event)
    }
    // The columns of a view are known only now.
    var uses: [(SchemaStatement, [String])] = []
    for statement in used {
      uses.append((statement, try writes(to: statement, events[statement.name] ?? [], on: connection)))
    }
    try prepare(uses, on: connection)
  }

  private func prepare(
    _ uses: [(statement: SchemaStatement, sql: [String])], on connection: borrowing SQLiteConnection
  ) throws {
    try connection.withAuthorizer({ [policy] in policy.allowsUse($0) }) { connection in
      for use in uses {
        for sql in use.sql {
          if let reason = try connection.failure(ofPreparing: sql) { throw refusal(use.statement, reason) }
        }
      }
    }
  }

  /// Statements that write a table in every way, or a view in those that its triggers allow.
  private func writes(
    to statement: SchemaStatement, _ events: [TriggerDefinition.Event], on connection: borrowing SQLiteConnection
  ) throws -> [String] {
    var columns: [String] = []
    var defaults: [String] = []
    let query = "SELECT name, dflt_value FROM pragma_table_xinfo(?1, 'main') WHERE hidden = 0"
    try connection.forEachRow(of: query, binding: [statement.name.text]) { row in
      columns.append(SQLText.identifier(row.text(at: 0) ?? ""))
      // About what a default calls, SQLite asks only outside of its table.
      let value = row.text(at: 1) ?? ""
      if !SQLReferences(of: value).functions.isEmpty { defaults.append("SELECT \(value)") }
    }
    let name = "main.\(statement.name.quoted)"
    let update = "UPDATE \(name) SET \(columns.map { "\($0) = \($0)" }.joined(separator: ", "))"
    let delete = "DELETE FROM \(name)"
    guard statement.kind == .view else { return ["INSERT INTO \(name) DEFAULT VALUES", update, delete] + defaults }
    let values = columns.map { _ in "NULL" }.joined(separator: ", ")
    let insert = "INSERT INTO \(name)(\(columns.joined(separator: ", "))) VALUES (\(values))"
    return events.map { event in
      switch event {
      case .insert: insert
      case .update: update
      case .delete: delete
      }
    }
  }
}
