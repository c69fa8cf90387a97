import SQLiteConnections

/// One local database and the operations on it: the entry point for apps.
///
/// Made from a path, each call opens the file, does its work in transactions of its own and closes it again; calls may run in
/// any number of threads and processes at once, because SQLite's locks keep them apart.
/// ``borrowing(_:of:home:_:)`` gives one for a connection that the app has open, with the same calls.
///
/// ```swift
/// let database = DatabaseManager("notes.sqlite")
/// let report = try database.processInboundChanges(["inbound"])
/// for diff in report.rejected { print(diff.path, diff.reason ?? "") }
/// ```
public struct DatabaseManager: Sendable {
  private enum Source {
    case file
    case borrowed(BorrowedHandle)
  }

  private let source: Source
  /// The database file; empty for a borrowed database in memory.
  public let path: String
  /// The home of the person who uses the database: their identity and contacts, the clock of new ids, and the known
  /// replicas; see <doc:Replicas>.
  public let home: BuckiaHome
  /// How long to wait for another program's lock, in milliseconds. A borrowed connection keeps the app's own timeout.
  public var busyTimeout: Int32 = 10_000
  /// Called from time to time by the calls that tell no progress: `undo`, `resolve`, `snapshot`, backups, and a merge while it copies
  /// files. May throw to stop them, which changes nothing.
  public var poll: @Sendable () throws -> Void = {}

  /// Creates a manager for a database file, which need not exist before a call needs it.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - home: The home of the person who uses it.
  public init(_ path: String, home: BuckiaHome = .standard) {
    self.path = path
    self.home = home
    source = .file
  }

  private init(_ handle: BorrowedHandle, path: String, home: BuckiaHome) {
    source = .borrowed(handle)
    self.home = home
    self.path = path
  }

  /// Works on a connection that the app has open: SQLite.swift, plain C. For GRDB, see <doc:UsingWithGRDB>.
  ///
  /// ```swift
  /// let changed = try DatabaseManager.borrowing(connection) { database in
  ///   try database.processInboundChanges(["inbound"]).changedTables
  /// }
  /// ```
  ///
  /// The app keeps the handle, which is not closed. Inside a transaction that the app has open, everything is part of
  /// that transaction: it takes effect when the app commits, and applied files stay in their folders until a later call
  /// finds them applied. The enforcement of foreign keys stays as the app has set it.
  ///
  /// - Parameters:
  ///   - handle: The app's `sqlite3 *`.
  ///   - copy: The copy of SQLite that made it; nil for the one that Buckia links.
  ///   - home: The home of the person who uses the database.
  ///   - body: Works with the database, which can only be used inside of it, on the same thread.
  /// - Throws: `BuckiaError` when another copy of SQLite made the handle; whatever `body` throws.
  @discardableResult
  public static func borrowing<Result>(
    _ handle: OpaquePointer, of copy: SQLiteCopy? = nil, home: BuckiaHome = .standard,
    _ body: (DatabaseManager) throws -> Result
  ) throws -> Result {
    let path = try BuckiaError.wrapping {
      try SQLiteConnection.borrowing(handle, of: copy?.library) { $0.path }
    }
    let borrowed = BorrowedHandle(handle, of: copy?.library)
    defer { borrowed.end() }
    return try body(DatabaseManager(borrowed, path: path, home: home))
  }

  // MARK: Connections

  /// True if the connection is the app's.
  package var isBorrowed: Bool { if case .borrowed = source { true } else { false } }

  /// Works on a connection that can write.
  ///
  /// - Parameter makesFile: True to create a missing file.
  func withWriter<Result>(
    makingFile makesFile: Bool = false, _ body: (borrowing SQLiteConnection) throws -> Result
  ) throws -> Result {
    try BuckiaError.wrapping {
      if case .borrowed(let handle) = source { return try handle.with(body) }
      if !makesFile { try requireFile() }
      let access = makesFile ? SQLiteConnection.Access.create : .readWrite
      let connection = try SQLiteConnection(opening: path, as: access, busyTimeout: busyTimeout)
      try connection.requireWholePages()
      return try body(connection)
    }
  }

