import SQLiteSchemas

/// An error of comparing, planning or applying that is not SQLite's: what happened, to which table, and what to do.
package struct ReplicationError: Error, Sendable, CustomStringConvertible {
  /// The kinds that are told apart. More may come.
  package struct Code: RawRepresentable, Hashable, Sendable {
    /// The code as it appears in JSON.
    package let rawValue: String
    /// Makes a code.
    package init(rawValue: String) { self.rawValue = rawValue }

    /// A table that was named is in neither database.
    package static let noSuchTable = Code(rawValue: "no-such-table")
    /// A diff names a table that no diff may change.
    package static let refusedTable = Code(rawValue: "refused-table")
    /// A table is missing here and its definition did not travel.
    package static let missingTable = Code(rawValue: "missing-table")
    /// The primary keys differ.
    package static let keyDiffers = Code(rawValue: "key-differs")
    /// The columns do not fit.
    package static let columnsDiffer = Code(rawValue: "columns-differ")
    /// A value would be altered by the type of its column here.
    package static let incompatibleType = Code(rawValue: "incompatible-type")
    /// The schema would have to change, and the mode does not allow it.
    package static let schemaDiffers = Code(rawValue: "schema-differs")
    /// A definition may not be created.
    package static let refusedDefinition = Code(rawValue: "refused-definition")
    /// A conflict was met under the policy `abort`, or a resolver said so.
    package static let conflict = Code(rawValue: "conflict")
    /// The caller stopped the work.
    package static let cancelled = Code(rawValue: "cancelled")
    /// SQLite has rolled back the transaction that the application had open, with all the application did in it.
    package static let transactionLost = Code(rawValue: "transaction-lost")
  }

  /// What kind of error.
  package let code: Code
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
    _ code: Code, _ message: String, table: String? = nil, column: String? = nil, cause: (any Error)? = nil
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

  /// Says why a diff may not create a table.
  static func mayNotCreate(_ table: TableDefinition, _ reason: String) -> ReplicationError {
    ReplicationError(.refusedDefinition, "table \"\(table.name)\" may not be created: \(reason)", table: table.name)
  }

  /// The sentence for people.
  package var description: String { message }
}
