import BuckiaSchemaPlans

/// A newer version of Buckia made the ledger tables.
package struct LedgerError: Error, Sendable, CustomStringConvertible {
  /// What kind of error.
  package var code: BuckiaErrorCode { .newerLedger }
  /// The database.
  package let path: String
  /// A sentence for people.
  package let message: String

  /// The database and the sentence.
  package var description: String { "\(path): \(message)" }
}
