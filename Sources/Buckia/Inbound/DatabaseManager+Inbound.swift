import SQLiteConnections

extension DatabaseManager {
  /// Applies diff files, raw changesets and whole inbound folders, each file exactly once.
  ///
  /// Files are applied in the order of their ids. Each is verified before anything of it is committed, and its rows
  /// commit with its ledger row, in a transaction that it may share with its neighbours. A file that is damaged or
  /// refused changes nothing, is recorded with the reason and does not stop the others. Applied files are removed from
  /// folders after their transaction is safely on disk, unless the options keep them. Inside a transaction of the app
  /// they stay, and so does everything in a folder that holds files made from this database.
  ///
  /// While an encrypted file is among them, SQLite keeps its temporary files in memory: only the database has its
  /// contents unencrypted on disk. If SQLite cannot do that, nothing is applied: on a connection of the app that has
  /// TEMP tables or an open transaction, unless the app has set `PRAGMA temp_store = MEMORY` before.
  ///
  /// ```swift
  /// let report = try database.processInboundChanges(["inbound"]) { conflict in
  ///   conflict.table == "tags" ? .takeIncoming : .useDefault
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - paths: Files and folders. A folder that is not there yet, in a parent folder that is, counts as an empty one.
  ///   - options: How to apply.
  ///   - resolver: Called for each conflict, before the policies. It is called again for the same conflict if files are
  ///     applied again because one of them failed.
  ///   - progress: Called with the progress of the work. May throw to stop it.
  /// - Returns: What became of each file.
  /// - Throws: `BuckiaError` for a path that does not exist, and when the database cannot be opened or written; with `cannotEncrypt`
  ///   when an encrypted file would be written into temporary files in clear; what stopped the work. `ApplyInterruption` where some
  ///   files were done before.
  @discardableResult
  public func processInboundChanges(
    _ paths: [String], options: ApplyOptions = ApplyOptions(), resolver: ConflictResolver? = nil,
    progress: ApplyProgressHandler? = nil
  ) throws -> ApplyReport {
    try processInboundChanges(
      InboundSource.paths(paths), options: options, resolver: resolver, progress: progress)
  }

  /// The same for files, folders and bytes that came without a file.
  package func processInboundChanges(
    _ sources: [InboundSource], options: ApplyOptions, resolver: ConflictResolver? = nil,
    progress: ApplyProgressHandler? = nil
  ) throws -> ApplyReport {
    try requireFile()
    let listing = try InboundListing(
      sources, openedWith: ReaderKeys(of: home, and: options.decryption),
      limits: (.unattended(memory: options.memoryLimit), options.limits.allowed))
    let isSealed = listing.items.contains { $0.namedKind ?? .encrypted == .encrypted }
    var (report, seconds) = try WallClock.timing {
      try withApplier(isRehearsal: options.isDryRun && !isSealed) { connection in
        try Opening.sealing(isSealed) {
          guard listing.items.contains(where: \.isEncrypted) else {
            return try apply(listing, options, resolver, progress, on: connection)
          }
          return try connection.requiringTemporaryFilesInMemory {
            try apply(listing, options, resolver, progress, on: connection)
          }
        }
      }
    }
    report.seconds = seconds
    return report
  }

  /// Works on a connection that can write.
  ///
  /// - Parameter isRehearsal: True to write to a temporary copy of a database that may only be read. What was encrypted must not get
  ///   there.
  private func withApplier<Result>(
    isRehearsal: Bool, _ body: (borrowing SQLiteConnection) throws -> Result
  ) throws -> Result {
    guard isRehearsal, !isBorrowed, !FileSystem.isWritableDatabase(path) else { return try withWriter(body) }
    return try withReader { connection in
      let copy = try TemporaryDatabase(in: TemporaryBuffer.standardFolder, permissions: 0o600)
      try connection.copyState(to: copy.path, polling: poll)
      return try body(try SQLiteConnection(opening: copy.path, as: .readWrite))
    }
  }

