/// An error of comparing, planning or applying that is not SQLite's: what happened, to which table, and what to do.
package struct ReplicationError: Error, Sendable, CustomStringConvertible {
  /// What kind of error.
  package let code: BuckiaErrorCode
  /// A sentence for people.
  package let message: String
  /// The table, when there is one.
  package let table: String?
  /// The column, when there is one.
  package let column: String?
  /// The error behind this one, when there is one.
  package let cause: (any Error)?

  /// Makes an error.
  package init(
    _ code: BuckiaErrorCode, _ message: String, table: String? = nil, column: String? = nil, cause: (any Error)? = nil
  ) {
    self.code = code
    self.message = message
    self.table = table
    self.column = column
    self.cause = cause
  }

  /// Says that the application's transaction is gone, and why.
  package static func transactionLost(_ cause: any Error) -> ReplicationError {
    ReplicationError(
      .transactionLost,
      "SQLite has rolled back the whole transaction, also what the application did in it before: \(cause)", cause: cause
    )
  }

  /// Says that nothing can be applied inside the application's transaction as it stands.
  package static let deferredViolations = ReplicationError(
    .deferredViolations,
    "the open transaction has rows that refer to others which are not there yet (deferred foreign keys); write those rows "
      + "first, or apply in a transaction of its own")

  /// Says why a diff may not create a table.
  static func mayNotCreate(_ table: TableDefinition, _ reason: String) -> ReplicationError {
    ReplicationError(.refusedDefinition, "table \"\(table.name)\" may not be created: \(reason)", table: table.name)
  }

  /// The sentence for people.
  package var description: String { message }
}
