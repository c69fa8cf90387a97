import BuckiaBytes
import CBuckiaSQLite

/// One connection to a database: an owning handle over `sqlite3 *`.
///
/// A connection has one owner and is used from one thread at a time. It closes when it goes out of scope; the file stays
/// open until its statements are gone as well (`sqlite3_close_v2`).
///
/// ```swift
/// let connection = try SQLiteConnection(opening: "notes.sqlite", as: .readWrite)
/// try connection.execute("CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT)")
/// ```
package struct SQLiteConnection: ~Copyable {
  /// The access to the file.
  package enum Access: Sendable {
    /// Read only. The file must exist.
    case readOnly
    /// Read only, without locks or a WAL index, for read-only volumes. No one may write to the file meanwhile.
    case immutable
    /// Read and write. The file must exist.
    case readWrite
    /// Read and write. The file is created when it does not exist.
    case create
  }

  let handle: SQLiteHandle
  let isOwned: Bool

  /// The given path of the file, for messages; `:memory:` for a database in memory.
  package var path: String { handle.path }

  /// The connection's `sqlite3 *`.
  package var pointer: OpaquePointer { handle.pointer }

  /// The copy of SQLite that the connection belongs to.
  package var library: SQLiteLibrary { handle.library }

  /// Opens a database file.
  ///
  /// SQLite reads the file when the first statement runs, and only then detects damage or another format.
  ///
  /// - Parameters:
  ///   - path: The file, or `:memory:`.
  ///   - access: The access to the file.
  ///   - busyTimeout: The maximum wait for another connection's lock, in milliseconds.
  ///   - library: The copy of SQLite that opens it; nil for the linked one.
  /// - Throws: `SQLiteError` when the file cannot be opened.
  package init(
    opening path: String, as access: Access, busyTimeout: Int32 = 10_000, with library: SQLiteLibrary? = nil
  ) throws(SQLiteError) {
    let library = if let library { library } else { try SQLiteLibrary.standard }
    var flags: Int32 = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    var name = Self.plainName(path)
    switch access {
    case .readOnly: flags |= SQLITE_OPEN_READONLY
    case .immutable:
      flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
      // Without the empty authority, a path that begins with two slashes would name one.
      let location = PercentEncoding.encoded(path, keepingSlashes: true)
      name = "file:\(path.hasPrefix("/") ? "//" : "")\(location)?immutable=1"
    case .readWrite: flags |= SQLITE_OPEN_READWRITE
    case .create: flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
    }
    let routines = library.routines
    var opened: OpaquePointer?
    let code = routines.open_v2(name, &opened, flags)
    guard let pointer = opened else { throw SQLiteError(code: code, message: "out of memory", path: path) }
    let handle = SQLiteHandle(pointer, of: library, path: path)
    do throws(SQLiteError) {
      try handle.check(code)
      try ConnectionExtensions.ofProcess.install(on: handle)
    } catch {
      routines.close_v2(pointer)
      throw error
    }
    routines.busy_timeout(pointer, busyTimeout)
    self.handle = handle
    isOwned = true
  }

  private init(borrowing pointer: OpaquePointer, of library: SQLiteLibrary) {
    let path = library.routines.db_filename(pointer, "main").map { String(cString: $0) } ?? ""
    handle = SQLiteHandle(pointer, of: library, path: path, isBorrowed: true)
    isOwned = false
  }

  /// Shares the handle and the cached statements of another connection, which must outlive this one and closes the
  /// handle.
  package init(sharing other: borrowing SQLiteConnection) {
    handle = other.handle
    isOwned = false
  }

  deinit {
    guard isOwned else { return }
    handle.statements = [:]
    handle.routines.close_v2(handle.pointer)
  }

  /// Works on a connection that belongs to the app: GRDB, SQLite.swift, plain C.
  ///
  /// The handle stays the app's and is not closed. A transaction that is open stays open. Nothing of Buckia's is left in its schema
  /// `temp` when `body` has ended, by success or by failure.
  ///
  /// - Parameters:
  ///   - pointer: The app's `sqlite3 *`, which must be open.
  ///   - library: The copy of SQLite that made it; nil for the linked one.
  ///   - body: The work. It must not keep the connection.
  /// - Throws: `SQLiteError` with the fault `foreignHandle` when another copy of SQLite made the handle
  ///   (``SQLiteLibrary`` says how to hand that copy over); whatever `body` throws.
  package static func borrowing<Result>(
    _ pointer: OpaquePointer, of library: SQLiteLibrary? = nil,
    _ body: (borrowing SQLiteConnection) throws -> Result
  ) throws -> Result {
    let library = try library ?? .standard
    try library.requireOwn(pointer)
    let connection = SQLiteConnection(borrowing: pointer, of: library)
    connection.beginLoan()
    return try cleaningUp(after: { try body(connection) }) { try connection.giveBack() }
  }

  /// A file name that SQLite takes literally: a relative path that begins with "file:" would be a URI.
  static func plainName(_ path: String) -> String { path.hasPrefix("file:") ? "./\(path)" : path }

  /// Passes SQLite's message about the last call that failed to `body`, as UTF-8. It is valid until the next call.
  package func withLastMessage<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    guard let message = handle.routines.errmsg(handle.pointer) else {
      return try body(UnsafeRawBufferPointer(start: nil, count: 0))
    }
    var count = 0
    while message[count] != 0 { count += 1 }
    // Sound: the text ends with a NUL and stays valid until another call, which `body` must not make.
    return try body(UnsafeRawBufferPointer(start: message, count: count))
  }

  /// Runs one or more statements that return nothing.
  ///
  /// - Throws: `SQLiteError`; statements before the failing one have taken effect.
  package func execute(_ sql: String) throws(SQLiteError) {
    try handle.check(handle.routines.exec(handle.pointer, sql), sql: sql)
  }

  /// The most parameters that a statement may have.
  package var parameterLimit: Int { limit(SQLITE_LIMIT_VARIABLE_NUMBER) }

  /// The most columns that a table, or the result of a query, may have.
  package var columnLimit: Int { limit(SQLITE_LIMIT_COLUMN) }

  /// The most bytes that a value or a row may have.
  package var lengthLimit: Int { limit(SQLITE_LIMIT_LENGTH) }

  private func limit(_ limit: Int32) -> Int { Int(handle.routines.limit(handle.pointer, limit)) }

  /// True if a transaction is open.
  package var isInTransaction: Bool { handle.routines.get_autocommit(handle.pointer) == 0 }

  /// The state of the open transaction in the database `main`. See <https://sqlite.org/c3ref/txn_state.html>.
  package enum TransactionState {
    /// It has not read yet, or no transaction is open.
    case none
    /// It has read, and sees one state of the database until it ends.
    case read
    /// It has changed something that is not committed.
    case write
  }

  /// The state of the open transaction in the database `main`.
  package var transactionState: TransactionState {
    switch handle.routines.txn_state(handle.pointer, "main") {
    case SQLITE_TXN_WRITE: .write
    case SQLITE_TXN_READ: .read
    default: .none
    }
  }

  /// The number of rows that the last INSERT, UPDATE or DELETE changed itself, without triggers and foreign-key
  /// actions.
  package var changes: Int { Int(handle.routines.changes64(handle.pointer)) }

  /// True if a deferred foreign key is violated at this moment of the open transaction.
  ///
  /// See [`SQLITE_DBSTATUS_DEFERRED_FKS`](https://sqlite.org/c3ref/c_dbstatus_options.html).
  package var hasDeferredForeignKeyViolations: Bool { status(SQLITE_DBSTATUS_DEFERRED_FKS) != 0 }

  /// The present value of a counter.
  func status(_ counter: Int32) -> Int {
    var current: Int32 = 0
    var highest: Int32 = 0
    handle.routines.db_status(handle.pointer, counter, &current, &highest)
    return Int(current)
  }

  /// The version of the linked SQLite, such as `3.40.1`; `none` in a build that links none.
  package static var libraryVersion: String {
    do { return try SQLiteLibrary.standard.version } catch { return "none" }
  }

  /// True if triggers fire on this connection (TEMP triggers always do).
  package var triggersEnabled: Bool {
    get throws(SQLiteError) { try flag(SQLITE_DBCONFIG_ENABLE_TRIGGER, set: -1) }
  }

  /// Switches triggers on or off for this connection.
  ///
  /// See [`SQLITE_DBCONFIG_ENABLE_TRIGGER`](https://sqlite.org/c3ref/c_dbconfig_defensive.html).
  package func enableTriggers(_ enabled: Bool) throws(SQLiteError) {
    _ = try flag(SQLITE_DBCONFIG_ENABLE_TRIGGER, set: enabled ? 1 : 0)
  }

  /// True if foreign keys are enforced on this connection: [`PRAGMA
  /// foreign_keys`](https://sqlite.org/pragma.html#pragma_foreign_keys).
  package var foreignKeysEnforced: Bool {
    get throws(SQLiteError) { try flag(SQLITE_DBCONFIG_ENABLE_FKEY, set: -1) }
  }

  /// Switches the enforcement of foreign keys on or off for this connection, also inside a transaction, in which the
  /// pragma has no effect.
  ///
  /// Writes without enforcement fire no actions and do not count as deferred violations, and COMMIT checks only that
  /// counter. See [`SQLITE_DBCONFIG_ENABLE_FKEY`](https://sqlite.org/c3ref/c_dbconfig_defensive.html).
  package func enforceForeignKeys(_ enforced: Bool) throws(SQLiteError) {
    _ = try flag(SQLITE_DBCONFIG_ENABLE_FKEY, set: enforced ? 1 : 0)
  }

  /// Runs `body` while the connection enforces no foreign keys and `ALTER TABLE … RENAME` changes nothing but the table: no
  /// view, trigger or foreign key that names it.
  ///
  /// Unlike the pragmas of these names, it works inside a transaction. Both settings are as before afterwards.
  /// See <https://sqlite.org/c3ref/c_dbconfig_defensive.html> and <https://sqlite.org/lang_altertable.html#otheralter>.
  package func withPlainTableRenames<Result>(_ body: () throws -> Result) throws -> Result {
    try with(SQLITE_DBCONFIG_ENABLE_FKEY, false) { try with(SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, true, body) }
  }

  /// Makes functions and virtual tables named in the schema of an untrusted file harmless:
  /// [`PRAGMA trusted_schema`](https://sqlite.org/pragma.html#pragma_trusted_schema) off.
  package func distrustSchema() throws(SQLiteError) {
    _ = try flag(SQLITE_DBCONFIG_TRUSTED_SCHEMA, set: 0)
  }

  /// Runs `body` while SQLite takes a double-quoted word for a name only.
  ///
  /// Otherwise it reads an unknown name as text (<https://sqlite.org/quirks.html#dblquote>).
  package func withoutDoubleQuotedText<Result>(_ body: () throws -> Result) throws -> Result {
    try with(SQLITE_DBCONFIG_DQS_DML, false, body)
  }

  /// Runs `body` while a setting has a value.
  private func with<Result>(_ option: Int32, _ value: Bool, _ body: () throws -> Result) throws -> Result {
    let before = try flag(option, set: -1)
    _ = try flag(option, set: value ? 1 : 0)
    return try cleaningUp(after: body) { _ = try flag(option, set: before ? 1 : 0) }
  }

  private func flag(_ option: Int32, set value: Int32) throws(SQLiteError) -> Bool {
    var result: Int32 = 0
    try handle.check(handle.routines.db_config(handle.pointer, option, value, &result))
    return result != 0
  }

  /// The properties of a column that `PRAGMA table_xinfo` lacks: its collating sequence and AUTOINCREMENT.
  ///
  /// - Throws: `SQLiteError` when there is no such column.
  package func columnMetadata(
    schema: String = "main", table: String, column: String
  ) throws(SQLiteError) -> (collation: String, isAutoIncrement: Bool) {
    var collation: UnsafePointer<CChar>?
    var isAutoIncrement: Int32 = 0
    try handle.check(
      handle.routines.table_column_metadata(handle.pointer, schema, table, column, &collation, &isAutoIncrement))
    return (collation.map { String(cString: $0) } ?? "BINARY", isAutoIncrement != 0)
  }
}

