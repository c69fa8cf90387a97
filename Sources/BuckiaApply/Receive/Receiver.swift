import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// The way from files to rows: the gate, grouping, retries and the ledger. Folders, single files, raw changesets and borrowed
/// connections all go through it.
///
/// Many files share one transaction, because a transaction costs more than a small file, and small files are applied as
/// one batch. The outcome of a file does not depend on the others: when a batch meets a conflict, its group is rolled
/// back and applied again, each file by itself; when a file fails after it has begun to write, each with a savepoint;
/// when the database fails, each in a transaction of its own. No transaction waits for a file to be verified.
///
/// ```swift
/// var receiver = try Receiver(on: connection, settings: settings, clock: clock)
/// try receiver.receive(files)
/// try receiver.end()
/// ```
package struct Receiver {
  /// The trust mode.
  package var trust: TrustMode { gate.trust }
  /// True if the ledger tables were made for it.
  package let hasMadeLedger: Bool
  package let gate: ReceiverGate
  let settings: ApplySettings
  private let clock: () -> Int64
  let session: ApplySession
  /// True if the transaction was open before. Its earlier work cannot be repeated here.
  let isPartOfAnother: Bool
  /// The number of the first entry that is made in the ledger.
  private let firstEntry: Int64
  /// The files that could not be read so far.
  private var unread = UnreadFiles()
  /// The files that wait so far.
  private var waiting = WaitingFiles()
  /// The number of groups to apply without batches, and the number last time: one conflict is usually followed by more.
  private var groupsWithoutBatch = 0
  private var lastGroupsWithoutBatch = 0

  /// The most files and bytes of changes in one transaction, which keeps other writers waiting.
  private static let groupFileLimit = 4_096
  private static let groupByteLimit = 64 << 20

  /// Prepares a database: creates the ledger tables and sets the trust mode.
  ///
  /// - Parameters:
  ///   - connection: The database, borrowed or of one's own, in a transaction or not.
  ///   - trust: The new trust mode; nil keeps that of the database.
  ///   - settings: How to apply. Its time is that of the clock.
  ///   - clock: The present time, in milliseconds since 1970.
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger; `ReplicationError` as ``ApplySession/begin()``. Nothing has
  ///   been changed then.
  package init(
    on connection: borrowing SQLiteConnection, trust: TrustMode? = nil, settings: ApplySettings,
    clock: @escaping () -> Int64
  ) throws {
    isPartOfAnother = connection.isInTransaction
    self.settings = settings
    self.clock = clock
    session = settings.session(on: connection)
    do {
      try session.begin()
      let transaction = try SQLiteTransaction(on: connection)
      hasMadeLedger = try session.requireLedger()
      if let trust { try LedgerSettings.setTrust(trust, on: connection) }
      gate = try ReceiverGate(on: connection, senders: settings.senders, adoptsDataset: settings.adoptsDataset)
      firstEntry = try LedgerEntries.nextNumber(on: connection)
      try transaction.commit()
    } catch {
      throw cleaningUp(after: error, by: session.end)
    }
  }

  /// Restores the connection.
  package func end() throws { try session.end() }

  /// The settings with the present time.
  var present: ApplySettings {
    var settings = settings
    settings.time = clock()
    return settings
  }

  // MARK: Groups

  /// How files are applied: each way is more careful than the one before it, and slower.
  private enum Care {
    /// Applies small files as one batch, the others one by one. Large files are applied while the rest of them is being
    /// verified.
    case batches
    /// One by one, each verified before.
    case oneByOne
    /// Applies each file with a savepoint.
    case savepoints
    /// Each in a transaction of its own.
    case alone

    /// How to go on after a failure.
    func afterFailure(_ error: any Error) -> Care {
      switch self {
      case .batches where error is ChangesetFeed.Incomplete: .oneByOne
      case .batches, .oneByOne: (error as? any FileFault)?.refusal == nil ? .alone : .savepoints
      case .savepoints, .alone: .alone
      }
    }
  }

  /// How far a group of files came.
  private enum GroupEnd {
    /// The transaction is committed; the file at this index comes next.
    case committed(next: Int)
    /// Its transaction is committed; the application wants to stop before the file at this index.
    case stopped(any Error, at: Int)
    /// Nothing of it has happened: a batch met a conflict. The file at this index has not been looked at.
    case batchConflict(next: Int)
    /// Nothing of it has happened: rows of the file at this index refer to rows that are left out.
    case refersToRefused(at: Int)
    /// Nothing of it has happened: the file at this index failed, or the database did.
    case failed(any Error, at: Int)
  }

  /// Receives all files of a source, in order. Files that wait for others of their stream are received again at the
  /// end, if later files have made that possible.
  ///
  /// - Throws: What is not a file's fault: the database locked or damaged, a full disk, the application's wish to stop. The
  ///   files before it are done.
  package mutating func receive(_ source: some IncomingFileSource) throws {
    try receive(0..<source.count, of: source, .batches)
    var ready = waiting.takeReady()
    // The loop ends, because each file is applied once.
    while !ready.isEmpty {
      for range in ready { try receive(range, of: source, .oneByOne) }
      ready = waiting.takeReady()
    }
  }

  /// Receives some files, group after group. A group that fails is received again with more care.
  private mutating func receive(_ range: Range<Int>, of source: some IncomingFileSource, _ care: Care) throws {
    let files = source.files(range, streams: care == .batches)
    defer { files.stop() }
    let policy = session.indexPolicy
    // What fails then is a file's fault, or the database's.
    if care == .savepoints || care == .alone { session.indexPolicy = .keep }
    defer { session.indexPolicy = policy }
    var next = range.lowerBound
    while next < range.upperBound {
      let limit = care == .alone ? 1 : Self.groupFileLimit
      // Other writers do not wait for a file to be verified.
      try files.wait()
      switch try receiveGroup(files, of: source, next..<min(range.upperBound, next + limit), care) {
      case .committed(let after):
        if care == .batches { noteGroupWithoutConflict() }
        next = after
      case .stopped(let error, _):
        throw error
      case .batchConflict(let after):
        lastGroupsWithoutBatch = max(1, 2 * lastGroupsWithoutBatch)
        // The first of them is this one.
        groupsWithoutBatch = lastGroupsWithoutBatch - 1
        try receive(next..<after, of: source, .oneByOne)
        next = after
      case .refersToRefused(let index):
        try receive(next..<(index + 1), of: source, .savepoints)
        next = index + 1
      case .failed(is IndexRebuildFailure, let index):
        // The session keeps all indexes from now on.
        try receive(next..<(index + 1), of: source, care == .batches ? .oneByOne : care)
        next = index + 1
      case .failed(let lost as HeldRelease.TransactionLost, let index):
        // The failure of another file's held part is not the fault of this file.
        try note(lost)
        try receive(next..<(index + 1), of: source, care)
        next = index + 1
      case .failed(let error, let index):
        if care == .alone {
          try refuse(index, of: source, because: error)
        } else {
          try receive(next..<(index + 1), of: source, care.afterFailure(error))
        }
        next = index + 1
      }
    }
  }

  private mutating func noteGroupWithoutConflict() {
    if groupsWithoutBatch > 0 { groupsWithoutBatch -= 1 } else { lastGroupsWithoutBatch = 0 }
  }

  /// Writes down that a file is refused which has failed in a transaction of its own, with everything that was done in it.
  ///
  /// - Throws: The failure, when it is not the file's fault.
  private mutating func refuse(_ index: Int, of source: some IncomingFileSource, because error: any Error) throws {
    let files = source.files(index..<(index + 1), streams: false)
    defer { files.stop() }
    try files.wait()
    guard let file = files.next() else { throw error }
    let cause = try cause(of: error, in: file)
    guard (cause as? any FileFault)?.refusal != nil else { throw cause }
    let refused = RefusedFile(file.failing(with: cause))
    switch try receiveGroup(refused, of: source, index..<(index + 1), .alone) {
    case .committed, .batchConflict, .refersToRefused: return
    case .stopped(let error, _), .failed(let error, _): throw error
    }
  }

  /// The reason why a file failed, if SQLite has rolled back everything before it could be determined.
  private func cause(of error: any Error, in file: IncomingFile) throws -> any Error {
    guard let failure = error as? SQLiteError, failure.isFullDisk else { return error }
    return try rehearsing { rehearsal in
      var noBatch: OptimisticBatch?
      var processor = InboundFileProcessor(file, after: UnreadFiles(), gate, present, usesSavepoint: false, session)
      guard case .failed(let cause) = try processor.process(with: &noBatch, in: rehearsal) else { return error }
      return cause
    }
  }

  /// Calls `body` in a transaction that is rolled back, to find the cause of a failure.
  func rehearsing<Result>(_ body: (borrowing SQLiteTransaction) throws -> Result) throws -> Result {
    let effects = settings.observer?.mark ?? 0
    let gathered = session.effects
    session.isRehearsal = true
    defer {
      session.effects = gathered
      session.isRehearsal = false
      session.forget()
      settings.observer?.rewind(to: effects)
    }
    let rehearsal = try SQLiteTransaction(on: session.connection)
    try session.requireStatementRollback()
    let result = try body(rehearsal)
    rehearsal.rollback()
    return result
  }

  /// Applies some files in one transaction: those that are ready, without waiting for others to be verified.
  ///
  /// - Throws: `SQLiteError` when no transaction can be begun; `ReplicationError` with `transactionLost` when the one that all
  ///   is part of is gone.
  private mutating func receiveGroup(
    _ files: any IncomingFileReader, of source: some IncomingFileSource, _ range: Range<Int>, _ care: Care
  ) throws -> GroupEnd {
    let transaction = try SQLiteTransaction(on: session.connection)
    // Another connection may have written between two groups.
    session.forgetHeldTables()
    let mark = try session.mark()
    let effects = settings.observer?.mark ?? 0
    session.openConflicts = settings.recordsConflicts ? try OpenConflicts(on: session.connection) : nil
    defer { session.openConflicts = nil }
    var done: [ReceivedFile] = []
    var unread = unread
    var waiting = waiting
    let end = process(files, of: source, range, care, into: &done, noting: &unread, &waiting, in: transaction)
    if isPartOfAnother, !session.connection.isInTransaction, case .failed(let error, _) = end {
      throw ReplicationError.transactionLost(error)
    }
    switch end {
    case .committed(let next), .stopped(_, at: let next):
      do {
        if let retention = settings.retention {
          try session.effects.write(on: session.connection)
          try AppliedEffects.prune(to: retention, at: clock(), on: session.connection)
        }
        if let snapshot = settings.snapshot {
          let next = try LedgerEntries.nextNumber(on: session.connection)
          if next > firstEntry {
            try SnapshotRuns.note(firstEntry...(next - 1), for: snapshot, on: session.connection)
          }
        }
        try session.openConflicts?.close(in: session, at: clock())
        try settings.sharing?.settle(at: clock())
        try KeyRanges.move(on: session.connection)
        try transaction.commit()
      } catch {
        session.rollBack(to: mark)
        settings.observer?.rewind(to: effects)
        return .failed(error, at: next - 1)
      }
      self.unread = unread
      self.waiting = waiting
      source.didReceive(done)
    case .batchConflict, .refersToRefused, .failed:
      transaction.rollback()
      session.rollBack(to: mark)
      settings.observer?.rewind(to: effects)
    }
    return end
  }

  /// Applies some files. The result determines if the transaction is committed or rolled back.
  private func process(
    _ files: any IncomingFileReader, of source: some IncomingFileSource, _ range: Range<Int>, _ care: Care,
    into done: inout [ReceivedFile], noting unread: inout UnreadFiles, _ waiting: inout WaitingFiles,
    in transaction: borrowing SQLiteTransaction
  ) -> GroupEnd {
    let usesSavepoints = care == .savepoints || care == .alone
    // A batch does not keep the senders of its changes.
    let usesBatch = care == .batches && groupsWithoutBatch == 0 && session.openConflicts?.isEmpty != false
    var batch = usesBatch ? OptimisticBatch(session, reportingTo: settings.observer) : nil
    var bytes = 0
    var next = range.lowerBound
    var wish: (any Error)?
    while next < range.upperBound, bytes < Self.groupByteLimit {
      do { try source.willReceive(next) } catch {
        wish = error
        break
      }
      guard let file = files.next() else { break }
      let index = next
      next += 1
      do {
        var processor = InboundFileProcessor(file, after: unread, gate, present, usesSavepoint: usesSavepoints, session)
        let result = try processor.process(with: &batch, in: transaction)
        unread = processor.unread
        switch result {
        case .done(let outcome):
          done.append(ReceivedFile(index: index, identity: file.identity, outcome: outcome))
          waiting.note(index, outcome, of: file.changes)
        case .vanished: break
        case .batchConflict:
          file.abandon()
          return .batchConflict(next: next)
        case .refersToRefused:
          file.abandon()
          return .refersToRefused(at: index)
        case .failed(let error):
          file.abandon()
          return .failed(error, at: index)
        }
      } catch {
        file.abandon()
        return .failed(error, at: index)
      }
      bytes += file.byteCount
    }
    do {
      guard try batch?.write() == nil else { return .batchConflict(next: next) }
    } catch {
      return .failed(error, at: next - 1)
    }
    return wish.map { .stopped($0, at: next) } ?? .committed(next: next)
  }
}

