#if GRDB
  import Buckia
  import Foundation
  import GRDB

  /// A connection of GRDB's with the calls of Buckia: ``GRDB/Database/buckia``.
  ///
  /// The calls are those of `DatabaseManager`, under the same names. In a transaction of the app they are part of
  /// that; without one they begin and commit their own. Beyond that, GRDB is kept up to date: SQLite does not tell it
  /// of all that Buckia writes, so observations are notified of the tables that have changed, and only of these. Cached
  /// definitions of tables are forgotten when the schema has changed.
  ///
  /// Its queries can be observed:
  ///
  /// ```swift
  /// let observation = ValueObservation.tracking { db in try db.buckia.conflicts() }
  /// ```
  ///
  /// It is valid as long as its connection, on the same thread.
  public struct ReplicatedDatabase {
    /// The connection.
    let db: Database
    /// The copy of SQLite that has opened it; nil for the one that Buckia links.
    let copy: SQLiteCopy?
    /// The home folder of the person who uses it.
    let home: BuckiaHome
    /// Tells the calls that they are canceled; nil if they cannot be.
    let cancellation: CancellationFlag?

    init(_ db: Database, copy: SQLiteCopy?, home: BuckiaHome, cancellation: CancellationFlag? = nil) {
      self.db = db
      self.copy = copy
      self.home = home
      self.cancellation = cancellation
    }

    // MARK: Preparing

    /// Creates the ledger tables.
    ///
    /// The first call that applies files makes them, too. Requests of ``LoggedDiff`` and its like need them: call
    /// this in a migration of the app. It can be called any number of times.
    ///
    /// ```swift
    /// migrator.registerMigration("ledger") { db in try db.buckia.initialize() }
    /// ```
    ///
    /// - Parameter trust: The trusted senders from now on; nil for no change (`any` in a new ledger).
    /// - Throws: As `DatabaseManager.initialize`.
    @discardableResult
    public func initialize(trust: TrustMode? = nil) throws -> DatabaseManager.InitReport {
      try writing { database, written in
        written.addLedger()
        return try database.initialize(trust: trust)
      }
    }

    /// Adds the SQL function `buckia_applying()`, by which triggers distinguish the app's own edits from received ones.
    ///
    /// ```swift
    /// configuration.prepareDatabase { db in try db.buckia.addApplyingFunction() }
    /// ```
    ///
    /// - Throws: As `DatabaseManager.addApplyingFunction`.
    public func addApplyingFunction() throws {
      try DatabaseManager.addApplyingFunction(to: handle(), of: copy)
    }

    // MARK: Any call

    /// Lets tables record which diff has last set each of their columns, as the policy `latest` needs it.
    ///
    /// - Parameter tables: The tables; nil for all whose rows replicate.
    /// - Returns: The tables that have got a clock now.
    /// - Throws: As `DatabaseManager.keepClocks`.
    @discardableResult
    public func keepClocks(of tables: [String]? = nil) throws -> [String] {
      try writing { database, written in
        written.addLedger()
        return try database.keepClocks(of: tables)
      }
    }

    /// Makes calls of `DatabaseManager` that have no counterpart here, such as `joinDataset`.
    ///
    /// Afterwards it notifies observations of changes in Buckia's own tables.
    ///
    /// - Parameters:
    ///   - tables: Tables of the app that the calls change.
    ///   - body: The calls. The database can only be used inside it.
    /// - Throws: Whatever `body` throws; `BuckiaError` when another copy of SQLite has opened the connection.
    public func withDatabase<Value>(
      changing tables: Set<String> = [], _ body: (DatabaseManager) throws -> Value
    ) throws -> Value {
      try writing { database, written in
        written.add(tables)
        written.addLedger()
        written.addConflicts()
        return try body(database)
      }
    }

    // MARK: Lending the connection

    /// Makes calls that write, and notifies GRDB of their changes, also if they fail: an app may commit the changes
    /// before the error.
    ///
    /// - Parameter body: Makes the calls, and records their changes.
    func writing<Value>(_ body: (DatabaseManager, inout WrittenTables) throws -> Value) throws -> Value {
      let suspension = Suspension(of: db)
      try requireResumed()
      let version = try db.schemaVersion()
      var written = WrittenTables()
      let result = Result {
        try lending { database in
          var database = database
          database.poll = { [cancellation] in
            try cancellation?.check()
            try suspension?.check()
          }
          return try body(database, &written)
        }
      }
      if case .failure = result, written.isEmpty { return try result.get() }
      do { try announce(written, since: version) } catch {
        // The first error has the cause.
        _ = try result.get()
        throw error
      }
      return try result.get()
    }

    /// Has GRDB refuse to write to a suspended database (`Database.suspendNotification`). GRDB checks statements of its own only, so it is
    /// given one, which changes nothing.
    ///
    /// - Throws: `DatabaseError` with `SQLITE_ABORT` for a suspended database.
    private func requireResumed() throws {
      let query = """
        SELECT name FROM main.sqlite_master
        WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' AND sql NOT LIKE 'CREATE VIRTUAL%' LIMIT 1
        """
      do {
        let table = try String.fetchOne(db, sql: query)
        // Without tables there are no free pages to remove.
        try db.execute(
          sql: table.map { "DELETE FROM main.\($0.quotedDatabaseIdentifier) WHERE 0" }
            ?? "PRAGMA main.incremental_vacuum")
      } catch let error as DatabaseError
        where error.resultCode == .SQLITE_ABORT || error.resultCode == .SQLITE_INTERRUPT
      {
        throw error
      } catch {
        // The call itself reports any other error.
      }
    }

    /// Makes calls that read, and has GRDB track the tables that they read.
    func reading<Value>(_ tables: LedgerTables, _ body: (DatabaseManager) throws -> Value) throws -> Value {
      try db.registerAccess(to: tables)
      return try lending(body)
    }

    private func lending<Value>(_ body: (DatabaseManager) throws -> Value) throws -> Value {
      try DatabaseManager.borrowing(handle(), of: copy, home: home, body)
    }

    private func handle() throws -> OpaquePointer {
      guard let handle = db.sqliteConnection else {
        throw DatabaseError(resultCode: .SQLITE_MISUSE, message: "Connection is closed")
      }
      return handle
    }

    /// Notifies GRDB of written tables.
    ///
    /// - Parameters:
    ///   - written: The written tables.
    ///   - version: The version of the schema before that.
    private func announce(_ written: WrittenTables, since version: Int32) throws {
      let hasOtherSchema = try db.schemaVersion() != version
      if hasOtherSchema { db.clearSchemaCache() }
      let region = try written.region(in: db, withSchema: hasOtherSchema)
      guard !region.isEmpty else { return }
      if db.isInsideTransaction { return try db.notifyChanges(in: region) }
      // GRDB notifies observers when a transaction ends, but does not see the end of Buckia's own transactions.
      try db.inTransaction(.deferred) {
        try db.notifyChanges(in: region)
        return .commit
      }
    }
  }

  /// Notices that the databases of the process are suspended, which GRDB can tell only those who run its statements.
  private final class Suspension: Sendable {
    private let flag = CancellationFlag()
    // Sound: it is set once, and only handed back.
    nonisolated(unsafe) private let observer: any NSObjectProtocol

    /// Listens as long as it lives; nil for a database that does not listen to the notification.
    init?(of db: Database) {
      guard db.configuration.observesSuspensionNotifications else { return nil }
      observer = NotificationCenter.default.addObserver(
        forName: Database.suspendNotification, object: nil, queue: nil
      ) { [flag] _ in flag.cancel() }
    }

    deinit { NotificationCenter.default.removeObserver(observer) }

    /// - Throws: `DatabaseError` with `SQLITE_INTERRUPT` after the notification.
    func check() throws {
      if flag.isSet { throw DatabaseError(resultCode: .SQLITE_INTERRUPT, message: "Database is suspended") }
    }
  }

  extension Database {
    /// This connection, with the calls of Buckia.
    ///
    /// ```swift
    /// try queue.write { db in
    ///   let report = try db.buckia.processInboundChanges(["inbound"])
    ///   print(report.changedTables)
    /// }
    /// ```
    ///
    /// Use it as you use the connection: inside the closure that it was passed to.
    public var buckia: ReplicatedDatabase { buckia(home: .standard) }

    /// This connection, with the calls of Buckia.
    ///
    /// - Parameter home: The home folder of the person who uses the database.
    public func buckia(home: BuckiaHome) -> ReplicatedDatabase { ReplicatedDatabase(self, copy: nil, home: home) }

    /// This connection with the calls of Buckia, for a connection of another copy of SQLite than the one that Buckia
    /// links.
    ///
    /// GRDB has another copy if it was built with a custom SQLite or with SQLCipher. Calls of ``buckia`` throw then.
    ///
    /// - Parameters:
    ///   - copy: The copy that GRDB uses.
    ///   - home: The home folder of the person who uses the database.
    public func buckia(of copy: SQLiteCopy, home: BuckiaHome = .standard) -> ReplicatedDatabase {
      ReplicatedDatabase(self, copy: copy, home: home)
    }
  }

  extension DatabaseWriter {
    /// Makes calls of Buckia that begin and commit transactions of their own.
    ///
    /// Sharing requires them, since a sent file cannot be rolled back. Applying removes files only then, after the
    /// commit of their changes. To apply files in a transaction of the app, use ``GRDB/Database/buckia`` in `write`.
    ///
    /// ```swift
    /// let report = try queue.withBuckia { buckia in
    ///   try buckia.processInboundChanges(["inbound"])
    /// }
    /// ```
    ///
    /// It blocks the thread until the database can be written, and the calls are done.
    ///
    /// - Parameters:
    ///   - home: The home folder of the person who uses the database.
    ///   - body: The calls. Its argument is only valid inside it.
    /// - Throws: Whatever `body` throws.
    @discardableResult
    public func withBuckia<Value>(
      home: BuckiaHome = .standard, _ body: (ReplicatedDatabase) throws -> Value
    ) throws -> Value {
      try writeWithoutTransaction { try body($0.buckia(home: home)) }
    }

    /// Makes calls of Buckia that begin and commit transactions of their own, on a thread of its own.
    ///
    /// It is the asynchronous form of the call of the same name. When the task is cancelled, the present call stops
    /// before the next file, or within a few thousand rows. Its earlier commits stay, and observations are notified of
    /// them.
    ///
    /// - Parameters:
    ///   - home: The home folder of the person who uses the database.
    ///   - body: The calls. Its argument is only valid inside it.
    /// - Throws: Whatever `body` throws; `CancellationError`, or an `ApplyInterruption` with it as the cause.
    @discardableResult
    public func withBuckia<Value: Sendable>(
      home: BuckiaHome = .standard, _ body: @escaping @Sendable (ReplicatedDatabase) throws -> Value
    ) async throws -> Value {
      // GRDB's own asynchronous access would interrupt Buckia's statements, and not notify observations of commits.
      try await CancellationFlag.onThreadOfItsOwn { cancellation in
        try self.writeWithoutTransaction {
          try body(ReplicatedDatabase($0, copy: nil, home: home, cancellation: cancellation))
        }
      }
    }
  }
#endif