  /// Works on a connection that only reads.
  func withReader<Result>(_ body: (borrowing SQLiteConnection) throws -> Result) throws -> Result {
    try BuckiaError.wrapping {
      if case .borrowed(let handle) = source { return try handle.with(body) }
      try requireFile()
      let traces = ReadTraces(besides: [path])
      defer { traces.remove() }
      return try body(try SQLiteConnection.reading(path, busyTimeout: busyTimeout))
    }
  }

  /// Calls `body` with a read-only connection; for a database without a ledger, returns a default.
  func withLedger<Result>(
    or nothing: Result, _ body: (borrowing SQLiteConnection) throws -> Result
  ) throws -> Result {
    try withReader { try Ledger.exists(on: $0) ? body($0) : nothing }
  }

  /// Throws inside a transaction of the app.
  ///
  /// - Parameter refusal: What cannot be done.
  /// - Throws: `BuckiaError` with `misuse`.
  func requireOwnTransaction(or refusal: String, on connection: borrowing SQLiteConnection) throws(BuckiaError) {
    guard isBorrowed, connection.isInTransaction else { return }
    throw BuckiaError(.misuse, "\(refusal) inside a transaction of the app, which may still roll back")
  }

  /// Requires that there is a file at the path, of any kind.
  ///
  /// - Throws: `BuckiaError` with `noDatabase` when there is none, or a folder.
  package func requireFile() throws(BuckiaError) {
    if isBorrowed { return }
    guard FileSystem.exists(path) else {
      throw BuckiaError(.noDatabase, "there is no such database; check the path", path: path)
    }
    guard !FileSystem.isFolder(path) else {
      throw BuckiaError(.noDatabase, "this is a folder, where a database was expected", path: path)
    }
  }
}

extension DatabaseManager {
  /// What ``initialize(trust:)`` did.
  public struct InitReport: Hashable, Codable, Sendable {
    /// True if the ledger tables were made just now.
    public let created: Bool
    /// True if the database itself was made just now.
    public let createdDatabase: Bool
    /// The trust mode.
    public let trust: TrustMode
    /// Warnings about the database.
    public let warnings: [Warning]
  }

  /// Removes the ledger tables, and with them all records of diffs, conflicts, shares and clocks. The rows of the app
  /// stay.
  ///
  /// Afterwards the database is as one that Buckia has never seen: files that were applied before are applied again, and shares begin
  /// with all rows.
  ///
  /// - Returns: The number of removed tables; 0 without a ledger.
  /// - Throws: `BuckiaError` when the database cannot be opened or written, or has a newer ledger.
  @discardableResult
  public func removeLedger() throws -> Int {
    try withWriter { connection in
      guard try Ledger.exists(on: connection) else { return 0 }
      let transaction = try SQLiteTransaction(on: connection)
      let count = try Ledger.removeAll(on: connection)
      try transaction.commit()
      return count
    }
  }

  /// Creates the ledger tables, and the database if it does not exist.
  ///
  /// - Parameter trust: The new trust mode; nil leaves it unchanged (`any` in a new ledger).
  /// - Throws: `BuckiaError` when the database cannot be opened or written, or has a newer ledger.
  @discardableResult
  public func initialize(trust: TrustMode? = nil) throws -> InitReport {
    let existed = isBorrowed || FileSystem.exists(path)
    return try withWriter(makingFile: true) { connection in
      let transaction = try SQLiteTransaction(on: connection)
      let isNew = try Ledger.prepare(on: connection)
      if let trust { try LedgerSettings.setTrust(trust, on: connection) }
      let inForce = try LedgerSettings.trust(on: connection)
      let registration = ReplicaRegistration(of: connection, in: home)
      var warnings = try registration.settle(on: connection, isNewFile: !existed).warnings
      try transaction.commit()
      try registration.noteProgress(on: connection, in: &warnings)
      return InitReport(
        created: isNew, createdDatabase: !existed, trust: inForce, warnings: warnings)
    }
  }
}

/// A connection that an app has lent for the length of one closure, on the thread that runs it.
///
/// `@unchecked Sendable`: a use on any other thread, or after the closure, is refused before it touches anything.
final class BorrowedHandle: @unchecked Sendable {
  private let pointer: OpaquePointer
  private let library: SQLiteLibrary?
  private let thread = pthread_self()
  /// Read and written by the lending thread alone.
  private var isLent = true

