import BuckiaBytes
import CBuckiaSQLite

extension SQLiteConnection {
  /// Prepares one statement.
  ///
  /// - Parameters:
  ///   - sql: One statement.
  ///   - isPersistent: True if it will be kept and used many times.
  /// - Throws: `SQLiteError` when the text is not a valid statement here.
  package func prepare(_ sql: String, isPersistent: Bool = false) throws(SQLiteError) -> SQLiteStatement {
    try SQLiteStatement(sql, on: handle, isPersistent: isPersistent)
  }

  /// Prepares a statement that this connection keeps, or returns the one it has kept.
  ///
  /// For a small fixed set of statements that are used again and again. Bindings of the last use may still be there. A query that
  /// was stepped through must be reset, or it keeps its read lock.
  ///
  /// - Throws: `SQLiteError` when the text is not a valid statement here.
  package func cached(_ sql: String) throws(SQLiteError) -> PreparedStatement {
    if let known = handle.statements[sql] { return known }
    let made = PreparedStatement(try prepare(sql, isPersistent: true))
    handle.statements[sql] = made
    return made
  }

  /// The first column of the first row of a cached statement, as an integer; nil if there is no row or it is NULL.
  ///
  /// - Throws: `SQLiteError`, as `cached`.
  package func cachedInteger(_ sql: String, _ values: (any SQLiteBindable)?...) throws(SQLiteError) -> Int64? {
    let query = try cached(sql)
    defer { query.statement.reset() }
    try query.statement.bind(values)
    guard try query.statement.step(), !query.statement.isNull(at: 0) else { return nil }
    return query.statement.integer(at: 0)
  }

