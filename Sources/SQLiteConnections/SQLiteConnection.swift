import CBuckiaSQLite

/// One connection to a database: an owning handle over `sqlite3 *`.
///
/// A connection has one owner and is used from one thread at a time. It closes when it goes out of scope; statements
/// made from it keep the file open until they are gone too (`sqlite3_close_v2`).
///
/// ```swift
/// let connection = try SQLiteConnection(opening: "notes.sqlite", as: .readWrite)
/// try connection.execute("CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT)")
/// ```
public struct SQLiteConnection: ~Copyable {
  /// What the connection may do with its file.
  public enum Access: Sendable {
    /// Read only. The file must exist.
    case readOnly
    /// Read only, and nobody writes meanwhile: no locks, no WAL index. For databases on read-only volumes.
    case immutable
    /// Read and write. The file must exist.
    case readWrite
    /// Read and write, made when it does not exist.
    case create
  }

  let handle: OpaquePointer
  private let isOwned: Bool
  private let cache = StatementCache()

  /// The file's path as it was given, for messages; `:memory:` for a database in memory.
  public let path: String

  /// Opens a database file.
  ///
  /// SQLite reads the file only when the first statement runs: that is when damage or another format is noticed.
  ///
  /// - Parameters:
  ///   - path: The file, or `:memory:`.
  ///   - access: What the connection may do.
  ///   - busyTimeout: How long to wait for another connection's lock, in milliseconds.
  /// - Throws: `SQLiteError` when the file cannot be opened.
  public init(opening path: String, as access: Access, busyTimeout: Int32 = 10_000) throws(SQLiteError) {
    var flags: Int32 = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    var name = path
    switch access {
    case .readOnly: flags |= SQLITE_OPEN_READONLY
    case .immutable:
      flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
      // With an authority, though an empty one, because a path that begins with two slashes would name one.
      name = "file:\(path.hasPrefix("/") ? "//" : "")\(Self.percentEncoded(path))?immutable=1"
    case .readWrite: flags |= SQLITE_OPEN_READWRITE
    case .create: flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
    }
    if access != .immutable { name = Self.plainName(path) }
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(name, &opened, flags, nil)
    guard code == SQLITE_OK, let handle = opened else {
      let error = SQLiteError(handle: opened, code: code, path: path)
      sqlite3_close_v2(opened)
      throw error
    }
    sqlite3_busy_timeout(handle, busyTimeout)
    self.handle = handle
    self.path = path
    isOwned = true
  }

  private init(borrowed handle: OpaquePointer) {
    self.handle = handle
    isOwned = false
    path = sqlite3_db_filename(handle, "main").map { String(cString: $0) } ?? ""
  }

  /// Shares the handle of another connection, which must outlive this one and closes it. Each keeps statements of its own.
  package init(sharing other: borrowing SQLiteConnection) {
    handle = other.handle
    path = other.path
    isOwned = false
  }

  deinit {
    cache.statements = [:]
    if isOwned { sqlite3_close_v2(handle) }
  }

  /// Works on a connection that belongs to the application: GRDB, SQLite.swift, plain C.
  ///
  /// The handle stays the application's and is not closed; a transaction it has open stays open.
  ///
  /// - Parameters:
  ///   - handle: The application's `sqlite3 *`.
  ///   - sourceID: What `sqlite3_sourceid()` returns where the handle was made. Two copies of SQLite in one process must
  ///     not share a handle; when the pointers differ this throws.
  ///   - body: What to do. The connection must not be kept beyond it.
  /// - Throws: `SQLiteError` for a handle of another copy of SQLite; whatever `body` throws.
  public static func borrowing<Result>(
    _ handle: OpaquePointer, sourceID: UnsafePointer<CChar>? = nil,
    _ body: (borrowing SQLiteConnection) throws -> Result
  ) throws -> Result {
    if let sourceID, sourceID != sqlite3_sourceid() {
      throw SQLiteError(
        code: SQLITE_MISUSE,
        message: "this connection belongs to another copy of SQLite in the same process; link both to one copy")
    }
    return try body(SQLiteConnection(borrowed: handle))
  }

