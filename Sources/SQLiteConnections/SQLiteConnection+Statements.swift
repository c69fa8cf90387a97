extension SQLiteConnection {
  /// Prepares one statement.
  ///
  /// - Parameters:
  ///   - sql: One statement.
  ///   - isPersistent: Whether it will be kept and used many times.
  /// - Throws: `SQLiteError` when the text is not a valid statement here.
  package func prepare(_ sql: String, isPersistent: Bool = false) throws(SQLiteError) -> SQLiteStatement {
    try SQLiteStatement(sql, on: handle, isPersistent: isPersistent)
  }

  /// Prepares a statement that this connection keeps, or returns the one it has kept.
  ///
  /// For a small fixed set of statements that are used again and again. Bindings of the last use may still be there. Whoever
  /// steps through a query must reset it, or it keeps its read lock.
  ///
  /// - Throws: `SQLiteError` when the text is not a valid statement here.
  package func cached(_ sql: String) throws(SQLiteError) -> PreparedStatement {
    if let known = cache.statements[sql] { return known }
    let made = PreparedStatement(try prepare(sql, isPersistent: true))
    cache.statements[sql] = made
    return made
  }

  /// The first column of the first row of a cached statement, as an integer; nil when there is no row or it is NULL.
  ///
  /// - Throws: `SQLiteError`, as `cached`.
  package func cachedInteger(_ sql: String) throws(SQLiteError) -> Int64? {
    let query = try cached(sql)
    defer { query.statement.reset() }
    guard try query.statement.step(), !query.statement.isNull(at: 0) else { return nil }
    return query.statement.integer(at: 0)
  }

  /// Runs a cached statement that returns nothing, with values for its parameters.
  ///
  /// - Throws: `SQLiteError`, as `cached`, and when the statement fails.
  package func run(cached sql: String, _ values: (any SQLiteBindable)?...) throws(SQLiteError) {
    let query = try cached(sql)
    for (index, value) in values.enumerated() { try query.statement.bind(value, at: index) }
    try query.statement.run()
  }

  /// Attaches another database file, with the access of this connection.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - schema: The name by which statements refer to it, a plain word.
  /// - Throws: `SQLiteError` when it cannot be opened.
  package func attach(_ path: String, as schema: String) throws(SQLiteError) {
    let statement = try prepare("ATTACH ?1 AS \(schema)")
    try statement.bind(Self.plainName(path), at: 0)
    try statement.run()
  }

  /// Runs a query and passes each row to `row`.
  ///
  /// - Throws: `SQLiteError` from SQLite; whatever `row` throws.
  package func forEachRow(
    of sql: String, binding values: [String] = [], _ row: (borrowing SQLiteStatement) throws -> Void
  ) throws {
    let statement = try prepare(sql)
    for (index, value) in values.enumerated() { try statement.bind(value, at: index) }
    while try statement.step() { try row(statement) }
  }

  /// Runs a cached query and passes each row to `row`, which must not run it again.
  ///
  /// - Throws: `SQLiteError` from SQLite; whatever `row` throws.
  package func forEachRow(
    ofCached sql: String, binding values: [String] = [], _ row: (borrowing SQLiteStatement) throws -> Void
  ) throws {
    let query = try cached(sql)
    defer { query.statement.reset() }
    for (index, value) in values.enumerated() { try query.statement.bind(value, at: index) }
    while try query.statement.step() { try row(query.statement) }
  }

  /// The first column of the first row as an integer; nil when there is no row or it is NULL.
  package func integer(_ sql: String, binding values: [String] = []) throws(SQLiteError) -> Int64? {
    let statement = try prepare(sql)
    for (index, value) in values.enumerated() { try statement.bind(value, at: index) }
    guard try statement.step(), !statement.isNull(at: 0) else { return nil }
    return statement.integer(at: 0)
  }

  /// The first column of the first row as text; nil when there is no row or it is NULL.
  package func text(_ sql: String, binding values: [String] = []) throws(SQLiteError) -> String? {
    let statement = try prepare(sql)
    for (index, value) in values.enumerated() { try statement.bind(value, at: index) }
    guard try statement.step() else { return nil }
    return statement.text(at: 0)
  }
}
