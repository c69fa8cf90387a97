import SQLiteConnections

extension DatabaseManager {
  /// Undoes the effects of diffs on this database, also after later changes of their rows.
  ///
  /// The effects of diffs are kept with the ledger, up to 4 MiB of changes of all diffs and for 30 days by default
  /// (``setUndoRetention(bytes:days:)``). They are inverted and applied: inserted rows are deleted, deleted and changed
  /// rows get their old values. A column that was changed since keeps its value, and a row that was changed since is
  /// not deleted. Both are recorded as conflicts. Tables and columns that the diff has created stay.
  ///
  /// An undo has an entry in the ledger and an id, and can be taken back, too. The diff that was taken back counts as applied: it is not
  /// applied again when it arrives once more.
  ///
  /// ```swift
  /// let report = try database.undo([.diff("0ujtsYcgvSTl8PAuAdqWYSMnLOv")])
  /// try database.undo([.diff(report.undone[0].id.description)])  // and back again
  /// ```
  ///
  /// - Parameters:
  ///   - subjects: The diffs to undo. The newest is undone first, whatever their order.
  ///   - options: How to treat rows that were changed since.
  /// - Returns: The result.
  /// - Throws: `BuckiaError` when a diff is not in the ledger (`noSuchDiff`), a sender is not known (`noSuchSender`), a diff has been taken back (`alreadyUndone`), or is not
  ///   known well enough any more (`notKept`), and when the schema has changed since so that its rows do not fit. Nothing has
  ///   been changed then.
  @discardableResult
  public func undo(_ subjects: [UndoSubject], options: UndoOptions = UndoOptions()) throws -> UndoReport {
    try withWriter { connection in
      guard try Ledger.exists(on: connection) else {
        throw BuckiaError(.noSuchDiff, "nothing has been applied to this database", path: path)
      }
      let time = WallClock.unixMilliseconds
      var settings = ApplySettings(policies: options.conflicts, time: time, progress: { _ in try poll() })
      settings.senders = try home.knownSenders()
      if connection.isInTransaction { settings.indexPolicy = .keep }
      let session = settings.session(on: connection)
      return try session.whileReady {
        let transaction = try SQLiteTransaction(on: connection)
        try Ledger.prepare(on: connection)
        let undone = UndoneRows()
        if try ProvenanceEntry.exist(on: connection) || !ShareEntry.all(on: connection).isEmpty {
          settings.observer = undone
        }
        settings.retention = try LedgerSettings.retention(on: connection)
        let registration = ReplicaRegistration(of: connection, in: home)
        let warnings = options.isDryRun ? [] : try registration.settle(on: connection).warnings
        var report = try undo(subjects, options, settings, session, on: connection)
        report.warnings += warnings
        try undone.note(on: connection)
        if options.isDryRun { transaction.rollback() } else { try transaction.commit() }
        if !options.isDryRun { try registration.noteProgress(on: connection, in: &report.warnings) }
        return report
      }
    }
  }

  private func undo(
    _ subjects: [UndoSubject], _ options: UndoOptions, _ settings: ApplySettings, _ session: ApplySession,
    on connection: borrowing SQLiteConnection
  ) throws -> UndoReport {
    let wanted = try wanted(subjects, on: connection)
    var report = UndoReport(isDryRun: options.isDryRun)
    guard !wanted.isEmpty else { return report }
    let newest = try [LedgerEntries.newestID(on: connection)].compactMap { $0 }
    let ids = try home.newIDs(wanted.count, after: newest, unixSeconds: settings.time / 1_000).ids
    for (id, subject) in zip(ids, wanted) {
      let mark = settings.observer?.mark ?? 0
      do {
        let savepoint = try SQLiteTransaction(on: connection)
        let undo = try DiffUndo(of: subject.diff, polling: poll, on: connection)
        // The undo of a change that was made here is another change, which recipients are told of.
        var settings = settings
        if try subject.diff.isRecordedHere(on: connection) { settings.observer = nil }
        let result = try undo.run(
          as: id, digest: Self.digest, settings: settings, session: session, in: savepoint)
        try savepoint.commit()
        report.undone.append(UndoReport.Undone(subject.diff.name, id, result))
      } catch let error as ReplicationError where !subject.isNamed && error.code != .conflict {
        session.forget()
        settings.observer?.rewind(to: mark)
        guard error.code != .alreadyUndone else { continue }
        report.skipped.append(
          UndoReport.Skipped(diff: subject.diff.name, code: error.code, reason: error.message))
      }
    }
    return report
  }

