import BuckiaLedger
import SQLiteConnections

/// What every replica begins with: the database with its ledger, and what others know of it.
final class Template {
  /// The tables that all replicas have in the end.
  let tables: [ReplicatedTable]
  /// What the upgrade adds to the schema, statement by statement.
  let upgrade: [String]
  private let database: SQLiteConnection
  private let known: SQLiteConnection

  /// - Parameters:
  ///   - schema: The statements that make the database.
  ///   - upgrade: What an update of the app adds to it.
  ///   - keepsClocks: Whether its tables have clocks.
  ///   - trust: Whose diffs are taken.
  /// - Throws: `BuckiaError` when the schema or the upgrade is no SQL.
  init(schema: String, upgrade: [String] = [], keepsClocks: Bool, trust: TrustMode = .any) throws {
    do {
      let database = try SQLiteConnection.inMemory()
      try database.execute(schema)
      let upgraded = try database.copiedInMemory()
      for statement in upgrade { try upgraded.execute(statement) }
      tables = try ReplicatedTable.all(in: upgraded)
      self.upgrade = upgrade
      let known = try database.copiedInMemory()
      try DatabaseManager.makeSnapshot(of: known, without: nil)
      try Ledger.prepare(on: database)
      try LedgerSettings.setTrust(trust, on: database)
      if keepsClocks { try DatabaseManager.keepClocks(on: database) }
      self.database = database
      self.known = known
    } catch {
      throw BuckiaError.wrapped(error)
    }
  }

  /// A copy of the database.
  func makeDatabase() throws -> SQLiteConnection { try database.copiedInMemory() }

  /// A copy of what others know of it.
  func makeKnown() throws -> SQLiteConnection { try known.copiedInMemory() }
}

extension SQLiteConnection {
  /// An empty database in memory.
  static func inMemory() throws -> SQLiteConnection { try SQLiteConnection(opening: ":memory:", as: .create) }

  /// A copy of the database in memory, as it was last committed.
  func copiedInMemory() throws -> SQLiteConnection {
    let copy = try SQLiteConnection.inMemory()
    try self.copy(to: copy)
    return copy
  }
}
