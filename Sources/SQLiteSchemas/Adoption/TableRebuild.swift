import BuckiaBytes
import SQLiteConnections

/// Makes a table again by its author's statement, with the rows it has: the way that SQLite's documentation describes for changes
/// that ALTER TABLE cannot make (<https://sqlite.org/lang_altertable.html#otheralter>).
///
/// The old table gets another name and the new one its own, so that the statement runs as it stands. Renames must be plain
/// meanwhile (``SQLiteConnection/withPlainTableRenames(_:)``): no view, trigger or foreign key is then rewritten to follow the old
/// table. Indexes and triggers of the table, those of TEMP included, are made again by their own statements.
struct TableRebuild: Sendable {
  /// The author's statement.
  let statement: SchemaStatement
  /// The table as the author has it.
  private let definition: TableDefinition
  /// The table as it is here.
  private let local: TableDefinition
  /// For each column of `definition` what its values come from, as SQL: a column of the old table, or the literal that rows which were
  /// there get in a new column, as the author's comparison assumes it.
  private let sources: [(sql: String, isColumn: Bool)]

  /// The name of the old table meanwhile.
  private static let oldName = "main.buckia_replaced"
  private static let takeBack = "ROLLBACK TO buckia_rebuild; RELEASE buckia_rebuild"

  /// - Throws: `ReplicationError` with `columnsDiffer` when values would be lost that are only here.
  init(
    _ statement: SchemaStatement, as definition: TableDefinition, from local: TableDefinition,
    knownColumns: TableDefinition?, renames: ColumnRenames
  ) throws {
    self.statement = statement
    self.definition = definition
    self.local = local
    let names = ColumnLookup(definition.columns)
    let localNames = ColumnLookup(local.columns)
    var kept: Set<Int> = []
    sources = try definition.columns.map { column in
      let others = renames.otherNames(of: column.name, in: TableName(definition.name)).lazy.filter { names[$0] == nil }
      if let place = localNames[column.name] ?? others.compactMap({ localNames[$0] }).first {
        kept.insert(place)
        return (SQLText.identifier(local.columns[place].name), true)
      }
      return (try AddedColumnValue.literal(of: column, isStrict: definition.isStrict), false)
    }
    for (place, column) in local.columns.enumerated() where !kept.contains(place) {
      guard knownColumns?.column(named: column.name) != nil else {
        throw ReplicationError(
          .columnsDiffer,
          "column \"\(local.name).\(column.name)\" is only here, and its values would be lost with the author's schema; "
            + "drop it first, or apply without adopting the schema", table: local.name, column: column.name)
      }
    }
  }

  private init(_ other: TableRebuild, from local: TableDefinition) {
    statement = other.statement
    definition = other.definition
    self.local = local
    sources = other.definition.columns.map { (SQLText.identifier($0.name), true) }
  }

  /// What it does, for people.
  var description: String { "rebuild table \(statement.name)" }

  // MARK: Running

  /// Rebuilds the table.
  ///
  /// - Returns: Nil when all rows fit. If not, the table has the author's columns now, none of the constraints, and no indexes:
  ///   ``finish(_:on:)`` must follow when the rows have been changed.
  /// - Throws: `ReplicationError` when rows do not even fit the key; `SQLiteError`.
  func run(on connection: borrowing SQLiteConnection) throws -> Rest? {
    let dependents = try TableDependents(of: TableName(local.name), on: connection)
    let counter = try self.counter(on: connection)
    if try attempt(statement.sql, dependents, counter, on: connection) == nil { return nil }
    let sql = relaxedDefinition.createStatement(siblings: [])
    if let failure = try attempt(sql, dependents.withoutIndexes, nil, on: connection) { throw failure }
    return (dependents.indexes, counter)
  }

  /// What is left to do for a table whose rows did not fit yet: what its indexes are made with, and the counter of AUTOINCREMENT.
  typealias Rest = (indexes: [SchemaStatement], counter: Int64?)

