import SQLiteConnections
import SQLiteSchemas

extension Ledger {
  /// All tables.
  private static let definition = [
    LedgerSettings.definition, LedgerEntries.definition, RefusedFiles.definition, ConflictLog.definition,
    LargeValues.definition, HeldParts.definition, KnownRenames.definition, ContestedKeys.definition,
    StreamEntries.definition, AppliedEffects.definition, ResolutionRecord.definition,
    ConflictRule.definition, RowClocks.definition, RowNotes.definition, ShareEntry.definition, ShadowEntry.definition,
    OutboxEntry.definition, OutboxPart.definition, AcknowledgementEntry.definition,
    VouchEntry.definition,
    InvitationEntry.definition, AcceptedEntry.definition,
    StateEntry.definition, ResendRequest.definition,
    RowNameEntry.definition, TranslatedRows.definition, DeletionNotices.definition, ForgottenDeletions.definition,
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
