import SQLiteConnections

extension DatabaseManager {
  /// Shares a part of the database with others: everything the first time, and then the changes.
  ///
  /// The sent rows are recorded in the database, in one transaction with the file. A crash at any moment leaves either
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
  /// The file is encrypted for the recipients, and names them under its signature. It cannot be passed off as meant for
  /// others.
  ///
  /// - Parameters:
  ///   - scope: The scope. If it has a name and has changed, the sent rows are adjusted to it.
  ///   - recipients: With whom: up to 10,000. All of them get the same diff, in files for up to 64 of them each; see
  ///     ``ShareReport/files``.
  ///   - output: The destination of the file.
  ///   - options: What becomes of rows that have left the scope, and more.
  ///   - identity: The signing identity, such as ``BuckiaHome/identity()``; nil for an unsigned file, which must be
  ///     unencrypted, and is refused by receivers that trust only known senders.
  ///   - progress: Called with the progress of the comparison. May throw to stop it.
  /// - Returns: The changes and the written file; `id` is nil if nothing has changed, and there is no file.
  /// - Throws: `BuckiaError`: `cannotEncrypt` when a recipient has no key, or when the connection of the app has TEMP
  ///   tables or triggers and `PRAGMA temp_store` is not MEMORY; `noIdentity` when the options ask for a signature and
  ///   there is no identity; `invalidScope`, `invalidSelection` or `noSuchTable` when the scope cannot be followed;
  ///   `misuse` when there are several files and the output is not a folder, and for a borrowed database inside a
  ///   transaction of the app, which may still roll back; when the database cannot be written. Nothing is sent then.
  ///   When the file cannot be written, the next call delivers it.
  @discardableResult
  public func share(
    _ scope: ShareScope, to recipients: [ShareRecipient], output: DiffOutput, options: ShareOptions = ShareOptions(),
    signedBy identity: Identity? = nil, progress: @escaping (DiffProgress) throws -> Void = { _ in }
  ) throws -> ShareReport {
    var (report, seconds) = try WallClock.timing {
      try withWriter { connection in
        try requireOwnTransaction(or: "nothing can be shared", on: connection)
        guard !recipients.isEmpty else { throw BuckiaError(.misuse, "no recipient is named") }
        let sealing = try ShareSealing(of: options, for: recipients, signedBy: identity)
        let run = ShareRun(scope, recipients, output, options, sealing, home, progress)
        if options.isUnencrypted { return try run.run(on: connection) }
        return try Opening.sealing(true) {
          try connection.requiringTemporaryFilesInMemory { try run.run(on: connection) }
        }
      }
    }
    report.seconds = seconds
    return report
  }
}

extension DatabaseManager {
  /// The scopes that are shared with some people, or offered by an accepted invitation, oldest first.
  ///
  /// ```swift
  /// for scope in try database.sharedScopes(with: [ShareRecipient("ben")]) { print(scope.name ?? scope.json) }
  /// ```
  ///
  /// - Parameter recipients: All recipients of the share: a share with only some of them is another one.
  /// - Throws: `BuckiaError` when the database cannot be read.
  public func sharedScopes(with recipients: [ShareRecipient]) throws -> [ShareScope] {
    let audience = ShareEntry.audience(of: recipients.map(\.name))
    return try withReader { connection in
      try ShareEntry.all(on: connection).filter { $0.audience == audience }.map { try ShareScope(json: $0.scope) }
    }
  }
}

extension ShareEntry {
  /// Whom a share is for, as a document: equal people have equal ones.
  static func audience(of names: [String]) -> String {
    JSONValue.strings(Set(names).sorted()).text()
  }
}

extension DatabaseManager {
  /// Sets the number of days without a diff after which a replica is no longer waited for before deletions are
  /// forgotten.
  ///
  /// Under the policy `latest`, a deletion is kept until all replicas that exchange rows of its table know of it. A
  /// replica that was silent for longer has to apply the shares made since, or a snapshot, before its own diffs are
  /// accepted.
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

extension ShareScope {
  /// Reads the document in a file; `Schemas/scope.md` describes it.
  ///
  /// - Parameter path: The file, of at most 1 MiB.
  /// - Throws: `BuckiaError` when it cannot be read; with `invalidScope` when it is no scope.
  public init(contentsOf path: String) throws {
    self = try BuckiaError.wrapping { try ShareScope(reading: PosixFile(reading: path), path) }
  }

  /// Reads the document that standard input gives.
  ///
  /// - Throws: As for a file.
  package static func standardInput() throws -> ShareScope {
    try BuckiaError.wrapping { try ShareScope(reading: PosixFile.standardInput(), "standard input") }
  }

  private init(reading input: any ByteInput, _ name: String) throws {
    guard let bytes = try input.contents(limit: 1 << 20) else {
      throw BuckiaError(.invalidScope, "it has more than 1 MiB", path: name)
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw BuckiaError(.invalidScope, "it is no text in UTF-8", path: name)
    }
    try self.init(json: text)
  }
}

/// What becomes of a row at the receivers once it is no longer in the scope, while it is still in the database.
public enum LeavePolicy: String, Sendable, CaseIterable {
  /// It is withdrawn: it goes there, too, unless others have shared it as well.
  case withdraw
  /// It stays there as it was sent last.
  case keep
}

/// What becomes of rows that would be shared only because of a change by somebody who does not have them.
public enum WideningPolicy: String, Sendable, CaseIterable {
  /// They are held back, unless ``always`` was said of this share before.
  case hold
  /// Those that are there now are sent.
  case once
  /// They are sent, now and in later shares with the same people.
  case always
  /// They are held back, from now on, too.
  case never
}

/// How to share.
public struct ShareOptions: Sendable {
  /// What becomes of rows that have left the scope.
  public var onLeave = LeavePolicy.withdraw
  /// True if rows that went here because of an undo, or because somebody does not share them any more, are deleted at the receivers, too.
  /// Otherwise the rows are withdrawn, as with ``LeavePolicy/withdraw``.
  public var propagates = false
  /// What becomes of rows that would be shared only because of a change by somebody who does not have them.
  public var widening = WideningPolicy.hold
  /// True if everything in the scope is sent again, for a receiver who has lost a file or has never got one.
  public var resyncs = false
  /// True if a file is written where there is nothing to send, and changes of others have been applied since the last one: it tells them that
  /// they have. Every other file tells it, too.
  public var acknowledges = false
  /// True if the file is left as it is, neither encrypted nor signed by all means: everybody who gets hold of it can read it.
  public var isUnencrypted = false
  /// True if nothing is written or sent, and only the report is wanted.
  public var isDryRun = false

  /// Makes options.
  public init() {}
}
