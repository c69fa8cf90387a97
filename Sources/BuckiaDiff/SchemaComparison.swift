import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

/// The schemas of two databases as SQL, for receivers that adopt the newer one.
extension DifferenceBuilder {
  /// Adds the newer schema as SQL for adopting it, if whole databases are compared and their schemas differ, as far as
  /// receivers could create it.
  mutating func addAuthorSchema() throws {
    guard isWhole else { return }
    let (older, newer) = (older.schema, newer.schema)
    let (newest, oldest) = (try newer.statements(), try older.statements())
    // The usual case, in which nothing needs to be checked.
    if newest == oldest { return }
    let (statements, refused) = Self.withoutRefused(newest)
    let (before, _) = Self.withoutRefused(oldest)
    let present = Dictionary(statements.map { ($0.identity, $0) }) { first, _ in first }
    let known = Set(before.map(\.identity))
    let replaced = before.filter { present[$0.identity]?.equalsIgnoringWhiteSpace($0) != true }
    let isDifferent = try replaced.contains { statement in
      try present[statement.identity].map { try !Self.comesToTheSame(statement, $0, older, newer) } ?? true
    }
    guard isDifferent || !statements.allSatisfy({ known.contains($0.identity) }) else { return }
    for item in refused { skip(item.name, .statementRefused, item.reason) }

    guard let statements = try leavingOutRefused(statements, on: newer) else { return }
    let left = Set(statements.map(\.identity))
    // Left-out objects stay unchanged at receivers.
    let gone = replaced.filter { present[$0.identity] == nil || left.contains($0.identity) }
    let entries = try gone.map { statement in
      guard statement.kind == .table, let entry = older.entry(named: statement.name) else {
        return AuthorSchema.Replaced(statement)
      }
      guard present[statement.identity] != nil, let other = newer.entry(named: statement.name) else {
        return AuthorSchema.Replaced(statement, content: try older.content(of: entry))
      }
      guard entry.kind == .table, other.kind == .table else { return AuthorSchema.Replaced(statement) }
      let lost = try older.valuesLost(
        in: newer.definition(of: other), since: older.definition(of: entry), ColumnRenames(options.renames))
      return AuthorSchema.Replaced(statement, content: lost?.content)
    }
    guard try leavingOutRefused(gone.filter { $0.kind == .table }, on: older) != nil else { return }
    let found = AuthorSchema(statements: statements, replaced: entries)
    if let reason = found.refusal {
      skip("sqlite_schema", .statementsRefused, reason)
    } else if documents.reserve(found) {
      author = found
    } else {
      skip("sqlite_schema", .statementsTooLong)
    }
  }

  /// True if two statements of one table differ in their wording only: a table that a diff has made here is worded otherwise.
  /// The same words with other comments are a change of the author's.
  private static func comesToTheSame(
    _ statement: SchemaStatement, _ other: SchemaStatement, _ older: SchemaReader, _ newer: SchemaReader
  ) throws -> Bool {
    guard statement.kind == .table, !statement.makesTheSame(as: other), let entry = older.entry(named: statement.name),
      entry.kind.hasOwnRows,
      let otherEntry = newer.entry(named: other.name), otherEntry.kind.hasOwnRows
    else { return false }
    let (table, otherTable) = (try older.definition(of: entry), try newer.definition(of: otherEntry))
    let hasExpressions = [table, otherTable].contains { table in
      !table.generated.isEmpty || table.columns.contains(where: \.hasExpressionDefault)
    }
    return !hasExpressions && table.isIdentical(to: otherTable)
      && CreateTableParts.checks(in: statement.sql) == CreateTableParts.checks(in: other.sql)
      && CreateTableParts.hasConflictClause(in: statement.sql) == CreateTableParts.hasConflictClause(in: other.sql)
  }

  /// The statements without those that no receiver would run, and without dependent ones.
  private static func withoutRefused(
    _ all: [SchemaStatement]
  ) -> (left: [SchemaStatement], refused: [(name: String, reason: String)]) {
    var left: [SchemaStatement] = []
    var refused: [(name: String, reason: String)] = []
    var missing: Set<TableName> = []
    for statement in all {
      if let reason = statement.refusal {
        refused.append((statement.name.text, reason))
        missing.insert(statement.name)
      } else {
        left.append(statement)
      }
    }
    var count = 0
    // Objects that name a left-out view are left out, too.
    while count < missing.count {
      count = missing.count
      left.removeAll { statement in
        guard statement.kind != .table,
          let other = SQLReferences(of: statement.sql).names.first(where: { missing.contains($0) })
        else { return false }
        refused.append((statement.name.text, "it names \"\(other)\", which they do not get"))
        missing.insert(statement.name)
        return true
      }
    }
    return (left, refused)
  }

  /// The most statements to leave out, each of which costs another try.
  private static let attempts = 64