extension SQLiteConnection {
  /// Opens a file that is only to be read, and makes sure that it is a database.
  ///
  /// A database in WAL mode needs its index file even for reading, which cannot be created in a read-only folder.
  /// Without a WAL file, all content is in the main file, which is then read as immutable.
  ///
  /// - Parameters:
  ///   - path: The database file.
  ///   - busyTimeout: The maximum wait for another connection's lock, in milliseconds.
  /// - Throws: `SQLiteError` when it cannot be opened, is no database, is locked or must be recovered first.
  package static func reading(_ path: String, busyTimeout: Int32 = 10_000) throws(SQLiteError) -> SQLiteConnection {
    do throws(SQLiteError) {
      return try reading(path, as: .readOnly, busyTimeout: busyTimeout)
    } catch {
      let hasLog = fileSize("\(path)-wal") > 0 || fileSize("\(path)-journal") > 0
      guard error.isCannotOpen || error.isReadOnly, access(path, R_OK) == 0, !hasLog else { throw error }
      return try reading(path, as: .immutable, busyTimeout: busyTimeout)
    }
  }

  private static func reading(
    _ path: String, as access: Access, busyTimeout: Int32
  ) throws(SQLiteError) -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: path, as: access, busyTimeout: busyTimeout)
    try connection.requireWholePages()
    try connection.distrustSchema()
    return connection
  }

  /// Makes sure that the file is a database, and ends with a whole page. SQLite refuses files without their last pages, but reads what is missing of a
  /// page as zeros.
  ///
  /// - Throws: `SQLiteError` for a database that has been cut off, and as any statement.
  package func requireWholePages() throws(SQLiteError) {
    func isWhole() throws(SQLiteError) -> Bool {
      _ = try integer("SELECT count(*) FROM main.sqlite_schema")
      let pageSize = try integer("PRAGMA main.page_size") ?? 0
      return path.isEmpty || pageSize == 0 || fileSize(path) % pageSize == 0 || fileSize("\(path)-wal") > 0
    }
    if try isWhole() { return }
    // Another connection may have been writing its last page.
    if !isInTransaction {
      try execute("BEGIN")
      let isWhole = try isWhole()
      try execute("COMMIT")
      if isWhole { return }
    }
    throw SQLiteError(code: SQLITE_CORRUPT, message: "the file has been cut off within a page", path: path)
  }

  /// Copies a consistent state of the database into a new file, also while others have it open.
  ///
  /// This is [SQLite's backup](https://sqlite.org/c3ref/backup_finish.html), which reads through the connection. A copy
  /// of the files could miss the write-ahead log, and reading them by path would drop this process's locks on them.
  ///
  /// - Parameters:
  ///   - path: The new file.
  ///   - poll: As of ``copy(to:polling:)`` for a connection.
  /// - Throws: `SQLiteError` when either file cannot be read or written, or this one is locked; the new file is unusable then.
  package func copy(to path: String, polling poll: (() throws -> Void)? = nil) throws {
    try copy(to: SQLiteConnection(opening: path, as: .create, with: library), polling: poll)
  }

  /// Copies a consistent state of the database over that of another connection, such as one in memory.
  ///
  /// - Parameters:
  ///   - target: A connection of the same copy of SQLite, on which nothing is open.
  ///   - poll: Called every 2,048 pages; may throw to stop. In a read transaction the state is that of its beginning all the same.
  /// - Throws: `SQLiteError` when either database cannot be read or written, or this one is locked; the target is unusable then.
  package func copy(to target: borrowing SQLiteConnection, polling poll: (() throws -> Void)? = nil) throws {
    guard target.library == library else { throw SQLiteError(fault: .foreignHandle) }
    let routines = handle.routines
    guard let backup = routines.backup_init(target.handle.pointer, "main", handle.pointer, "main") else {
      throw target.handle.error(SQLITE_ERROR)
    }
    var code = SQLITE_OK
    var stop: (any Error)?
    while code == SQLITE_OK, stop == nil {
      code = routines.backup_step(backup, poll == nil ? -1 : 2_048)
      do { try poll?() } catch { stop = error }
    }
    let finished = routines.backup_finish(backup)
    if let stop { throw stop }
    guard code == SQLITE_DONE else { throw target.handle.error(code) }
    try target.handle.check(finished)
  }
}

/// How many bytes a file has; 0 where there is none.
private func fileSize(_ path: String) -> Int64 {
  var status = stat()
  return stat(path, &status) == 0 ? Int64(status.st_size) : 0
}