  /// The diffs to take back, the newest first.
  private func wanted(
    _ subjects: [UndoSubject], on connection: borrowing SQLiteConnection
  ) throws -> [(diff: AppliedDiff, isNamed: Bool)] {
    var wanted: [Int64: (diff: AppliedDiff, isNamed: Bool)] = [:]
    func add(_ diffs: [AppliedDiff]) {
      for diff in diffs where wanted[diff.entry] == nil { wanted[diff.entry] = (diff, false) }
    }
    for subject in subjects {
      switch subject {
      case .sender(let text): add(try AppliedDiff.all(of: try sender(text, on: connection), on: connection))
      case .unsigned: add(try AppliedDiff.all(of: "", on: connection))
      case .diff(let name):
        let found = try AppliedDiff.all(named: name, on: connection)
        guard let diff = found.first else {
          throw BuckiaError(
            .noSuchDiff, "no diff with the id \(EscapedText.quoted(name)) has been applied here", path: path)
        }
        guard found.count == 1 else {
          throw BuckiaError(
            .equivocation,
            "\(found.count) senders have made diffs with the id \(EscapedText.quoted(name)); undo those of one sender",
            path: path)
        }
        wanted[diff.entry] = (diff, true)
      }
    }
    return wanted.values.sorted { $0.diff.entry > $1.diff.entry }
  }

  /// The key of the sender that a text means: the key itself, or its beginning as the log shows it.
  ///
  /// - Throws: `BuckiaError` with `noSuchSender` for a text that is no key of a sender or a contact.
  private func sender(_ text: String, on connection: borrowing SQLiteConnection) throws -> String {
    let senders = try home.knownSenders()
    let all = try AppliedDiff.senders(on: connection)
    let key = text.lowercased()
    if all.contains(key) || !senders.isStranger(key) { return key }
    let beginning = key.hasPrefix("key ") ? key.dropFirst(4).prefix { $0 != "…" } : key.prefix { $0 != "…" }
    let found = beginning.utf8.count < 8 ? [] : all.filter { $0.hasPrefix(beginning) }
    guard let only = found.first, found.count == 1 else {
      let known = all.filter { $0 != LedgerEntries.ownSender && $0 != LedgerKey.mergeSender }.map(senders.shown)
      throw BuckiaError(
        .noSuchSender,
        "\(EscapedText.quoted(text)) is no contact, and nothing was applied from such a sender; "
          + (known.isEmpty
            ? "nothing was applied from anybody" : "these have sent something: \(known.joined(separator: ", "))"),
        path: path)
    }
    return only
  }

  private static func digest(of changes: TemporaryBuffer) throws -> [UInt8] {
    var hasher = ContentHasher()
    try changes.forEachPiece { hasher.update($0) }
    return hasher.digest.bytes
  }

  /// Sets how many effects of diffs are kept for undo.
  ///
  /// - Parameters:
  ///   - bytes: The most uncompressed bytes of changes of all diffs: the newest are kept. 0 keeps nothing. Nil leaves
  ///     the limit unchanged: 4 MiB at first.
  ///   - days: The number of days. Nil leaves it unchanged: 30 at first.
  /// - Throws: `BuckiaError` when the database cannot be written, or has a newer ledger.
  public func setUndoRetention(bytes: Int? = nil, days: Int? = nil) throws {
    try withWriter { connection in
      let transaction = try SQLiteTransaction(on: connection)
      try Ledger.prepare(on: connection)
      var retention = try LedgerSettings.retention(on: connection)
      if let bytes { retention.bytes = max(0, bytes) }
      if let days { retention.days = max(0, days) }
      try LedgerSettings.setRetention(retention, on: connection)
      try AppliedEffects.prune(to: retention, at: WallClock.unixMilliseconds, on: connection)
      try transaction.commit()
    }
  }
}

