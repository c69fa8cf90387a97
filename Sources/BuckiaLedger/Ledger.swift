import SQLiteConnections
import SQLiteSchemas

/// The ledger: tables in the user's own database that record every diff file and its outcome.
///
/// Its rows commit together with the rows of the diff they record, which makes applying exactly-once. `Schemas/ledger.md`
/// describes the tables. Every call works inside whatever transaction is open.
package enum Ledger {
  /// The format of the tables: the first that is released. A change of the tables gets the next number, and a migration to it.
  package static let format: Int64 = 1

  /// The format of the ledger tables of a database; nil if it has none.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` with `newerLedger` for a format that this version does not know.
  package static func format(on connection: borrowing SQLiteConnection) throws -> Int64? {
    guard
      try connection.cachedInteger(
        "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'buckia_settings'") != nil
    else { return nil }
    let found = try connection.cachedInteger("SELECT value FROM main.buckia_settings WHERE name = 'format'") ?? 0
    guard (1...format).contains(found) else {
      throw LedgerError(newerFormat: found, path: connection.path)
    }
    return found
  }

  /// True if the database has ledger tables.
  ///
  /// - Throws: As ``format(on:)``.
  package static func exists(on connection: borrowing SQLiteConnection) throws -> Bool {
    try format(on: connection) != nil
  }
}

/// The ledger tables cannot be used: a newer version of Buckia made them, or something else has altered them.
///
/// Every error of a statement on these tables is described here, because people do not know their columns, and messages
/// show no internal statements.
package struct LedgerError: Error, Sendable, CustomStringConvertible {
  /// What kind of error.
  package let code: BuckiaErrorCode
  /// The database.
  package let path: String
  /// A sentence for people.
  package let message: String

  /// Creates the error for tables of a newer version.
  init(newerFormat format: Int64, path: String) {
    code = .newerLedger
    self.path = path
    message =
      "the ledger tables have format \(format), and this version of Buckia knows format \(Ledger.format); update Buckia"
  }

  /// Creates the error for tables with contents that Buckia never writes.
  ///
  /// - Parameter path: The database.
  package init(alteredAt path: String) {
    code = .alteredLedger
    self.path = path
    message = Self.altered
  }

  private static let altered =
    "the ledger tables (buckia_…) are not as Buckia makes them: another program has altered them; restore a backup of the database"

  /// The error for a failed statement on the ledger tables; nil if it is about another statement, or the database as a
  /// whole or the machine is at fault, which its own message describes.
  package init?(_ error: SQLiteError) {
    guard error.isAboutLedger, error.isAboutTheStatement, !error.isCorrupt else { return nil }
    path = error.path ?? ""
    if error.isTooBig {
      code = BuckiaErrorCode(error)
      message = "what has to be kept of a row is larger than this database allows a value to be"
    } else {
      code = .alteredLedger
      message = Self.altered
    }
  }

  /// The database and the sentence.
  package var description: String { "\(path): \(message)" }
}

extension SQLiteError {
  /// True if it is an error of a statement on the ledger tables.
  package var isAboutLedger: Bool { sql?.contains("main.buckia_") ?? false }
}
