import BuckiaDiff
import BuckiaLedger
import BuckiaSchemaPlans
import BuckiaKSUID
import SQLiteConnections

/// One local database and what can be done with it: the way in for applications.
///
/// Each call opens the file, does its work in transactions of its own and closes it again. Calls are synchronous and
/// may run in any number of threads and processes at once: SQLite's locks keep them apart.
///
/// ```swift
/// let database = DatabaseManager("notes.sqlite")
/// let report = try database.processInboundChanges(["inbound"])
/// for diff in report.rejected { print(diff.path, diff.reason ?? "") }
/// ```
public struct DatabaseManager: Sendable {
  /// The database file.
  public let path: String
  /// How long to wait for another program's lock, in milliseconds.
  public var busyTimeout: Int32 = 10_000

  /// Speaks of a database file; it need not exist before a call needs it.
  public init(_ path: String) { self.path = path }

  /// What `initialize` did.
  public struct InitReport: Sendable {
    /// Whether the ledger tables were made just now.
    public let created: Bool
    /// Whether the database itself was made just now.
    public let createdDatabase: Bool
    /// Who is believed.
    public let trust: TrustMode
  }

  /// Makes the ledger tables, and the database when there is none.
  ///
  /// - Parameter trust: Who is believed from now on; nil leaves it as it is (`any` in a new ledger).
  /// - Throws: `SQLiteError` when the database cannot be opened or written, `EngineError` for a newer ledger.
  @discardableResult
  public func initialize(trust: TrustMode? = nil) throws -> InitReport {
    let existed = FileSystem.exists(path)
    let connection = try SQLiteConnection(opening: path, as: .create, busyTimeout: busyTimeout)
    let transaction = try SQLiteTransaction(on: connection)
    let created = try Ledger.prepare(on: connection) == .created
    if let trust { try LedgerSettings.setTrust(trust, on: connection) }
    let inForce = try LedgerSettings.trust(on: connection)
    try transaction.commit()
    return InitReport(created: created, createdDatabase: !existed, trust: inForce)
  }

  /// Everything the ledger holds, oldest first. Empty for a database without one.
  ///
  /// - Throws: `SQLiteError`, `EngineError` for a newer ledger.
  public func log() throws -> [LedgerEntry] {
    let connection = try reader()
    return try Ledger.exists(on: connection) ? LedgerEntries.all(on: connection) : []
  }

  /// Every recorded conflict, oldest first.
  ///
  /// - Throws: `SQLiteError`, `EngineError` for a newer ledger, `ChangesetError` for a damaged record.
  public func conflicts() throws -> [ConflictRecord] {
    let connection = try reader()
    return try Ledger.exists(on: connection) ? ConflictRecord.all(on: connection) : []
  }

  func reader() throws -> SQLiteConnection {
    try requireDatabase()
    return try SnapshotReader.open(path, busyTimeout: busyTimeout)
  }

  /// Makes sure that there is a file at the path, of whatever kind.
  ///
  /// - Throws: `BuckiaError` with `noDatabase` when there is none, or a folder.
  public func requireDatabase() throws(BuckiaError) {
    guard FileSystem.exists(path) else {
      throw BuckiaError(
        .noDatabase, "there is no such database; check the path (`buckia init` makes a new one)", path: path)
    }
    guard !FileSystem.isFolder(path) else {
      throw BuckiaError(.noDatabase, "this is a folder, where a database was expected", path: path)
    }
  }
}