  private func apply(
    _ listing: InboundListing, _ options: ApplyOptions, _ resolver: ConflictResolver?,
    _ progress: ApplyProgressHandler?,
    on connection: borrowing SQLiteConnection
  ) throws -> ApplyReport {
    // A file that was cut to nothing would become the author's database, without the rows that were here.
    if options.schema == .adopt, !isBorrowed { try connection.requireContent() }
    // Files that may still be rolled back are neither streamed nor removed.
    let isFinal = !options.isDryRun && !(isBorrowed && connection.isInTransaction)
    let answers = try AnswerRun(
      options: options, home: home, time: WallClock.unixMilliseconds,
      isInsideAnother: isBorrowed && connection.isInTransaction
    ).run(listing, for: path, on: connection)
    let files = InboundFiles(listing.items, streams: isFinal, progress: progress)
    // A dry run keeps the write lock until the last file: that is taken when nothing is left to be verified.
    if options.isDryRun {
      files.takes = try ReceiverGate(on: connection, senders: home.knownSenders(), trust: options.trust).takes
      try files.verifyAll(keeping: options.memoryLimit / 2)
    }
    let rehearsal = options.isDryRun ? try SQLiteTransaction(on: connection) : nil
    let snapshot = options.isDryRun ? nil : options.snapshot
    let version = try snapshot.flatMap { try snapshotVersion(on: connection, for: $0) }
    let mark = try snapshot.flatMap { try SnapshotMark(at: $0) }
    let repair = try snapshot.flatMap { try SnapshotMark.repair($0, marked: mark, of: connection) }
    let unsent =
      if let known = options.snapshot { try UnsentChanges(in: connection, since: known) } else {
        UnsentChanges?.none
      }
    let edits = options.conflicts.usesLatest ? try unsent?.edits(on: connection) : nil
    let before = options.isDryRun ? try ConflictRecord.newest(on: connection) : 0
    var report: ApplyReport
    do {
      report = try connection.withDurableCommits {
        try receive(
          files, of: listing, options, removesFiles: isFinal, resolver, beside: edits, before: mark?.id, on: connection)
      }
      report.answers = answers
      if let repair { report.warnings.append(repair) }
      if let snapshot, mark == nil { report.warnings.append(Warning(.firstSnapshot, snapshot)) }
    } catch var interruption as ApplyInterruption {
      interruption.report.answers = answers
      // Previously applied changes are not this database's own. The next difference must not contain them.
      if let snapshot {
        interruption.keep(snapshot, of: connection, without: unsent, beside: edits, since: version)
      }
      throw interruption
    }
    if let snapshot {
      try report.keep(snapshot, of: connection, without: unsent, beside: edits, since: version)
    }
    if options.isDryRun {
      let conflicts = NewConflicts(after: before)
      report.dryRunConflictCounts = try conflicts.counts(on: connection)
      report.dryRunConflicts = try conflicts.first(naming: home.knownSenders(), on: connection)
    }
    rehearsal?.rollback()
    return report
  }

  private func receive(
    _ files: InboundFiles, of listing: InboundListing, _ options: ApplyOptions, removesFiles: Bool,
    _ resolver: ConflictResolver?, beside edits: UnsentEdits?, before snapshot: String?,
    on connection: borrowing SQLiteConnection
  ) throws -> ApplyReport {
    let changedRows = options.changedRowLimit > 0 ? ChangedRowRecorder(limit: options.changedRowLimit) : nil
    var settings = ApplySettings(options, resolver: resolver, time: WallClock.unixMilliseconds)
    settings.progress = { try files.didApply(rows: $0) }
    settings.observer = changedRows
    settings.unsent = edits
    settings.snapshot = snapshot
    settings.senders = try home.knownSenders()
    let unknown = try OptionNames(options.ignoredColumns, options.matches, options.conflicts)
      .unknownTables(in: [SchemaReader(connection)])
    let shares = InboundShares(on: connection, senders: settings.senders, options.conflicts, options.copies)
    shares.matches = options.matches
    shares.ignoresColumns = !options.ignoredColumns.isEmpty
    settings.sharing = shares
    if !options.isDryRun {
      settings.retention = try Ledger.exists(on: connection) ? LedgerSettings.retention(on: connection) : .standard
    }
    // An app's resolver may read with its own connection. And work inside another transaction cannot be repeated with
    // the indexes kept, should the disk have no room to sort them.
    if connection.isInTransaction || isBorrowed && resolver != nil { settings.indexPolicy = .keep }
    var receiver = try Receiver(
      on: connection, trust: options.trust, settings: settings, clock: { WallClock.unixMilliseconds })
    files.takes = receiver.gate.takes
    let registration = ReplicaRegistration(of: connection, in: home)
    var warnings: [Warning] = []
    var failure: (any Error)?
    do {
      if let warning = try Warning.clockBehind(on: connection) { warnings.append(warning) }
      if !options.isDryRun {
        let settled = try registration.settle(on: connection)
        warnings += settled.warnings
        if removesFiles {
          files.removal = InboundRemoval(
            options, of: listing.items, appliedTo: path, replica: settled.replica?.id, home: home)
        }
      }
      files.begin(after: try receiver.releaseHeld())
      try receiver.receive(files)
      warnings += try receiver.settleParked()
    } catch {
      failure = error
    }
    files.finishRemoving()
    do { try receiver.end() } catch { failure = failure ?? error }
    if let failure, files.outcomes.isEmpty { throw failure }
    if !options.isDryRun { try registration.noteProgress(on: connection, in: &warnings) }
    var report = ApplyReport(
      trust: receiver.trust, diffs: files.outcomes, ignored: listing.ignored,
      createdLedger: receiver.hasMadeLedger, seconds: 0,
      isDryRun: options.isDryRun, changedRows: try changedRows?.changedRows() ?? [],
      outgoingFolders: files.removal.outgoingFolders.sorted())
    report.misnamed = listing.misnamed
    // A file may have made them.
    let schema = try SchemaReader(connection)
    warnings += unknown.filter { schema.entry(named: $0) == nil }.map { Warning(.unknownTable, $0.text) }
    if !options.matches.isEmpty, !shares.hasMatched, !report.applied.isEmpty {
      warnings.append(Warning(.nothingMatched))
    }
    report.warnings = warnings
    guard let failure else { return report }
    throw ApplyInterruption(report: report, cause: BuckiaError.wrapped(failure))
  }
}

