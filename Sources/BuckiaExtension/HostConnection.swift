import Buckia
import SQLiteConnections

/// The connection that a function of the extension is called on.
///
/// It does not keep the connection alive: SQLite removes the functions that hold it when the connection is closed.
struct HostConnection {
  private let handle: OpaquePointer

  init(_ handle: OpaquePointer) { self.handle = handle }

  /// Works on the connection as a database.
  ///
  /// - Parameters:
  ///   - home: The home folder of the person who uses it.
  ///   - body: The work.
  /// - Throws: Whatever `body` throws, as an error of an SQL function.
  func withDatabase<Result>(home: BuckiaHome = .standard, _ body: (DatabaseManager) throws -> Result) throws -> Result {
    try SQLiteFunctionFailure.wrapping { try DatabaseManager.borrowing(handle, home: home, body) }
  }

  /// Checks that the calling statement permits transactions and changes of the schema.
  ///
  /// A function can begin and commit a transaction while the statement that calls it runs, as long as that does not read or write
  /// any table. Inside a transaction of the program's, it can open a savepoint as long as the statement does not write.
  ///
  /// - Throws: `SQLiteFunctionFailure`.
  func requireRoom(for function: String) throws {
    try SQLiteConnection.borrowing(handle) { connection in
      if connection.isWritingStatementRunning {
        throw SQLiteFunctionFailure(
          "\(function) cannot be called by a statement that writes, or while one is running; call it in a SELECT of its own"
        )
      }
      if !connection.isInTransaction, connection.hasLocks {
        throw SQLiteFunctionFailure(
          "\(function) cannot be called by a statement that reads tables, or while one is running, but inside a transaction; call it "
            + "in a SELECT without FROM, or BEGIN first")
      }
    }
  }
}

extension SQLiteFunctionFailure {
  /// Runs a call of Buckia, and converts its errors into those of an SQL function.
  static func wrapping<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let failure as SQLiteFunctionFailure {
      throw failure
    } catch let interruption as ApplyInterruption {
      throw SQLiteFunctionFailure(interruption.description, isBusy: isBusy(interruption.cause))
    } catch {
      let wrapped = BuckiaError.wrapped(error)
      throw SQLiteFunctionFailure(String(describing: wrapped), isBusy: isBusy(wrapped))
    }
  }

  private static func isBusy(_ error: any Error) -> Bool { (error as? BuckiaError)?.isBusy ?? false }
}

extension SQLiteConnection {
  /// Adds `buckia_apply(path or blob [, options])`: the report of `buckia apply --json`.
  func addApplyFunction(on host: HostConnection) throws(SQLiteError) {
    try addFunction("buckia_apply", argumentCounts: 1...2, access: .direct) { arguments in
      guard let source = try arguments.source(at: 0, of: "buckia_apply") else { return .null }
      let given = try CallOptions(
        arguments.text(at: 1), of: "buckia_apply",
        known: [
          "onConflict", "onConflictIn", "schema", "triggers", "trust", "keep", "remove", "dryRun", "snapshot", "home",
        ])
      let options = try ApplyOptions(given)
      let home = try given.home()
      try host.requireRoom(for: "buckia_apply")
      let report = try host.withDatabase(home: home) { try $0.processInboundChanges([source], options: options) }
      return .text(report.json(stoppedBy: nil).text())
    }
  }
}

extension ApplyOptions {
  fileprivate init(_ given: CallOptions) throws {
    var conflicts = ConflictPolicies(try given.choice("onConflict") ?? .keepLocal)
    for (table, policy) in try given.choices("onConflictIn", ConflictPolicy.self) { conflicts[.table(table)] = policy }
    self.init(
      conflicts: conflicts, schema: try given.choice("schema") ?? .additive,
      triggers: try given.flag("triggers") ?? false,
      trust: try given.choice("trust"), keepsFiles: try given.flag("keep") ?? false,
      removesNamedFiles: try given.flag("remove") ?? false, isDryRun: try given.flag("dryRun") ?? false)
    snapshot = try given.text("snapshot")
  }
}

extension SQLiteConnection {
  /// Adds `buckia_conflicts` and `buckia_log`: the ledger of the connection's database, with the columns of `buckia
  /// conflicts --json` and `buckia log --json`.
  ///
  /// The column is called `tbl`, since `table` would need quotes in every statement. `constraint` does need them.
  func addLedgerTables(on host: HostConnection) throws(SQLiteError) {
    try add(
      "buckia_conflicts",
      [
        "id", "diff", "table", "key", "kind", "outcome", "base", "local", "incoming", "reason", "constraint", "others",
        "parent", "status", "rule", "resolution",
      ]
    ) { add in
      try host.withDatabase { database in try database.forEachConflict { try add($0.json) } }
    }
    try add(
      "buckia_log",
      [
        "id", "sender", "senderKey", "state", "appliedAt", "inserted", "updated", "deleted", "conflicts", "omitted",
        "reason", "file", "digest",
      ]
    ) { add in
      try host.withDatabase { database in try database.forEachLogEntry { try add($0.json) } }
    }
  }

  /// Adds a table whose rows are documents.
  ///
  /// - Parameters:
  ///   - name: The table's name.
  ///   - members: The members of the documents.
  ///   - documents: Passes all documents to the closure.
  private func add(
    _ name: String, _ members: [String], _ documents: @escaping ((JSONValue) throws -> Void) throws -> Void
  ) throws(SQLiteError) {
    try addTableFunction(
      SQLiteTableFunction(name, columns: members.map { $0 == "table" ? "tbl" : $0 }, access: .normal) { _ in
        let spool = RowSpool()
        try documents { try spool.append($0.row(members)) }
        return spool
      })
  }
}
