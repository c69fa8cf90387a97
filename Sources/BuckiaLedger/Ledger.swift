import SQLiteConnections

/// The ledger: tables in the user's own database that record every diff file and what became of it.
///
/// Its rows commit together with the rows of the diff they record, which makes applying exactly-once. `Schemas/ledger.md`
/// describes the tables. Every call works inside whatever transaction is open.
package enum Ledger {
  /// The format of the tables that this version writes. Readers understand every earlier format, too.
  package static let format = Int64(1 + LedgerMigration.statements.count)

  /// All tables in the present format.
  private static let definition = [
    LedgerSettings.definition, LedgerEntries.definition, RefusedFiles.definition, ConflictLog.definition,
    HeldParts.definition, KnownRenames.definition,
  ].joined(separator: "\n")

  /// What ``prepare(on:)`` found and did.
  package enum Preparation: Equatable, Sendable {
    /// The tables were there, in the present format.
    case present
    /// The tables were made.
    case created
    /// The tables were there in an earlier format, and have been migrated.
    case migrated(from: Int64)
  }

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
      throw LedgerError(
        code: .newerLedger, path: connection.path,
        message:
          "the ledger tables have format \(found), and this version of Buckia knows 1 to \(format); update Buckia")
    }
    return found
  }

  /// Whether the database has ledger tables, of any format that this version knows.
  ///
  /// - Throws: As ``format(on:)``.
  package static func exists(on connection: borrowing SQLiteConnection) throws -> Bool {
    try format(on: connection) != nil
  }

  /// Makes the ledger tables where they are missing, and migrates those of an earlier format.
  ///
  /// Either all of it happens, or nothing: a failure or a crash on the way leaves the tables as they were.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` with `newerLedger`.
  @discardableResult
  package static func prepare(on connection: borrowing SQLiteConnection) throws -> Preparation {
    let found = try format(on: connection) ?? 0
    if found == format { return .present }
    let transaction = try SQLiteTransaction(on: connection)
    if found == 0 { try connection.execute(definition) }
    for statements in LedgerMigration.statements.dropFirst(found == 0 ? .max : Int(found) - 1) {
      try connection.execute(statements)
    }
    try connection.execute("UPDATE main.buckia_settings SET value = \(format) WHERE name = 'format'")
    try transaction.commit()
    return found == 0 ? .created : .migrated(from: found)
  }
}

extension SQLiteStatement {
  /// Binds text, or NULL.
  func bind(optional value: String?, at index: Int) throws(SQLiteError) {
    if let value { try bind(value, at: index) } else { try bindNull(at: index) }
  }
}