extension ApplySettings {
  /// The settings for applying from the options.
  ///
  /// - Parameters:
  ///   - options: The options.
  ///   - resolver: Called for each conflict, before the policies.
  ///   - time: The present time, in milliseconds since 1970.
  package init(_ options: ApplyOptions, resolver: ConflictResolver?, time: Int64) {
    self.init(
      policies: options.conflicts, resolver: resolver, schema: options.schema, firesTriggers: options.triggers,
      memoryLimit: options.memoryLimit, time: time)
    adoptsDataset = options.adoptsDataset
    ignoredColumns = options.ignoredColumns
    senderBytes = options.limits.senderBytes
  }
}

extension DatabaseManager {
  /// Applies diff files, raw changesets and whole inbound folders, on a thread of its own.
  ///
  /// It does what the synchronous call of the same name does. When the task is cancelled, the work stops before the next file, or
  /// within a few thousand changes of the present one, which is then taken back with the files that share its transaction.
  /// A borrowed database belongs to its thread: use the synchronous call there.
  ///
  /// ```swift
  /// let report = try await database.processInboundChanges(["inbound"], progress: { print($0.files, "of", $0.fileCount) })
  /// ```
  ///
  /// - Parameters:
  ///   - paths: Files and folders.
  ///   - options: How to apply.
  ///   - resolver: Called for each conflict, on the thread that does the work.
  ///   - progress: Called with the progress of the work, on the same thread. May throw to stop it.
  /// - Returns: What became of each file.
  /// - Throws: As the synchronous call; `CancellationError`, or an `ApplyInterruption` with it as the cause.
  @discardableResult
  public func processInboundChanges(
    _ paths: [String], options: ApplyOptions = ApplyOptions(), resolver: ConflictResolver? = nil,
    progress: @escaping @Sendable (ApplyProgress) throws -> Void = { _ in }
  ) async throws -> ApplyReport {
    try await CancellationFlag.onThreadOfItsOwn { cancellation in
      try processInboundChanges(
        paths, options: options, resolver: resolver,
        progress: cancellation.checking(progress))
    }
  }
}

/// Makes sure that what is committed is on disk, since files are removed on the strength of it.
///
/// With a rollback journal a commit is the removal of that journal. Only `PRAGMA synchronous = EXTRA` also waits until
/// the removal is on disk; otherwise the journal could be back after a power cut, and undo a file that was removed. In
/// WAL mode it waits for the WAL at each commit, as FULL does. See <https://sqlite.org/pragma.html#pragma_synchronous>.
extension SQLiteConnection {
  /// The value of the setting `EXTRA`.
  private static let extraSynchronous: Int64 = 3

  /// Raises the setting while `body` runs, unless a transaction is open: then nothing is removed either.
  ///
  /// - Throws: `SQLiteError`; whatever `body` throws. The setting is as before.
  func withDurableCommits<Result>(_ body: () throws -> Result) throws -> Result {
    guard !isInTransaction, let found = try integer("PRAGMA main.synchronous"), found < Self.extraSynchronous else {
      return try body()
    }
    try execute("PRAGMA main.synchronous = \(Self.extraSynchronous)")
    return try cleaningUp(after: body) {
      // A transaction that is still open is the app's, and SQLite does not change the setting inside one.
      if !isInTransaction { try execute("PRAGMA main.synchronous = \(found)") }
    }
  }
}