/// A file that has been opened, and turned out to be one to refuse.
private final class RefusedFile: IncomingFileReader {
  private var file: IncomingFile?

  init(_ file: IncomingFile) { self.file = file }

  func wait() {}
  func stop() {}

  func next() -> IncomingFile? {
    defer { file = nil }
    return file
  }
}

extension Receiver {
  /// Passes the changes of a single diff through the gate, and plans how to apply them.
  ///
  /// - Parameters:
  ///   - changes: The verified changes.
  ///   - connection: The database, with a transaction open.
  ///   - settings: How to apply, and the present time.
  ///   - session: The session; nil to create one for the plan.
  /// - Throws: `Refusal` when the gate does not admit them, and as `ApplyPlan.init`.
  package static func plan(
    _ changes: IncomingChanges, on connection: borrowing SQLiteConnection, settings: ApplySettings,
    session: ApplySession? = nil
  ) throws -> ApplyPlan {
    let gate = try ReceiverGate(on: connection, senders: settings.senders, adoptsDataset: settings.adoptsDataset)
    switch try gate.admit(changes, at: settings.time, on: connection) {
    case .admitted(let admitted):
      return try ApplyPlan(
        admitted, settings: settings,
        session: session ?? settings.session(on: connection),
        ownsSession: session == nil)
    case .alreadyRecorded:
      throw Refusal(.alreadyApplied, code: .alreadyApplied, reason: "it was applied before", isRecorded: false)
    case .contained(let snapshot): throw Refusal.contained(in: snapshot)
    case .refused(let refusal): throw refusal
    }
  }
}
