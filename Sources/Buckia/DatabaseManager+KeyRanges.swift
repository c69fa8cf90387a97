import BuckiaApply
import BuckiaLedger
import SQLiteSchemas
import SQLiteConnections

extension DatabaseManager {
  /// What became of the keys that a database gives out.
  public struct KeyRangeReport: Sendable {
    /// The tables that give out keys from a range of their own.
    public let tables: [String]
    /// The tables that cannot, because they are not declared AUTOINCREMENT.
    public let warnings: [Remark]
  }

  /// Lets the database give out the keys of its AUTOINCREMENT tables from ranges that no other copy of it uses, or go back to keys that follow the
  /// greatest one.
  ///
  /// Otherwise two people who both add a row give it the same key: a conflict where they exchange diffs, and a new key where they
  /// [share](<doc:Sharing>). Call this in each copy of the database. Rows keep the keys that they have. A table that is made later
  /// gets its range with the next diff that is applied or shared.
  ///
  /// ```swift
  /// let report = try database.useKeyRanges()
  /// for remark in report.warnings { print(remark) }
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
      guard isUsed else { return KeyRangeReport(tables: [], warnings: registration.remarks) }
      return KeyRangeReport(
        tables: tables.filter(\.isAutoIncrement).map(\.name),
        warnings: registration.remarks + tables.filter { !$0.isAutoIncrement }.map { Remark(.noKeyRange, $0.name) })
    }
  }
}
