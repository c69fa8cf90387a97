import SQLiteConnections

/// The ledger: tables in the user's own database that record every diff file and what became of it.
///
/// Its rows commit together with the rows of the diff they record, which makes applying exactly-once. `Schemas/ledger.md`
/// describes the tables. Every call works inside whatever transaction is open.
package enum Ledger {
  /// The format of the tables: the first that is released. A change of the tables gets the next number, and a migration to it.
  package static let format: Int64 = 1

  /// The format of the ledger tables of a database; nil when it has none.
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