  /// Gives a table that ``run(on:)`` has left without constraints those of its author.
  ///
  /// - Throws: `ReplicationError` with `refusedDefinition` for the first row that does not fit.
  func finish(_ rest: Rest, on connection: borrowing SQLiteConnection) throws {
    let last = TableRebuild(self, from: relaxedDefinition)
    let dependents = try TableDependents(of: statement.name, on: connection).adding(rest.indexes)
    if let failure = try last.attempt(statement.sql, dependents, rest.counter, on: connection) { throw failure }
  }

  /// The table with its columns and its key, and nothing else: no constraint refuses a row, no type alters a value, and the key tells
  /// apart what differs in any byte. It is never the rowid, so that it can hold NULL.
  private var relaxedDefinition: TableDefinition {
    TableDefinition(
      name: definition.name,
      columns: definition.columns.map { ColumnDefinition(name: $0.name, defaultValue: $0.defaultValue) },
      primaryKey: definition.primaryKey)
  }

  /// Makes the table by a statement and copies the rows.
  ///
  /// - Returns: Nil when that is done; else why a row does not fit, and nothing has changed.
  private func attempt(
    _ sql: String, _ dependents: TableDependents, _ counter: Int64?, on connection: borrowing SQLiteConnection
  ) throws -> ReplicationError? {
    try connection.execute("SAVEPOINT buckia_rebuild")
    do {
      let failure = try rebuild(sql, dependents, counter, on: connection)
      try connection.execute(failure == nil ? "RELEASE buckia_rebuild" : Self.takeBack)
      return failure
    } catch {
      // A full disk may have ended the transaction.
      throw cleaningUp(after: error) { if connection.isInTransaction { try connection.execute(Self.takeBack) } }
    }
  }

  private func rebuild(
    _ sql: String, _ dependents: TableDependents, _ counter: Int64?, on connection: borrowing SQLiteConnection
  ) throws -> ReplicationError? {
    try dependents.drop(on: connection)
    try connection.execute("ALTER TABLE main.\(SQLText.identifier(local.name)) RENAME TO buckia_replaced")
    try connection.execute(sql)
    if let failure = try refusalOfNullKey(making: sql, on: connection) { return failure }
    do throws(SQLiteError) {
      try connection.execute(copying())
    } catch {
      guard error.isAboutTheStatement else { throw error }
      return try refusal(of: error, on: connection)
    }
    try connection.execute("DROP TABLE \(Self.oldName)")
    if definition.isAutoIncrement, let counter { try keep(counter, on: connection) }
    return try dependents.make(on: connection)
  }

  private func copying(where condition: String? = nil) -> String {
    var targets = definition.columns.map { SQLText.identifier($0.name) }
    var values = sources.map(\.sql)
    if let rowIDs {
      targets.append(rowIDs.target)
      values.append(rowIDs.source)
    }
    return "INSERT OR ABORT INTO main.\(statement.name.quoted) (\(targets.joined(separator: ", "))) "
      + "SELECT \(values.joined(separator: ", ")) FROM \(Self.oldName)" + (condition.map { " WHERE \($0)" } ?? "")
  }

  /// The names of the rowids, where both tables have one that is no column: other tables may refer to it, and full-text
  /// indexes do.
  private var rowIDs: (target: String, source: String)? {
    guard rowIDColumn(of: definition) == nil, !definition.isWithoutRowID, !local.isWithoutRowID,
      let target = definition.rowIDName,
      let source = local.rowIDName
    else { return nil }
    return (target, source)
  }

  /// The column that is the rowid itself.
  private func rowIDColumn(of table: TableDefinition) -> Int? {
    guard table.primaryKey.count == 1, !table.isWithoutRowID,
      ASCIIName.matches(table.columns[table.primaryKey[0]].declaredType, "INTEGER")
    else { return nil }
    return table.primaryKey[0]
  }

