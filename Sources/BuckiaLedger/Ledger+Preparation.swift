import SQLiteConnections

extension Ledger {
  /// All tables.
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

  /// Makes the ledger tables where they are missing: all of them, or none where that fails.
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