  init(_ pointer: OpaquePointer, of library: SQLiteLibrary?) {
    self.pointer = pointer
    self.library = library
  }

  /// Says that the closure has ended.
  func end() { isLent = false }

  /// Works on the connection.
  ///
  /// - Throws: `BuckiaError` with `misuse` on another thread and after the end; `SQLiteError` for a handle of another copy
  ///   of SQLite; whatever `body` throws.
  func with<Result>(_ body: (borrowing SQLiteConnection) throws -> Result) throws -> Result {
    guard pthread_equal(thread, pthread_self()) != 0, isLent else {
      throw BuckiaError(
        .misuse, "a borrowed database can only be used inside the closure that it was lent to, on the same thread")
    }
    return try SQLiteConnection.borrowing(pointer, of: library, body)
  }
}

/// A copy of SQLite in this process other than the one that Buckia links, such as SQLCipher's or a custom build of GRDB.
///
/// A connection can only be used through the copy that opened it. Hand that copy over to borrow its connections:
///
/// ```swift
/// let copy = try SQLiteCopy { dlsym(handle, $0) }
/// try DatabaseManager.borrowing(connection, of: copy) { database in … }
/// ```
///
/// The copy must stay loaded.
public struct SQLiteCopy: Sendable, Equatable {
  let library: SQLiteLibrary

  /// Creates a copy from its `sqlite3_api_routines`, which SQLite passes to loadable extensions and to entry points
  /// registered with [`sqlite3_auto_extension`](https://sqlite.org/c3ref/auto_extension.html).
  ///
  /// - Throws: `BuckiaError` when the copy is older than SQLite 3.37, or lacks a function that is needed.
  public init(routines: UnsafeRawPointer) throws {
    library = try BuckiaError.wrapping { try SQLiteLibrary(routines: routines) }
  }

  /// Creates a copy from the names of its functions.
  ///
  /// - Parameter resolve: Returns the address of a function, such as `sqlite3_step`; nil for none.
  /// - Throws: As ``init(routines:)``.
  public init(resolving resolve: @escaping (_ symbol: String) -> UnsafeMutableRawPointer?) throws {
    library = try BuckiaError.wrapping { try SQLiteLibrary(resolving: resolve) }
  }
}

/// What reading leaves beside databases with a write-ahead log: an empty log and its index, which only a connection that may write
/// can take away again. See <https://sqlite.org/wal.html>.
struct ReadTraces {
  /// The databases that have no log yet.
  private let paths: [String]

  /// Looks at databases before they are read.
  init(besides paths: [String]) { self.paths = paths.filter { !FileSystem.exists("\($0)-wal") } }

  /// Lets SQLite remove existing unused logs. Call it when all connections are closed.
  func remove() {
    for path in paths where FileSystem.exists("\(path)-wal") {
      do {
        let connection = try SQLiteConnection(opening: path, as: .readWrite, busyTimeout: 0)
        _ = try connection.integer("SELECT count(*) FROM main.sqlite_schema")
      } catch {
        // A file that can only be read, or is in use by now, keeps them: they do no harm.
        continue
      }
    }
  }
}

extension DatabaseManager {
  /// Lets tables remember which diff has last set each of their columns, as the policy ``ConflictPolicy/latest`` needs it.
  ///
  /// Under that policy, `processInboundChanges` does this for each table that a file changes. Call this before the
  /// first diff is made from the database, because rows that were sent before count as older than all that arrives.
  ///
  /// - Parameter tables: The tables; nil for all whose rows replicate.
  /// - Returns: The tables that have got a clock now.
  /// - Throws: `BuckiaError` with `noSuchTable` for a name that is none of a table with rows of its own; when the
  ///   database cannot be written.
  @discardableResult
  public func keepClocks(of tables: [String]? = nil) throws -> [String] {
    try withWriter { try Self.keepClocks(of: tables?.map { TableName($0) }, on: $0) }
  }

