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

extension Ledger {
  /// All tables.
  private static let definition = [
    LedgerSettings.definition, LedgerEntries.definition, RefusedFiles.definition, ConflictLog.definition,
    LargeValues.definition, HeldParts.definition, KnownRenames.definition, ContestedKeys.definition,
    StreamEntries.definition, AppliedEffects.definition, ResolutionRecord.definition,
    ConflictRule.definition, RowClocks.definition, RowNotes.definition, ShareEntry.definition, BaselineEntry.definition,
    OutboxEntry.definition, OutboxPart.definition, AcknowledgementEntry.definition,
    ProvenanceEntry.definition,
    InvitationEntry.definition, AcceptedEntry.definition,
    StateEntry.definition, ResendRequest.definition,
    OriginKeyEntry.definition, MappedRows.definition, TombstoneAcknowledgements.definition,
    ForgottenDeletions.definition,
    RecipientKey.definition, ParkedRows.definition, CountedTable.definition, Tombstones.definition,
    DecidedRows.definition, SentColumns.definition,
  ].joined(separator: "\n")

  /// Drops all tables and views whose names are reserved.
  ///
  /// - Returns: The number of removed tables.
  /// - Throws: `SQLiteError`.
  package static func removeAll(on connection: borrowing SQLiteConnection) throws -> Int {
    var views: [String] = []
    var tables: [String] = []
    let query = """
      SELECT type = 'view', name FROM main.sqlite_schema
      WHERE type IN ('table', 'view') AND substr(name, 1, 7) = 'buckia_' COLLATE NOCASE
      """
    try connection.forEachRow(of: query) { row in
      if row.integer(at: 0) != 0 { views.append(row.text(at: 1) ?? "") } else { tables.append(row.text(at: 1) ?? "") }
    }
    for view in views { try connection.execute("DROP VIEW main.\(SQLText.identifier(view))") }
    for table in tables { try connection.execute("DROP TABLE main.\(SQLText.identifier(table))") }
    return tables.count
  }

  /// Creates missing ledger tables: all of them, or none on failure.
  ///
  /// - Returns: True if they were made now.
  /// - Throws: `SQLiteError`; `LedgerError` with `newerLedger`.
  @discardableResult
  package static func prepare(on connection: borrowing SQLiteConnection) throws -> Bool {
    if try exists(on: connection) { return false }
    let transaction = try SQLiteTransaction(on: connection)
    try connection.execute(definition)
    try SharedView.refresh(on: connection)
    try connection.execute("UPDATE main.buckia_settings SET value = \(format) WHERE name = 'format'")
    try transaction.commit()
    return true
  }
}