  /// Refuses NULL for a rowid, of which SQLite would make any number.
  private func refusalOfNullKey(
    making sql: String, on connection: borrowing SQLiteConnection
  ) throws -> ReplicationError? {
    guard sql.utf8.elementsEqual(statement.sql.utf8), let place = rowIDColumn(of: definition),
      sources[place].isColumn,
      try connection.integer("SELECT 1 FROM \(Self.oldName) WHERE \(sources[place].sql) IS NULL LIMIT 1") != nil
    else { return nil }
    return refusal("NULL in the primary key \(definition.columns[place].name)")
  }

  // MARK: The counter of AUTOINCREMENT

  private func counter(on connection: borrowing SQLiteConnection) throws -> Int64? {
    guard local.isAutoIncrement else { return nil }
    return try connection.integer("SELECT seq FROM main.sqlite_sequence WHERE name = ?1", binding: [local.name])
  }

  /// Keeps ids from being given out twice.
  private func keep(_ counter: Int64, on connection: borrowing SQLiteConnection) throws {
    let name = SQLText.literal(statement.name.text)
    try connection.execute(
      """
      INSERT INTO main.sqlite_sequence(name, seq) SELECT \(name), \(counter)
      WHERE NOT EXISTS (SELECT 1 FROM main.sqlite_sequence WHERE name = \(name));
      UPDATE main.sqlite_sequence SET seq = max(seq, \(counter)) WHERE name = \(name)
      """)
  }

  // MARK: Rows that do not fit

  /// Names the first row that does not fit: the rows are tried one by one, in an empty table.
  private func refusal(
    of error: SQLiteError, on connection: borrowing SQLiteConnection
  ) throws -> ReplicationError {
    let identity = local.isKeyedByRowID ? [local.rowIDName ?? "rowid"] : local.keySQL
    let condition = identity.indices.map { "\(identity[$0]) IS ?\($0 + 1)" }.joined(separator: " AND ")
    let copy = try connection.prepare(copying(where: condition))
    let rows = try connection.prepare("SELECT \(identity.joined(separator: ", ")) FROM \(Self.oldName)")
    while try rows.step() {
      for place in identity.indices { try copy.bind(column: place, of: rows, at: place) }
      guard let message = try failure(of: copy) else { continue }
      let row = try shown(rows, identity, on: connection)
      return refusal("\(message) for the row with \(row)")
    }
    return refusal(error.message)
  }

  /// Why a row cannot be copied; nil when it can.
  private func failure(of copy: borrowing SQLiteStatement) throws -> String? {
    do throws(SQLiteError) {
      return try copy.attempt() == nil ? nil : copy.lastMessage
    } catch {
      guard error.isAboutTheStatement else { throw error }
      return error.message
    }
  }

  private func refusal(_ reason: String) -> ReplicationError {
    ReplicationError(
      .refusedDefinition,
      "table \"\(statement.name)\" cannot be made as its author has it, since a row here does not fit: \(reason)",
      table: statement.name.text)
  }

  private func shown(
    _ row: borrowing SQLiteStatement, _ identity: [String], on connection: borrowing SQLiteConnection
  ) throws -> String {
    let quoting = try connection.prepare("SELECT quote(?1)")
    var parts: [String] = []
    for place in identity.indices {
      try quoting.bind(column: place, of: row, at: 0)
      let value = try quoting.step() ? quoting.text(at: 0) ?? "" : ""
      quoting.reset()
      parts.append("\(identity[place]) = \(EscapedText.line(String(value.prefix(200))))")
    }
    return parts.joined(separator: ", ")
  }
}

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
    present = try connection.rows(of: query, table.text) { SchemaStatement($0) }.compactMap { $0 }
    wanted = present
    let ofTemporary = "SELECT name, sql FROM temp.sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE"
    temporary = try connection.rows(of: ofTemporary, table.text) { row in
      // SQLite stores it without the word TEMP.
      (row.text(at: 0) ?? "", "CREATE TEMP \((row.text(at: 1) ?? "").dropFirst("CREATE ".count))")
    }
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
      if let reason = try connection.failure(ofRunning: statement.sql) { return refusal(statement, reason) }
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