  /// The same through a connection.
  @discardableResult
  package static func keepClocks(
    of names: [TableName]? = nil, on connection: borrowing SQLiteConnection
  ) throws -> [String] {
    let transaction = try SQLiteTransaction(on: connection)
    try Ledger.prepare(on: connection)
    let schema = try SchemaReader(connection)
    for name in names ?? [] where schema.entry(named: name)?.kind != .table || name.refusal != nil {
      throw BuckiaError(.noSuchTable, "there is no table \"\(name)\" whose rows replicate", path: connection.path)
    }
    var made: [String] = []
    for entry in schema.entries where entry.kind == .table {
      guard names?.contains(entry.name) ?? (entry.name.refusal == nil) else { continue }
      if try RowClocks.begin(for: schema.definition(of: entry), on: connection) { made.append(entry.name.text) }
    }
    try transaction.commit()
    return made
  }
}

extension DatabaseManager {
  /// The result of turning key ranges on or off.
  public struct KeyRangeReport: Sendable {
    /// The tables that give out keys from a range of their own.
    public let tables: [String]
    /// The tables that cannot, because they are not declared AUTOINCREMENT.
    public let warnings: [Warning]
  }

  /// Lets the database give out the keys of its AUTOINCREMENT tables from ranges that no other copy of it uses, or go back to keys that follow the
  /// greatest one.
  ///
  /// Without ranges, two people who both add a row give it the same key. That is a conflict if they exchange diffs, and
  /// one row gets a new key if they [share](<doc:Sharing>). Call this in each copy of the database. Existing rows keep
  /// their keys. A table that is created later gets its range with the next diff that is applied or shared.
  ///
  /// ```swift
  /// let report = try database.useKeyRanges()
  /// for warning in report.warnings { print(warning) }
  /// ```
  ///
  /// - Parameter isUsed: True to use ranges from now on.
  /// - Throws: `BuckiaError` with `unwritable` where it cannot be settled which replica the database is, on which the ranges depend; when the
  ///   database cannot be written. Nothing has been changed then.
  @discardableResult
  public func useKeyRanges(_ isUsed: Bool = true) throws -> KeyRangeReport {
    try withWriter { connection in
      let transaction = try SQLiteTransaction(on: connection)
      try Ledger.prepare(on: connection)
      let registration = try ReplicaRegistration(of: connection, in: home).settle(on: connection)
      guard registration.replica != nil || !isUsed else {
        throw BuckiaError(
          .unwritable, "it cannot be settled which replica this database is, and its ranges of keys depend on that",
          path: connection.path)
      }
      try KeyRanges.use(isUsed, on: connection)
      let schema = try SchemaReader(connection)
      let tables = try schema.entries.filter { $0.kind == .table && $0.name.refusal == nil }
        .map { try schema.definition(of: $0) }.filter(\.givesOutKeys)
      try transaction.commit()
      guard isUsed else { return KeyRangeReport(tables: [], warnings: registration.warnings) }
      return KeyRangeReport(
        tables: tables.filter(\.isAutoIncrement).map(\.name),
        warnings: registration.warnings + tables.filter { !$0.isAutoIncrement }.map { Warning(.noKeyRange, $0.name) })
    }
  }
}

extension DatabaseManager {
  /// Adds the SQL function `buckia_applying()` to a connection of the app. Its triggers can then recognize Buckia's
  /// writes.
  ///
  /// It returns 1 while Buckia writes to the database through that connection, whatever for, and 0 otherwise. A trigger that is to
  /// fire for the app's own changes only asks for it:
  ///
  /// ```sql
  /// CREATE TRIGGER note_edits AFTER UPDATE ON notes WHEN NOT buckia_applying()
  /// BEGIN INSERT INTO edits VALUES (new.id); END;
  /// ```
  ///
  /// A statement that fires such a trigger fails on connections without the function. Add it to each one right after it
  /// was opened: in GRDB's `prepareDatabase`, for example. It stays until the connection is closed. On a connection
  /// without it, Buckia adds it while it writes. An existing function of the same name stays.
  ///
  /// - Parameters:
  ///   - handle: The app's `sqlite3 *`.
  ///   - copy: The copy of SQLite that made it; nil for the one that Buckia links.
  /// - Throws: `BuckiaError` when another copy of SQLite made the handle.
  public static func addApplyingFunction(to handle: OpaquePointer, of copy: SQLiteCopy? = nil) throws {
    try BuckiaError.wrapping {
      try SQLiteConnection.borrowing(handle, of: copy?.library) { _ = try ApplySession.applyingFunction.add(to: $0) }
    }
  }
}
