import BuckiaLedger
import SQLiteSchemas
import SQLiteConnections

extension DatabaseManager {
  /// Lets tables remember which diff has last set each of their columns, as the policy ``ConflictPolicy/latest`` needs it.
  ///
  /// Under that policy `processInboundChanges` does it for each table that a file
  /// changes. Call this before the first diff is made from the database: what was sent before counts as older than all
  /// that arrives.
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
      if try RowClocks.require(for: schema.definition(of: entry), on: connection) { made.append(entry.name.text) }
    }
    try transaction.commit()
    return made
  }
}