extension UndoReport.Undone {
  fileprivate init(_ diff: String, _ id: KSUID, _ result: ApplyResult) {
    self.init(
      diff: diff, id: id, inserted: result.counts.inserted, updated: result.counts.updated,
      deleted: result.counts.deleted, conflicts: result.counts.conflicts, omitted: result.counts.omitted,
      changedTables: result.changedTables, warnings: result.warnings)
  }
}

/// How diffs are taken back.
public struct UndoOptions: Sendable {
  /// The policy for rows that were changed since. Unchanged columns get their old values in any case; `keepLocal` keeps
  /// the others, `takeIncoming` undoes the later changes, too.
  public var conflicts: ConflictPolicies
  /// True if only a report is wanted: everything is tried and taken back.
  public var isDryRun: Bool

  /// Creates options; the defaults are those of the command line.
  public init(conflicts: ConflictPolicies = .keepLocal, isDryRun: Bool = false) {
    self.conflicts = conflicts
    self.isDryRun = isDryRun
  }
}

/// The diffs to undo.
public enum UndoSubject: Sendable, Hashable {
  /// A diff, by its id; a raw changeset without one by its digest in hex. An undo has an id, too, and can be taken back.
  case diff(String)
  /// All applied diffs of a sender, by the verified key in hexadecimal digits, or its first eight or more.
  case sender(String)
  /// All applied unsigned diffs.
  case unsigned
}

extension UndoSubject {
  /// The subjects that names of senders stand for.
  ///
  /// - Parameters:
  ///   - names: Names of contacts, removed ones included, keys in hex or their beginnings, or `unsigned`.
  ///   - home: The home with the contacts.
  /// - Throws: As ``BuckiaHome/contacts()``.
  package static func senders(named names: [String], in home: BuckiaHome) throws -> [UndoSubject] {
    guard !names.isEmpty else { return [] }
    let contacts = try home.contacts()
    return names.flatMap { name -> [UndoSubject] in
      if name == "unsigned" { return [.unsigned] }
      let keys = contacts.keys(named: name)
      return keys.isEmpty ? [.sender(name)] : keys.map { .sender($0) }
    }
  }
}

/// What ``DatabaseManager/undo(_:options:)`` did.
public struct UndoReport: Hashable, Codable, Sendable {
  /// One diff that was taken back.
  public struct Undone: Hashable, Codable, Sendable {
    /// What was taken back: its id, or its digest.
    public let diff: String
    /// The id of the undo, by which that can be taken back.
    public let id: KSUID
    /// The number of inserted rows, which the diff had deleted.
    public let inserted: Int
    /// Rows updated.
    public let updated: Int
    /// The number of deleted rows, which the diff had inserted.
    public let deleted: Int
    /// Rows that have been changed since.
    public let conflicts: Int
    /// The number of changes that were not undone because of a conflict.
    public let omitted: Int
    /// The tables that changed.
    public let changedTables: [String]
    /// Warnings.
    public let warnings: [Warning]
  }

  /// A diff that could not be taken back.
  public struct Skipped: Hashable, Codable, Sendable {
    /// The diff: its id, or its digest.
    public let diff: String
    /// What kind of reason.
    public let code: BuckiaErrorCode
    /// Why, as a sentence.
    public let reason: String
  }

  /// The undone diffs, newest first.
  public internal(set) var undone: [Undone] = []
  /// What of a sender could not be taken back. A diff that was named by itself is an error instead.
  public internal(set) var skipped: [Skipped] = []
  /// Warnings about the database. Those about one diff are with that diff.
  public internal(set) var warnings: [Warning] = []
  /// True if everything was only tried.
  public let isDryRun: Bool
}
