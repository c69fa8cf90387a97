import BuckiaApply
import BuckiaBytes
import BuckiaDiff
import BuckiaFormat
import BuckiaLedger
import SQLiteSchemas
import BuckiaSharing
import SQLiteChangesets
import SQLiteConnections

extension DatabaseManager {
  /// Shares a part of the database with others: the first time all of it, then what has changed since.
  ///
  /// What they have got is kept in the database, in one transaction with the file that says it. A crash at any moment leaves either
  /// nothing, or a file that the next call delivers, with the same id and the same bytes.
  ///
  /// ```swift
  /// let home = BuckiaHome.standard
  /// let scope = ShareScope { SharedTable("album").where("id = :album", ["album": 7]) }
  /// let anna = try ShareRecipient(home.contact(named: "anna"))
  /// let report = try database.share(scope, to: [anna], output: .path("outbox"), signedBy: home.identity())
  /// print(report.path ?? "nothing has changed")
  /// ```
  ///
  /// The file is encrypted for the recipients and says, signed, that it is for them; whoever passes it on cannot pass it off as meant
  /// for others.
  ///
  /// - Parameters:
  ///   - scope: What is shared. If it has a name, and had another content before, what was sent is adjusted.
  ///   - recipients: With whom: up to 10,000. All of them get the same diff, in files for up to 64 of them each; see
  ///     ``ShareReport/files``.
  ///   - output: Where the file goes.
  ///   - options: What becomes of rows that have left the scope, and more.
  ///   - identity: Who signs the file, such as ``BuckiaHome/identity()``; nil for an unsigned file, which can only be one that is
  ///     left unencrypted, and is not taken where only known senders are trusted.
  ///   - progress: Is told how far the comparison has come. May throw to stop.
  /// - Returns: What was found and written; `id` is nil when nothing has changed, and then there is no file.
  /// - Throws: `BuckiaError`: `cannotEncrypt` when a recipient has no key, or when the connection of the app has TEMP tables or triggers and `PRAGMA temp_store` is not MEMORY; `noIdentity` when nobody signs; `invalidScope`, `invalidSelection` or `noSuchTable` when the scope cannot be followed;
  ///   `misuse` when there are several files and the output is not a folder, and for a borrowed database inside a transaction of the
  ///   app, which may still roll back; when the database cannot be written. Nothing is sent then. When the file cannot be written,
  ///   the next call delivers it.
  @discardableResult
  public func share(
    _ scope: ShareScope, to recipients: [ShareRecipient], output: DiffOutput, options: ShareOptions = ShareOptions(),
    signedBy identity: Identity? = nil, progress: @escaping (DiffProgress) throws -> Void = { _ in }
  ) throws -> ShareReport {
    var (report, seconds) = try WallClock.timing {
      try withWriter { connection in
        guard !isBorrowed || !connection.isInTransaction else {
          throw BuckiaError(.misuse, "nothing can be shared inside a transaction of the app, which may still roll back")
        }
        guard !recipients.isEmpty else { throw BuckiaError(.misuse, "no recipient is named") }
        let sealing = try ShareSealing(of: options, for: recipients, signedBy: identity)
        let run = ShareRun(scope, recipients, output, options, sealing, home, progress)
        if options.isUnencrypted { return try run.run(on: connection) }
        return try Opening.sealing(true) {
          try TemporaryFilesInMemory.whileRequired(on: connection) { try run.run(on: connection) }
        }
      }
    }
    report.seconds = seconds
    return report
  }
}
