import BuckiaDiff
import BuckiaLedger
import SQLiteSchemas
import SQLiteConnections

/// One local database and what can be done with it: the way in for apps.
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
  /// What belongs to the person who uses the database: its identity and contacts, the clock of the ids of new files, and which replica the
  /// database is; see <doc:Replicas>.
  public let home: BuckiaHome
  /// How long to wait for another program's lock, in milliseconds. A borrowed connection waits as the app has set it.
  public var busyTimeout: Int32 = 10_000

  /// Takes a database file, which need not exist before a call needs it.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - home: What belongs to the person who uses it.
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
  /// The handle stays the app's and is not closed. Inside a transaction that the app has open, everything is part of that: it
  /// happens when the app commits, and applied files stay in their folders until a later call finds them applied. Whether
  /// foreign keys are enforced is left as the app has it.
  ///
  /// - Parameters:
  ///   - handle: The app's `sqlite3 *`.
  ///   - copy: The copy of SQLite that made it; nil for the one that Buckia links.
  ///   - home: What belongs to the person who uses the database.
  ///   - body: What to do. The database can only be used inside it, on the same thread.
  /// - Throws: `BuckiaError` when another copy of SQLite made the handle; whatever `body` throws.
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

  /// Whether the connection is the app's.
  var isBorrowed: Bool { if case .borrowed = source { true } else { false } }

  /// Works on a connection that can write.
  ///
  /// - Parameter makesFile: Whether the file is made where it is missing.
  func withWriter<Result>(
    makingFile makesFile: Bool = false, _ body: (borrowing SQLiteConnection) throws -> Result
  ) throws -> Result {
    try BuckiaError.wrapping {
      if case .borrowed(let handle) = source { return try handle.with(body) }
      if !makesFile { try requireFile() }
      let access = makesFile ? SQLiteConnection.Access.create : .readWrite
      return try body(try SQLiteConnection(opening: path, as: access, busyTimeout: busyTimeout))
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

  /// Makes sure that there is a file at the path, of whatever kind.
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
  public struct InitReport: Sendable {
    /// Whether the ledger tables were made just now.
    public let created: Bool
    /// Whether the database itself was made just now.
    public let createdDatabase: Bool
    /// Who is trusted.
    public let trust: TrustMode
    /// What is worth knowing about the database.
    public let warnings: [Remark]
  }

  /// Removes the ledger tables, and with them what was recorded of diffs, conflicts, shares and clocks. The rows of the app stay.
  ///
  /// Afterwards the database is as one that Buckia has never seen: files that were applied before are applied again, and shares begin
  /// with all rows.
  ///
  /// - Returns: How many tables were removed; 0 where there was no ledger.
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

  /// Makes the ledger tables, and the database when there is none.
  ///
  /// - Parameter trust: Who is trusted from now on; nil leaves it as it is (`any` in a new ledger).
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
      var warnings = try registration.settle(on: connection, isNewFile: !existed).remarks
      try transaction.commit()
      if let remark = try registration.noteProgress(on: connection), !warnings.contains(remark) {
        warnings.append(remark)
      }
      return InitReport(
        created: isNew, createdDatabase: !existed, trust: inForce, warnings: warnings)
    }
  }
}
