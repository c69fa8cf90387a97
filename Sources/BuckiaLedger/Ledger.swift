import SQLiteConnections

/// The ledger: tables in the user's own database that record every diff file and what became of it.
///
/// Its rows commit together with the rows of the diff they record, which makes applying exactly-once. `Schemas/ledger.md`
/// describes the tables. Every call works inside whatever transaction is open.
package enum Ledger {
  /// The format of the tables that this version writes. Readers understand every earlier format, too.
  package static let format: Int64 = 15
  /// The first format that has the sums of what streams hold.
  static let stateFormat: Int64 = 10
  /// The first format that has who signed what was shared last.
  static let signerFormat: Int64 = 12
  /// The first format that has rows as streams say them where they are otherwise here.
  static let translatedFormat: Int64 = 13
  /// The first format that has who knows of deletions.
  static let deletionFormat: Int64 = 14

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

  /// Whether the database has ledger tables, of any format that this version knows.
  ///
  /// - Throws: As ``format(on:)``.
  package static func exists(on connection: borrowing SQLiteConnection) throws -> Bool {
    try format(on: connection) != nil
  }
}
