import BuckiaBytes
import SQLiteConnections

/// Runs an author's statements in an empty database of our own before they touch another one.
///
/// SQLite's authorizer is asked about everything: that a statement makes the one thing it claims to make, and that what it makes
/// would only read and write the author's own tables. A view and a trigger do nothing when they are made, so they are used
/// once: a statement that would set them off is prepared and never run. What SQLite stores must be the statement, byte for byte.
package struct SchemaRehearsal: Sendable {
  /// The tables as SQLite understands them, those of virtual ones included whose rows travel.
  package private(set) var definitions: [TableName: TableDefinition] = [:]

  /// Says which statement a refusal is about: the cause of its error.
  package struct RefusedStatement: Error {
    /// The statement.
    package let statement: SchemaStatement
    /// Why it is refused.
    package let reason: String
  }

  private let statements: [SchemaStatement]
  private let policy: StatementPolicy

  /// Tries statements.
  ///
  /// - Parameters:
  ///   - statements: What ``AuthorSchema/refusal`` accepts, in its order.
  ///   - functions: Functions that may be called besides SQLite's own pure ones, in lower case: those that the schema of the
  ///     receiver uses already.
  ///   - library: The copy of SQLite of the receiver's connection.
  /// - Throws: `ReplicationError` with `refusedDefinition` for the first statement that is refused, with a ``RefusedStatement`` as its
  ///   cause, or for all of them together.
  package init(
    of statements: [SchemaStatement], allowing functions: Set<String> = [], with library: SQLiteLibrary
  ) throws {
    self.statements = statements
    policy = StatementPolicy(of: statements, allowing: functions)
    if let reason = ViewNesting(statements).refusal { throw ReplicationError(.refusedDefinition, reason) }
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
    for statement in statements where statement.kind != .trigger { try make(statement, on: connection) }
    try use(on: connection)
    // One after the other, so that it is known which of them is refused.
    for statement in statements where statement.kind == .trigger {
      try make(statement, on: connection)
      try fire(statement, on: connection)
    }
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

  private func refusal(_ statement: SchemaStatement, _ reason: String) -> ReplicationError {
    ReplicationError(
      .refusedDefinition, "the author's \(statement.subject) is refused: \(reason)", table: statement.table.text,
      cause: RefusedStatement(statement: statement, reason: reason))
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
    let isStoredAlike = try connection.rows(of: query, statement.name.text, statement.kind.rawValue) { row in
      TableName(row.text(at: 1) ?? "") == statement.table && row.textBytes(at: 2).elementsEqual(statement.sql.utf8)
    }
    guard isStoredAlike == [true] else { throw refusal(statement, "SQLite understands something else by it") }
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

  /// Prepares what would set off each view, default and constraint.
  private func use(on connection: borrowing SQLiteConnection) throws {
    // The first use of a table-valued function sets it up, which looks to the authorizer like a write into the schema.
    for name in StatementPolicy.tableFunctions {
      _ = try connection.failure(ofPreparing: "SELECT * FROM \(name.quoted)('[]')")
    }
    let used = statements.filter { statement in
      statement.kind == .view || statement.kind == .table && VirtualTableDefinition(parsing: statement.sql) == nil
    }
    for statement in used {
      try prepare(["SELECT * FROM main.\(statement.name.quoted)"], using: statement, on: connection)
    }
    for statement in used where statement.kind == .table {
      let writes = try Self.writes(to: statement.name, isView: false, on: connection)
      try prepare([writes.insert, writes.update, writes.delete] + writes.defaults, using: statement, on: connection)
    }
  }

  /// Prepares what would set off a trigger, and with it those that were made before it.
  private func fire(_ statement: SchemaStatement, on connection: borrowing SQLiteConnection) throws {
    guard let trigger = TriggerDefinition(parsing: statement.sql) else { return }
    let isView = statements.contains { $0.kind == .view && $0.name == statement.table }
    let writes = try Self.writes(to: statement.table, isView: isView, on: connection)
    let write =
      switch trigger.event {
      case .insert: writes.insert
      case .update: writes.update
      case .delete: writes.delete
      }
    try prepare([write], using: statement, on: connection)
  }

  private func prepare(
    _ queries: [String], using statement: SchemaStatement, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.withAuthorizer({ [policy] in policy.allowsUse($0) }) { connection in
      for sql in queries {
        if let reason = try connection.failure(ofPreparing: sql) { throw refusal(statement, reason) }
      }
    }
  }

  /// Statements that write a table or view in every way, and what its defaults compute.
  private static func writes(
    to target: TableName, isView: Bool, on connection: borrowing SQLiteConnection
  ) throws -> (insert: String, update: String, delete: String, defaults: [String]) {
    var columns: [String] = []
    var defaults: [String] = []
    let query = "SELECT name, dflt_value FROM pragma_table_xinfo(?1, 'main') WHERE hidden = 0"
    try connection.forEachRow(of: query, binding: [target.text]) { row in
      columns.append(SQLText.identifier(row.text(at: 0) ?? ""))
      // About what a default calls, SQLite asks only outside of its table.
      let value = row.text(at: 1) ?? ""
      if !SQLReferences(of: value).functions.isEmpty { defaults.append("SELECT \(value)") }
    }
    let name = "main.\(target.quoted)"
    let values = columns.map { _ in "NULL" }.joined(separator: ", ")
    return (
      "INSERT INTO \(name)" + (isView ? "(\(columns.joined(separator: ", "))) VALUES (\(values))" : " DEFAULT VALUES"),
      "UPDATE \(name) SET \(columns.map { "\($0) = \($0)" }.joined(separator: ", "))", "DELETE FROM \(name)", defaults
    )
  }
}

/// What an author's statements may do: an allow list, for the authorizer.
struct StatementPolicy: Sendable {
  /// The author's tables and views.
  private let tables: Set<TableName>
  private let functions: Set<String>

  /// - Parameters:
  ///   - statements: All of the author's statements.
  ///   - functions: What may be called besides SQLite's own pure functions, in lower case.
  init(of statements: [SchemaStatement], allowing functions: Set<String>) {
    tables = Set(statements.filter { $0.kind == .table || $0.kind == .view }.map(\.name))
    self.functions = functions.subtracting(SQLFunctions.withEffects).union(SQLFunctions.pure)
  }

  /// Table-valued functions that compute their rows from their arguments.
  static let tableFunctions: Set<TableName> = ["json_each", "json_tree", "jsonb_each", "jsonb_tree"]
  private static let schemaTables: Set<TableName> = ["sqlite_master", "sqlite_schema"]

  /// True if a CREATE statement may do something while it is prepared.
  func allows(_ action: SQLiteAction, making statement: SchemaStatement) -> Bool {
    guard isInMain(action) else { return false }
    let (name, detail) = (TableName(action.name), TableName(action.detail))
    switch action.kind {
    case .createTable: return statement.kind == .table && (name == statement.name || name == "sqlite_sequence")
    case .createIndex:
      if statement.kind == .index { return name == statement.name && detail == statement.table }
      // UNIQUE and PRIMARY KEY have indexes that SQLite names.
      return statement.kind == .table && detail == statement.name && action.name.hasPrefix("sqlite_autoindex_")
    case .createView: return statement.kind == .view && name == statement.name
    case .createTrigger: return statement.kind == .trigger && name == statement.name && detail == statement.table
    case .reindex: return statement.kind == .index && name == statement.name
    case .insert, .update, .read, .delete:
      if Self.schemaTables.contains(name) || name == "sqlite_sequence" { return action.cause == nil }
      return action.kind == .read && allowsUse(action)
    case .select, .function: return allowsUse(action)
    case .createVirtualTable, .recursive, .other: return false
    }
  }

  /// True if a statement that sets off views, triggers and defaults may do something.
  func allowsUse(_ action: SQLiteAction) -> Bool {
    guard isInMain(action) else { return false }
    switch action.kind {
    case .select: return true
    case .function: return functions.contains(ASCIIName.folded(action.detail))
    case .read:
      let name = TableName(action.name)
      if tables.contains(name) || Self.tableFunctions.contains(name) { return true }
      // Of a common table expression of which no column is used, SQLite gives the name.
      return action.detail.isEmpty && name.refusal == nil
        && !SQLFunctions.withEffects.contains(ASCIIName.folded(action.name))
    case .insert, .update, .delete: return tables.contains(TableName(action.name))
    case .createTable, .createVirtualTable, .createIndex, .createView, .createTrigger, .reindex, .recursive, .other:
      return false
    }
  }

  private func isInMain(_ action: SQLiteAction) -> Bool { action.schema.isEmpty || action.schema == "main" }

  /// Why the arguments of a virtual table are refused; nil when they are fine. Options such as `content` name tables in quotes.
  static func refusal(ofArguments table: VirtualTableDefinition) -> String? {
    let names = table.arguments.flatMap { SQLReferences(of: $0).names }
    return names.lazy.filter { !$0.text.isEmpty }.compactMap(\.refusal).first
  }
}

/// How often views use each other. SQLite writes a view out wherever it is used, so thirty views that each use the one before twice
/// become a billion, and only to prepare a query never ends.
package struct ViewNesting: Sendable {
  /// How many views one may come to.
  private static let limit = 4_096

  /// Why the views are refused; nil when they are fine.
  package private(set) var refusal: String?

  private var bodies: [TableName: [TableName]] = [:]
  private var sizes: [TableName: Int] = [:]

  /// Counts the views of a schema.
  package init(_ statements: [SchemaStatement]) {
    let views = statements.filter { $0.kind == .view }
    let names = Set(views.map(\.name))
    for view in views {
      let tokens = SQLTokens(view.sql)
      // Behind CREATE VIEW and the view's own name. Rather too many than too few: a column may have a view's name.
      let places = tokens.tokens.indices.dropFirst(3).filter { !tokens.isWord("as", at: $0 - 1) }
      bodies[view.name] = places.compactMap { tokens.name(at: $0) }.map { TableName($0) }.filter(names.contains)
    }
    for view in views where refusal == nil { count(view.name) }
  }

  /// Counts a view and those it uses, without recursion: their chain may be as long as they are many.
  private mutating func count(_ view: TableName) {
    var path: [(name: TableName, next: Int)] = [(view, 0)]
    var open: Set<TableName> = [view]
    while let top = path.last {
      let used = bodies[top.name] ?? []
      if sizes[top.name] != nil || top.next == used.count {
        let size = sizes[top.name] ?? 1 + used.reduce(0) { $0 + (sizes[$1] ?? 0) }
        guard size <= Self.limit else {
          refusal = "the view \(top.name) uses other views more than \(Self.limit) times"
          return
        }
        sizes[top.name] = size
        open.remove(top.name)
        path.removeLast()
        continue
      }
      path[path.count - 1].next += 1
      let next = used[top.next]
      // SQLite itself refuses a view that uses itself.
      if sizes[next] == nil, open.insert(next).inserted { path.append((next, 0)) }
    }
  }
}
