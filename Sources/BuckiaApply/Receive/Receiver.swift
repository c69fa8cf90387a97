import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteConnections
import SQLiteSchemas

/// The way from files to rows: the gate, grouping, retries and the ledger. Folders, single files, raw changesets and borrowed
/// connections all go through it.
///
/// Many files share one transaction, because a transaction costs more than a small file, and small ones are applied as one
/// batch. What becomes of a file does not depend on the others: when a batch meets a conflict, its group is rolled back and
/// applied again, each file by itself; when a file fails after it has begun to write, each behind a savepoint; when the
/// database fails, each in a transaction of its own.
///
/// ```swift
/// var receiver = try Receiver(on: connection, settings: settings, clock: clock)
/// try receiver.receive(files)
/// try receiver.end()
/// ```
package struct Receiver {
  /// Who is trusted.
  package var trust: TrustMode { gate.trust }
  /// What became of the ledger tables.
  package let ledger: Ledger.Preparation
  private let gate: ReceiverGate
  private let settings: ApplySettings
  private let clock: () -> Int64
  private let session: ApplySession
  /// How many groups are still to be applied without batches, and how many it was last time: where there is one conflict,
  /// there are more.
  private var groupsWithoutBatch = 0
  private var lastGroupsWithoutBatch = 0

  /// How many files and bytes of changes share one transaction at most: it keeps other writers waiting.
  private static let groupFileLimit = 4_096
  private static let groupByteLimit = 64 << 20

  /// Prepares a database: makes or migrates the ledger tables and sets who is trusted.
  ///
  /// - Parameters:
  ///   - connection: The database, borrowed or of one's own, in a transaction or not.
  ///   - trust: Who is trusted from now on; nil leaves it as the database says.
  ///   - settings: How to apply. Its time is that of the clock.
  ///   - clock: The present time, in milliseconds since 1970.
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger. Nothing has been changed then.
  package init(
    on connection: borrowing SQLiteConnection, trust: TrustMode? = nil, settings: ApplySettings,
    clock: @escaping () -> Int64
  ) throws {
    let transaction = try SQLiteTransaction(on: connection)
    ledger = try Ledger.prepare(on: connection)
    if let trust { try LedgerSettings.setTrust(trust, on: connection) }
    gate = try ReceiverGate(on: connection)
    try transaction.commit()
    self.settings = settings
    self.clock = clock
    session = settings.session(on: connection)
    do { try session.begin() } catch {
      try session.end()
      throw error
    }
  }

  /// Puts the connection back as it was.
  package func end() throws { try session.end() }

  /// The settings with the present time.
  private var present: ApplySettings {
    var settings = settings
    settings.time = clock()
    return settings
  }

  // MARK: Held parts

  /// Applies what is held of earlier files, as far as the application's own upgrade has made a place for it since.
  ///
  /// - Returns: What became of the files of which something was applied, or could not be.
  package func releaseHeld() throws -> [DiffOutcome] {
    let effects = settings.observer?.mark ?? 0
    do {
      let transaction = try SQLiteTransaction(on: session.connection)
      let released = try HeldRelease(present, session).run()
      try transaction.commit()
      return released
    } catch let error as ReplicationError where error.code == .conflict {
      // It stays held.
      settings.observer?.rewind(to: effects)
      session.forget()
      let table = TableName(error.table ?? "")
      guard let part = try HeldPart.all(on: session.connection).first(where: { TableName($0.table) == table }) else {
        throw error
      }
      var outcome = DiffOutcome(id: part.diff, path: part.file, sender: part.sender, state: .held)
      outcome.code = error.code
      outcome.reason = EscapedText.line(error.message)
      return [outcome]
    }
  }

  // MARK: Groups

  /// How far a group of files came.
  private enum GroupEnd {
    /// Its transaction is committed; the file at this index comes next.
    case committed(next: Int)
    /// Its transaction is committed; the application wants to stop before the file at this index.
    case stopped(any Error, at: Int)
    /// Nothing of it has happened: a batch met a conflict.
    case batchConflict
    /// Nothing of it has happened: the file at this index failed, or the database did.
    case failed(any Error, at: Int)
  }

  /// Receives all files of a source, in order.
  ///
  /// - Throws: What is not a file's fault: the database locked or damaged, a full disk, the application's wish to stop. The
  ///   files before it are done.
  package mutating func receive(_ source: some IncomingFileSource) throws {
    var next = 0
    while next < source.count {
      source.start(at: next)
      defer { source.stop() }
      next = try receiveGroups(of: source, from: next)
    }
  }

  /// Receives group after group, until one has to be applied again.
  ///
  /// - Returns: Where the source has to start again.
  private mutating func receiveGroups(of source: some IncomingFileSource, from start: Int) throws -> Int {
    var next = start
    while next < source.count {
      let range = next..<min(source.count, next + Self.groupFileLimit)
      let end = try receiveGroup(of: source, range, usesSavepoints: false) { _ in try source.next() }
      switch end {
      case .committed(let after):
        noteGroupWithoutConflict()
        next = after
      case .stopped(let error, _):
        throw error
      case .batchConflict:
        lastGroupsWithoutBatch = max(1, 2 * lastGroupsWithoutBatch)
        groupsWithoutBatch = lastGroupsWithoutBatch
        return next
      case .failed(is IndexRebuildFailure, _):
        // The session keeps all indexes from now on.
        return next
      case .failed(let error, let index):
        let again = next..<min(source.count, index + 1)
        try receiveAgain(again, of: source, after: error)
        return again.upperBound
      }
    }
    return next
  }

  private mutating func noteGroupWithoutConflict() {
    if groupsWithoutBatch > 0 { groupsWithoutBatch -= 1 } else { lastGroupsWithoutBatch = 0 }
  }

  /// Applies files of a group that failed again: with a savepoint for each where a file is to blame, otherwise, and where
  /// that fails too, in a transaction for each.
  private func receiveAgain(_ range: Range<Int>, of source: some IncomingFileSource, after error: any Error) throws {
    // What fails from here on is a file's fault, or the database's.
    let policy = session.indexPolicy
    session.indexPolicy = .keep
    defer { session.indexPolicy = policy }
    if (error as? any FileFault)?.refusal != nil {
      let end = try receiveGroup(of: source, range, usesSavepoints: true) { try source.reopen($0) }
      switch end {
      case .committed: return
      case .stopped(let error, _): throw error
      case .batchConflict, .failed: break
      }
    }
    for index in range {
      let end = try receiveGroup(of: source, index..<(index + 1), usesSavepoints: true) {
        try source.reopen($0)
      }
      switch end {
      case .committed, .batchConflict: continue
      case .stopped(let error, _), .failed(let error, _): throw error
      }
    }
  }

  /// Applies some files in one transaction.
  ///
  /// - Throws: `SQLiteError` when no transaction can be begun.
  private func receiveGroup(
    of source: some IncomingFileSource, _ range: Range<Int>, usesSavepoints: Bool, open: (Int) throws -> IncomingFile
  ) throws -> GroupEnd {
    let transaction = try SQLiteTransaction(on: session.connection)
    let effects = settings.observer?.mark ?? 0
    var outcomes: [(index: Int, outcome: DiffOutcome)] = []
    let end = process(source, range, usesSavepoints: usesSavepoints, into: &outcomes, in: transaction, open: open)
    switch end {
    case .committed(let next), .stopped(_, at: let next):
      do { try transaction.commit() } catch {
        session.forget()
        settings.observer?.rewind(to: effects)
        return .failed(error, at: next - 1)
      }
      source.didReceive(outcomes)
    case .batchConflict, .failed:
      transaction.rollback()
      session.forget()
      settings.observer?.rewind(to: effects)
    }
    return end
  }

  /// Applies some files; the transaction is to be committed or rolled back as the result says.
  private func process(
    _ source: some IncomingFileSource, _ range: Range<Int>, usesSavepoints: Bool,
    into outcomes: inout [(index: Int, outcome: DiffOutcome)], in transaction: borrowing SQLiteTransaction,
    open: (Int) throws -> IncomingFile
  ) -> GroupEnd {
    var batch =
      usesSavepoints || groupsWithoutBatch > 0 ? nil : OptimisticBatch(session, reportingTo: settings.observer)
    var bytes = 0
    var end = GroupEnd.committed(next: range.upperBound)
    for index in range {
      guard bytes < Self.groupByteLimit else {
        end = .committed(next: index)
        break
      }
      let file: IncomingFile
      do {
        try source.willReceive(index)
        file = try open(index)
      } catch {
        end = .stopped(error, at: index)
        break
      }
      do {
        var processor = InboundFileProcessor(file, gate, present, usesSavepoint: usesSavepoints, session)
        switch try processor.process(with: &batch, in: transaction) {
        case .done(let outcome): outcomes.append((index, outcome))
        case .vanished: break
        case .batchConflict:
          file.abandon()
          return .batchConflict
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
      return try batch?.write() == nil ? end : .batchConflict
    } catch {
      return .failed(error, at: range.upperBound - 1)
    }
  }
}

extension Receiver {
  /// Passes changes through the gate and plans how to apply them, for whoever applies a single diff.
  ///
  /// - Parameters:
  ///   - changes: The verified changes.
  ///   - connection: The database, with a transaction open.
  ///   - settings: How to apply, and the present time.
  ///   - session: What is kept from one diff to the next; nil for one of the plan's own.
  /// - Throws: `Refusal` when the gate does not admit them, and as `ApplyPlan.init`.
  package static func plan(
    _ changes: IncomingChanges, on connection: borrowing SQLiteConnection, settings: ApplySettings,
    session: ApplySession? = nil
  ) throws -> ApplyPlan {
    switch try ReceiverGate(on: connection).admit(changes, at: settings.time, on: connection) {
    case .admitted(let admitted):
      return try ApplyPlan(
        admitted, settings: settings,
        session: session ?? settings.session(on: connection),
        ownsSession: session == nil)
    case .alreadyRecorded:
      throw Refusal(.alreadyApplied, code: .alreadyApplied, reason: "it was applied before", isRecorded: false)
    case .refused(let refusal): throw refusal
    }
  }
}
