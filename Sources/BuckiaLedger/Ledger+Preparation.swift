import SQLiteConnections
import SQLiteSchemas

extension Ledger {
  /// What ``prepare(on:)`` found and did.
  package enum Preparation: Equatable, Sendable {
    /// The tables were there, in the present format.
    case present
    /// The tables were made.
    case created
    /// The tables were there in an earlier format, and have been migrated.
    case migrated(from: Int64)
  }

  /// All tables in the present format.
  private static let definition = [
    LedgerSettings.definition, LedgerEntries.definition, RefusedFiles.definition, ConflictLog.definition,
    LargeValues.definition, HeldParts.definition, KnownRenames.definition, ContestedKeys.definition,
    StreamEntries.definition, AppliedEffects.definition, ConflictDetails.definition, ResolutionRecord.definition,
    ConflictRule.definition, RowClocks.definition, ShareEntry.definition, ShadowEntry.definition,
    OutboxEntry.definition, OutboxPart.definition, AcknowledgementEntry.definition, TakenBackRows.definition,
    VouchEntry.definition,
    InvitationEntry.definition, AcceptedEntry.definition,
    StateEntry.definition, AsideRows.definition, ResendRequest.definition,
    RowNameEntry.definition, TranslatedRows.definition, DeletionNotices.definition, ForgottenDeletions.definition,
    RecipientKey.definition, UntoldRows.definition, UntakenRows.definition,
    ParkedRows.definition, KeptRows.definition, CountedTable.definition,
    WideningChanges.definition, Tombstones.definition, DecidedRows.definition,
  ].joined(separator: "\n")

  /// Drops all tables and views whose names are reserved.
  ///
  /// - Returns: How many tables there were.
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
    try SharedView.refresh(on: connection)
    try connection.execute("UPDATE main.buckia_settings SET value = \(format) WHERE name = 'format'")
    try transaction.commit()
    return found == 0 ? .created : .migrated(from: found)
  }
}
