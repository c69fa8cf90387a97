import BuckiaLedger
import SQLiteConnections

/// What every replica begins with: the database with its ledger, and what others know of it.
final class Template {
  let tables: [ReplicatedTable]
  private let database: SQLiteConnection
  private let known: SQLiteConnection

  /// - Parameters:
  ///   - schema: The statements that make the database.
  ///   - keepsClocks: Whether its tables have clocks.
  /// - Throws: `BuckiaError` when the schema is no SQL.
  init(schema: String, keepsClocks: Bool) throws {
    do {
      let database = try SQLiteConnection.inMemory()
      try database.execute(schema)
      tables = try ReplicatedTable.all(in: database)
      let known = try database.copiedInMemory()
      try DatabaseManager.makeSnapshot(of: known, without: nil)
      try Ledger.prepare(on: database)
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
