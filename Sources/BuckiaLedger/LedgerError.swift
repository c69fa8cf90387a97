/// An error of the ledger tables: what happened, in which database, and what to do.
package struct LedgerError: Error, Sendable, CustomStringConvertible {
  /// What kind of error.
  package enum Code: String, Sendable {
    /// A newer version of Buckia made the ledger tables.
    case newerLedger = "newer-ledger"
  }

  /// What kind of error.
  package let code: Code
  /// The database.
  package let path: String
  /// A sentence for people.
  package let message: String

  /// The database and the sentence.
  package var description: String { "\(path): \(message)" }
}