  /// A file name that SQLite takes for one: a relative path that happens to begin with "file:" is no URI.
  static func plainName(_ path: String) -> String { path.hasPrefix("file:") ? "./\(path)" : path }

  /// Attaches another database file, read or written as this connection is.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - schema: The name by which statements call it, a plain word.
  /// - Throws: `SQLiteError` when it cannot be opened.
  public func attach(_ path: String, as schema: String) throws(SQLiteError) {
    let statement = try prepare("ATTACH ?1 AS \(schema)")
    try statement.bind(Self.plainName(path), at: 0)
    try statement.run()
  }

  private static func percentEncoded(_ path: String) -> String {
    var encoded = ""
    for byte in path.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2f, 0x2d, 0x2e, 0x5f:
        encoded.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        let digits = Array("0123456789ABCDEF")
        encoded += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
      }
    }
    return encoded
  }

  /// The error SQLite reported last on this connection.
  func lastError(_ code: Int32, sql: String? = nil) -> SQLiteError {
    SQLiteError(handle: handle, code: code, path: path, sql: sql)
  }

  /// Gives SQLite's words about the last call that failed to `body`, as UTF-8; they are gone with the next call.
  public func withLastMessage<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    guard let message = sqlite3_errmsg(handle) else { return try body(UnsafeRawBufferPointer(start: nil, count: 0)) }
    var count = 0
    while message[count] != 0 { count += 1 }
    // Sound: the text ends with a NUL and stays until another call, which `body` must not make.
    return try body(UnsafeRawBufferPointer(start: message, count: count))
  }

  /// Runs one or more statements that return nothing.
  ///
  /// - Throws: `SQLiteError`; statements before the failing one have taken effect.
  public func execute(_ sql: String) throws(SQLiteError) {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw lastError(code, sql: sql) }
  }

  /// Prepares one statement.
  ///
  /// - Parameters:
  ///   - sql: One statement.
  ///   - isPersistent: Whether it will be kept and used many times.
  /// - Throws: `SQLiteError` when the text is no valid statement here.
  public func prepare(_ sql: String, isPersistent: Bool = false) throws(SQLiteError) -> SQLiteStatement {
    try SQLiteStatement(sql, on: self, isPersistent: isPersistent)
  }

  /// Prepares a statement that this connection keeps, or takes the one it has kept.
  ///
  /// For the statements of a fixed small set that are needed again and again. Bindings of the last use may still be
  /// there. Whoever steps a query must reset it, or it keeps its read lock.
  ///
  /// - Throws: `SQLiteError` when the text is no valid statement here.
  public func cached(_ sql: String) throws(SQLiteError) -> SQLiteCachedStatement {
    if let known = cache.statements[sql] { return known }
    let made = SQLiteCachedStatement(try prepare(sql, isPersistent: true))
    cache.statements[sql] = made
    return made
  }

  /// The first column of the first row of a statement that is kept, as an integer; nil when there is no row or it is NULL.
  ///
  /// - Throws: `SQLiteError`, as `cached`.
  public func cachedInteger(_ sql: String) throws(SQLiteError) -> Int64? {
    let query = try cached(sql)
    defer { query.statement.reset() }
    guard try query.statement.step(), !query.statement.isNull(at: 0) else { return nil }
    return query.statement.integer(at: 0)
  }

  /// The most parameters that a statement may have.
  public var parameterLimit: Int { Int(sqlite3_limit(handle, SQLITE_LIMIT_VARIABLE_NUMBER, -1)) }

  /// The most columns that a table, or the result of a query, may have.
  public var columnLimit: Int { Int(sqlite3_limit(handle, SQLITE_LIMIT_COLUMN, -1)) }

  /// The most bytes that a value or a row may have.
  public var lengthLimit: Int { Int(sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, -1)) }

  /// Whether a transaction is open.
  public var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

  /// What the open transaction has done with the database `main`. See <https://sqlite.org/c3ref/txn_state.html>.
  package enum TransactionState {
    /// It has not read anything yet, or no transaction is open.
    case none
    /// It has read, so it sees one state of the database for as long as it lasts.
    case read
    /// It has changed something that is not committed.
    case write
  }

  /// What the open transaction has done with the database `main`.
  package var transactionState: TransactionState {
    switch sqlite3_txn_state(handle, "main") {
    case SQLITE_TXN_WRITE: .write
    case SQLITE_TXN_READ: .read
    default: .none
    }
  }

  /// How many rows the last INSERT, UPDATE or DELETE changed itself; triggers and foreign-key actions not counted.
  public var changes: Int { Int(sqlite3_changes64(handle)) }

  /// How many rows all statements of this connection have changed, triggers and foreign-key actions included.
  public var totalChanges: Int { Int(sqlite3_total_changes64(handle)) }

  /// Whether a deferred foreign key is violated just now in the open transaction.
  ///
  /// See [`SQLITE_DBSTATUS_DEFERRED_FKS`](https://sqlite.org/c3ref/c_dbstatus_options.html).
  public var hasDeferredForeignKeyViolations: Bool {
    var current: Int32 = 0
    var highest: Int32 = 0
    sqlite3_db_status(handle, SQLITE_DBSTATUS_DEFERRED_FKS, &current, &highest, 0)
    return current != 0
  }

  /// The version of the SQLite library in use, such as `3.40.1`.
  public static var libraryVersion: String { String(cString: sqlite3_libversion()) }

  /// Whether triggers fire on this connection (TEMP triggers fire always).
  public var triggersEnabled: Bool {
    get throws(SQLiteError) { try flag(SQLITE_DBCONFIG_ENABLE_TRIGGER, set: -1) }
  }

  /// Switches triggers on or off for this connection.
  ///
  /// See [`SQLITE_DBCONFIG_ENABLE_TRIGGER`](https://sqlite.org/c3ref/c_dbconfig_defensive.html).
  public func enableTriggers(_ enabled: Bool) throws(SQLiteError) {
    _ = try flag(SQLITE_DBCONFIG_ENABLE_TRIGGER, set: enabled ? 1 : 0)
  }

  /// Makes functions and virtual tables named in the schema of an untrusted file harmless:
  /// [`PRAGMA trusted_schema`](https://sqlite.org/pragma.html#pragma_trusted_schema) off.
  public func distrustSchema() throws(SQLiteError) {
    _ = try flag(SQLITE_DBCONFIG_TRUSTED_SCHEMA, set: 0)
  }

  /// Runs `body` while SQLite takes a double-quoted word for a name only.
  ///
  /// Otherwise it takes a name that it does not know for text (<https://sqlite.org/quirks.html#dblquote>).
  package func withoutDoubleQuotedText<Result>(_ body: () throws -> Result) throws -> Result {
    let isAllowed = try flag(SQLITE_DBCONFIG_DQS_DML, set: -1)
    _ = try flag(SQLITE_DBCONFIG_DQS_DML, set: 0)
    let result = Swift.Result(catching: body)
    _ = try flag(SQLITE_DBCONFIG_DQS_DML, set: isAllowed ? 1 : 0)
    return try result.get()
  }

  private func flag(_ option: Int32, set value: Int32) throws(SQLiteError) -> Bool {
    var result: Int32 = 0
    let code = buckia_db_config_flag(handle, option, value, &result)
    guard code == SQLITE_OK else { throw lastError(code) }
    return result != 0
  }

  /// What SQLite knows of a column beyond `PRAGMA table_xinfo`: its collating sequence and AUTOINCREMENT.
  ///
  /// - Throws: `SQLiteError` when there is no such column.
  public func columnMetadata(
    schema: String = "main", table: String, column: String
  ) throws(SQLiteError) -> (collation: String, isAutoIncrement: Bool) {
    var collation: UnsafePointer<CChar>?
    var isAutoIncrement: Int32 = 0
    let code = sqlite3_table_column_metadata(
      handle, schema, table, column, nil, &collation, nil, nil, &isAutoIncrement)
    guard code == SQLITE_OK else { throw lastError(code) }
    return (collation.map { String(cString: $0) } ?? "BINARY", isAutoIncrement != 0)
  }
}

/// A statement that its connection keeps for the next time.
public final class SQLiteCachedStatement {
  /// The statement.
  public let statement: SQLiteStatement

  fileprivate init(_ statement: consuming SQLiteStatement) { self.statement = statement }
}

private final class StatementCache {
  var statements: [String: SQLiteCachedStatement] = [:]
}