  /// Tries statements as a receiver would, and leaves out refused indexes, views and triggers, along with dependent
  /// ones. A view may name a dropped table.
  ///
  /// - Returns: nil if that is not enough.
  private mutating func leavingOutRefused(
    _ statements: [SchemaStatement], on schema: SchemaReader
  ) throws -> [SchemaStatement]? {
    let functions = SchemaRehearsal.functions(of: statements)
    var left = statements
    for attempt in 1... {
      do {
        _ = try SchemaRehearsal(of: left, allowing: functions, with: schema.library)
        break
      } catch let error as ReplicationError {
        guard let refused = error.cause as? SchemaRehearsal.RefusedStatement, refused.statement.kind != .table,
          attempt < Self.attempts
        else {
          skip("sqlite_schema", .statementsRefused, error.message)
          return nil
        }
        skip(refused.statement.name.text, .statementRefused, refused.reason)
        left.removeAll { $0.identity == refused.statement.identity }
      }
    }
    return left
  }

  // MARK: Differences between two schemas that are not sent

  /// Names the tables that are in the older database only.
  mutating func reportDroppedTables() {
    for entry in older.schema.entries
    where options.includes(entry.name) && newer.schema.entry(named: entry.name) == nil {
      switch entry.kind {
      case .table, .virtual(_, .own):
        if Replicability.refusal(of: entry) == nil { skip(entry.name.text, .tableDropped) }
      // Its rows are not sent, nor is its removal.
      case .virtual:
        if entry.isUnmade {
          skip(entry.name.text, .notReplicated, SkipReason(.tableDropped).description)
        } else {
          skip(entry.name.text, .tableDropped)
        }
      case .view, .shadow: break
      }
    }
  }

  /// Names new CHECK and ON CONFLICT clauses of the tables that have changed, and foreign keys of new tables to old ones.
  mutating func reportClauses() {
    let created = Set(tables.filter(\.isNew).map { TableName($0.definition.name) })
    for table in tables where table.definition.module == nil {
      let name = TableName(table.definition.name)
      let sql = newer.schema.entry(named: name)?.sql ?? ""
      let olderSQL = table.isNew ? "" : older.schema.entry(named: name)?.sql ?? ""
      if CreateTableParts.checks(in: sql) != CreateTableParts.checks(in: olderSQL) {
        skip(name.text, table.isNew ? .newCheck : .changedCheck)
      }
      guard table.isNew else { continue }
      if CreateTableParts.hasConflictClause(in: sql) { skip(name.text, .conflictClause) }
      for key in table.definition.foreignKeys where !created.contains(TableName(key.parent)) {
        skip(name.text, .foreignKeyToOldTable, key.parent)
      }
    }
  }

  /// Names keys and UNIQUE constraints of new tables that compare a column by another collation than its declared one.
  mutating func reportCollations() throws {
    let query = """
      SELECT i.origin, x.name, x.coll FROM pragma_index_list(?1, 'main') AS i, pragma_index_xinfo(i.name, 'main') AS x
      WHERE i.origin IN ('pk', 'u') AND x.key ORDER BY i.seq DESC, x.seqno
      """
    for table in tables where table.isNew && table.definition.module == nil {
      let definition = table.definition
      try newer.source.connection.forEachRow(of: query, binding: [definition.name]) { row in
        guard let place = definition.column(named: row.text(at: 1) ?? "") else { return }
        let column = definition.columns[place]
        let collation = row.text(at: 2) ?? ""
        if ASCIIName.matches(column.collation, collation) { return }
        skip(definition.name, row.text(at: 0) == "pk" ? .keyCollation : .uniqueCollation, column.name, collation)
      }
    }
  }

  /// Names indexes, triggers and views that are new, have changed or were dropped.
  ///
  /// Objects that were dropped with their table are not reported, nor are those of our own tables.
  mutating func reportObjects() throws {
    let known = try Self.objects(of: older.source.connection)
    let present = try Self.objects(of: newer.source.connection)
    let knownSQL = Dictionary(known.map { ($0.key, $0.sql) }) { first, _ in first }
    for object in present {
      let sql = knownSQL[object.key]
      if sql != object.sql { skip(object.name, sql == nil ? .newObject : .changedObject, object.type) }
    }
    let presentKeys = Set(present.map(\.key))
    for object in known where !presentKeys.contains(object.key) {
      guard object.type == "view" || newer.schema.entry(named: object.table) != nil else { continue }
      skip(object.name, .droppedObject, object.type)
    }
  }

  /// The indexes, triggers and views of a database: `table` is that of an index or a trigger, and a view itself; `key` are type and name as
  /// bytes, since names that Swift takes for equal can be those of two objects.
  private static func objects(
    of connection: borrowing SQLiteConnection
  ) throws -> [(type: String, name: String, table: TableName, sql: [UInt8], key: [UInt8])] {
    let query = """
      SELECT type, name, tbl_name, sql FROM main.sqlite_schema
      WHERE type IN ('index', 'trigger', 'view') AND sql IS NOT NULL ORDER BY type, name
      """
    return try connection.rows(of: query) { row in
      (
        row.text(at: 0) ?? "", row.text(at: 1) ?? "", TableName(row.text(at: 2) ?? ""), Array(row.textBytes(at: 3)),
        Array(row.textBytes(at: 0)) + [0] + Array(row.textBytes(at: 1))
      )
    }.filter { !Replicability.isOwn($0.table) }
  }
}

extension DiffOptions {
  /// True if a table is compared.
  func includes(_ table: TableName) -> Bool {
    !excludedTables.contains(table) && tables?.contains(table) ?? true
  }
}
