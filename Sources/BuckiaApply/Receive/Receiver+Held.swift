import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Held parts of earlier files.
extension Receiver {
  /// Applies held parts of earlier files for which an upgrade of the application has made a place. A part that fails
  /// stays held, and the report gives the reason; the others are applied.
  ///
  /// - Returns: The outcomes of files with parts that were tried.
  /// - Throws: What is not a part's own fault; nothing has been applied then.
  package func releaseHeld() throws -> [DiffOutcome] {
    while true {
      let effects = settings.observer?.mark ?? 0
      do {
        let transaction = try SQLiteTransaction(on: session.connection)
        let released = try HeldRelease(present, session).run()
        try session.effects.write(on: session.connection)
        try KeyRanges.move(on: session.connection)
        try transaction.commit()
        session.noteReportedFailures()
        return released.map(\.outcome)
      } catch {
        settings.observer?.rewind(to: effects)
        session.forget()
        session.effects = EffectQueue()
        guard let lost = error as? HeldRelease.TransactionLost else { throw error }
        if isPartOfAnother, !session.connection.isInTransaction { throw ReplicationError.transactionLost(lost.cause) }
        try note(lost)
      }
    }
  }

  /// Remembers that a held part cannot be applied, of which SQLite has rolled back everything.
  ///
  /// - Throws: The failure, when it is not the part's fault.
  func note(_ lost: HeldRelease.TransactionLost) throws {
    if (lost.cause as? SQLiteError)?.isFullDisk == true {
      try rehearsing { _ in _ = try HeldRelease(present, session).run() }
    }
    if session.heldFailures[lost.part] != nil { return }
    guard let refusal = (lost.cause as? any FileFault)?.refusal else { throw lost.cause }
    session.noteFailure(of: lost.part, refusal)
  }
}