  /// Runs a cached statement that returns nothing, with values for its parameters.
  ///
  /// - Throws: `SQLiteError`, as `cached`, and when the statement fails.
  package func run(cached sql: String, _ values: (any SQLiteBindable)?...) throws(SQLiteError) {
    let query = try cached(sql)
    try query.statement.bind(values)
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

  /// Runs a cached query for its first row, with values for its parameters.
  ///
  /// - Returns: What `row` makes of it; nil if there is no row.
  /// - Throws: `SQLiteError` from SQLite; whatever `row` throws.
  package func first<Value>(
    ofCached sql: String, _ values: (any SQLiteBindable)?..., row: (borrowing SQLiteStatement) throws -> Value
  ) throws -> Value? {
    let query = try cached(sql)
    defer { query.statement.reset() }
    try query.statement.bind(values)
    return try query.statement.step() ? row(query.statement) : nil
  }

  /// True if a cached query has a row.
  ///
  /// - Throws: `SQLiteError`, as `cached`, and when the query fails.
  package func hasRow(cached sql: String, _ values: (any SQLiteBindable)?...) throws(SQLiteError) -> Bool {
    let query = try cached(sql)
    defer { query.statement.reset() }
    try query.statement.bind(values)
    return try query.statement.step()
  }

  /// Runs a query and returns the result of `row` for each row.
  ///
  /// - Throws: `SQLiteError` from SQLite; whatever `row` throws.
  package func rows<Value>(
    of sql: String, _ values: (any SQLiteBindable)?..., row: (borrowing SQLiteStatement) throws -> Value
  ) throws -> [Value] {
    var found: [Value] = []
    try forEachRow(of: sql, binding: values) { found.append(try row($0)) }
    return found
  }

  /// Runs a cached query and returns the result of `row` for each row. `row` must not run the same query.
  ///
  /// - Throws: `SQLiteError` from SQLite; whatever `row` throws.
  package func rows<Value>(
    ofCached sql: String, _ values: (any SQLiteBindable)?..., row: (borrowing SQLiteStatement) throws -> Value
  ) throws -> [Value] {
    var found: [Value] = []
    try forEachRow(ofCached: sql, binding: values) { found.append(try row($0)) }
    return found
  }

  /// Runs a query and passes each row to `row`.
  ///
  /// - Throws: `SQLiteError` from SQLite; whatever `row` throws.
  package func forEachRow(
    of sql: String, binding values: [(any SQLiteBindable)?] = [], _ row: (borrowing SQLiteStatement) throws -> Void
  ) throws {
    let statement = try prepare(sql)
    try statement.bind(values)
    while try statement.step() { try row(statement) }
  }

  /// Runs a cached query and passes each row to `row`, which must not run it again.
  ///
  /// - Throws: `SQLiteError` from SQLite; whatever `row` throws.
  package func forEachRow(
    ofCached sql: String, binding values: [(any SQLiteBindable)?] = [],
    _ row: (borrowing SQLiteStatement) throws -> Void
  ) throws {
    let query = try cached(sql)
    defer { query.statement.reset() }
    try query.statement.bind(values)
    while try query.statement.step() { try row(query.statement) }
  }

  /// The first column of the first row as an integer; nil if there is no row or it is NULL.
  package func integer(_ sql: String, binding values: [(any SQLiteBindable)?] = []) throws(SQLiteError) -> Int64? {
    let statement = try prepare(sql)
    try statement.bind(values)
    guard try statement.step(), !statement.isNull(at: 0) else { return nil }
    return statement.integer(at: 0)
  }

  /// The first column of the first row as text; nil if there is no row or it is NULL.
  package func text(_ sql: String, binding values: [(any SQLiteBindable)?] = []) throws(SQLiteError) -> String? {
    let statement = try prepare(sql)
    try statement.bind(values)
    guard try statement.step() else { return nil }
    return statement.text(at: 0)
  }

  /// The first damage that SQLite finds in the database; nil for none. Rows that break a constraint are no damage.
  ///
  /// - Parameter comparesIndexes: True if the order of indexes is checked, too.
  package func damage(comparingIndexes comparesIndexes: Bool = false) throws(SQLiteError) -> String? {
    let statement = try prepare("PRAGMA main.\(comparesIndexes ? "integrity_check" : "quick_check")")
    var isChecked = false
    while try statement.step() {
      isChecked = true
      let line = Self.line(ofCheck: statement.text(at: 0) ?? "")
      let isConstraint = line.hasPrefix("CHECK constraint failed in") || line.contains(" value in ")
      if line != "ok", !isConstraint { return line }
    }
    return isChecked ? nil : "it cannot be checked"
  }

  /// The sentence in a finding of `PRAGMA quick_check`, without the line that names the database.
  private static func line(ofCheck found: String) -> String {
    found.split(separator: "\n").first { !$0.hasPrefix("***") }.map(String.init) ?? found
  }

  /// Requires that all b-trees can be read, also those that the work at hand does not read: a copy of a damaged page is damaged, too,
  /// and a comparison of the two does not notice it.
  ///
  /// Rows that break a constraint, and an index of a virtual table that does not match its rows, are no damage.
  ///
  /// - Parameter poll: May throw to stop. It must not use the connection.
  /// - Throws: `SQLiteError` that is corrupt and says where; what `poll` throws.
  package func requireUndamagedPages(polling poll: () throws -> Void = {}) throws {
    let found: String?
    do {
      found = try polling(poll) { try text("PRAGMA main.quick_check(1)") }
    } catch let error as SQLiteError where error.primaryCode == SQLITE_ERROR {
      // An index needs a function or collating sequence of the app.
      return
    }
    // Findings about pages come before those about rows, and begin with "*** in database main ***".
    let malformed = handle.routines.errstr(SQLITE_CORRUPT).map { String(cString: $0) }
    guard let found, found.hasPrefix("***") || found == malformed else { return }
    throw SQLiteError(code: SQLITE_CORRUPT, message: Self.line(ofCheck: found), path: path)
  }

  /// Requires that the pages of all tables can be read. It finds less than ``requireUndamagedPages(polling:)``, neither damage in an
  /// index nor a row that cannot be decoded, and takes a tenth of the time.
  ///
  /// - Parameter poll: May throw to stop. It must not use the connection.
  /// - Throws: `SQLiteError` that is corrupt and names the table; what `poll` throws.
  package func requireReadableTables(polling poll: () throws -> Void = {}) throws {
    // A setting of an app's connection is the app's.
    if !handle.isBorrowed { try execute("PRAGMA cell_size_check = ON") }
    let query = "SELECT printf('\"%w\"', name) FROM main.sqlite_schema WHERE type = 'table' AND rootpage > 0"
    for table in try rows(of: query, row: { $0.text(at: 0) ?? "" }) {
      do {
        _ = try polling(poll) { try integer("SELECT count(*) FROM main.\(table) NOT INDEXED") }
      } catch let error as SQLiteError where error.isCorrupt {
        throw SQLiteError(code: error.code, message: "\(error.message), in table \(EscapedText(table))", path: path)
      }
    }
  }

  /// The number of SQLite's virtual-machine instructions between two polls: some milliseconds.
  private static let instructionsPerPoll: Int32 = 100_000

  /// Keeps the error of a poll until the statement has ended.
  private final class Poll {
    let body: () throws -> Void
    var error: (any Error)?

    init(_ body: @escaping () throws -> Void) { self.body = body }
  }

  /// Runs one or more long statements, and calls `poll` from time to time, which can throw to stop them.
  ///
  /// On a connection of the app's nothing is asked: it may have a
  /// [progress handler](https://sqlite.org/c3ref/progress_handler.html) of its own, of which there can be only one.
  ///
  /// - Parameters:
  ///   - sql: The statements.
  ///   - poll: May throw to stop. It must not use the connection.
  /// - Throws: What `poll` throws, else `SQLiteError`. A statement that is stopped rolls back the whole transaction.
  package func execute(_ sql: String, polling poll: () throws -> Void) throws {
    try polling(poll) { try execute(sql) }
  }

  private func polling<Value>(_ poll: () throws -> Void, _ statements: () throws -> Value) throws -> Value {
    guard !handle.isBorrowed else { return try statements() }
    return try withoutActuallyEscaping(poll) { body in
      let poll = Poll(body)
      let routines = handle.routines
      // Sound: the object outlives the handler, which is removed before this returns.
      let context = Unmanaged.passUnretained(poll).toOpaque()
      routines.progress_handler(handle.pointer, Self.instructionsPerPoll, Self.call, context)
      let result = Result { try statements() }
      routines.progress_handler(handle.pointer, 0, nil, nil)
      if let error = poll.error { throw error }
      return try result.get()
    }
  }

  private static let call: @convention(c) (UnsafeMutableRawPointer?) -> Int32 = { context in
    guard let context else { return 0 }
    let poll = Unmanaged<Poll>.fromOpaque(context).takeUnretainedValue()
    guard poll.error == nil else { return 1 }
    do {
      try poll.body()
      return 0
    } catch {
      poll.error = error
      return 1
    }
  }
}
