import BuckiaLedger
import SQLiteConnections

extension DatabaseManager {
  /// Sets after how many days without a word from somebody they are not waited for any more before deletions are forgotten.
  ///
  /// Where the later diff wins, a deletion is kept until everybody knows of it with whom rows of its table are exchanged. Whoever has been
  /// silent for longer has to apply what was shared with them since, or a snapshot, before their own diffs are taken.
  ///
  /// - Parameter days: For how many days they are waited for; 180 at first. 0 waits for ever.
  /// - Throws: `BuckiaError` when the database cannot be written, or has a newer ledger.
  public func setSilenceLimit(days: Int) throws {
    try withWriter { connection in
      let transaction = try SQLiteTransaction(on: connection)
      try Ledger.prepare(on: connection)
      try LedgerSettings.setSilence(max(0, days), on: connection)
      try transaction.commit()
    }
  }
}
