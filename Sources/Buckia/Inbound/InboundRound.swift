import BuckiaDiffFiles
import BuckiaEngine
import SQLiteConnections
import SQLiteSchemas

/// One round of applying: takes file after file and notes what became of each.
///
/// Many files share one transaction, because a transaction costs more than a small file, and small ones are applied
/// together, as if they were one. What becomes of a file does not depend on its company: when two that are applied together
/// meet a conflict, all of the group is taken back and taken again, each file by itself; when one fails after it has begun
/// to write, each behind a savepoint; when the database fails, each in a transaction of its own.
struct InboundRound {
  let options: ApplyOptions
  let resolver: ConflictResolver?
  private(set) var outcomes: [DiffOutcome] = []
  private(set) var trust = TrustMode.any
  private(set) var createdLedger = false
  var failure: (any Error)?
  private let remover = FileRemover()
  /// How many groups are still to be taken with each file by itself, and how many it was last time: where there is one
  /// conflict, there are more.
  private var groupsApart = 0
  private var lastGroupsApart = 0

  /// How many files and bytes of changes share one transaction at most, which keeps other writers waiting.
  private static let groupLimit = 4_096
  private static let groupBytes = 64 << 20

  init(options: ApplyOptions, resolver: ConflictResolver?) {
    self.options = options
    self.resolver = resolver
  }

  /// Makes sure of the ledger and learns who is believed.
  mutating func begin(on connection: borrowing SQLiteConnection) throws {
    let transaction = try SQLiteTransaction(on: connection)
    createdLedger = try Ledger.create(on: connection)
    if let trust = options.trust { try Ledger.setTrust(trust, on: connection) }
    trust = try Ledger.trust(on: connection)
    try transaction.commit()
  }

  // MARK: Groups

  /// What became of one file, before its group is committed.
  private struct Taken {
    let item: InboundItem
    let outcome: DiffOutcome
  }

  /// A group of files, and how far it came.
  private struct Group {
    var taken: [Taken] = []
    /// The first file behind the group.
    var end: Int
    var bytes = 0
    /// The application's wish to stop, before the file at `end`.
    var stop: (any Error)?
    /// What went wrong with the file at `end`.
    var failure: (any Error)?
  }

  /// Takes all files: verifies, applies, records, removes.
  ///
  /// - Throws: What is not a file's fault: the database locked or damaged, a full disk, the application's wish to stop.
  ///   The files before it are done.
  mutating func take(
    _ items: [InboundItem], on connection: borrowing SQLiteConnection,
    progress: (String, Int, Int) throws -> Void
  ) throws {
    defer { for failed in remover.finish() { outcomes[failed.place].warnings.append(failed.message) } }
    let session = try ApplySession(on: connection, firesTriggers: options.triggers)
    do {
      try releaseHeld(session, on: connection)
      var next = 0
      while next < items.count {
        let reader = InboundReader(items, from: next)
        defer { reader.stop() }
        next = try takeGroups(items, from: next, reader, session, on: connection, progress: progress)
      }
    } catch {
      try session.end(on: connection)
      throw error
    }
    try session.end(on: connection)
  }

  /// How files are applied at this moment.
  var settings: ApplySettings {
    ApplySettings(
      policy: options.conflicts, resolver: resolver, schema: options.schema, firesTriggers: options.triggers,
      time: WallClock.unixMilliseconds)
  }

  /// Applies what was kept of earlier files, where the application's own upgrade has made a place for it since.
  private mutating func releaseHeld(_ session: ApplySession, on connection: borrowing SQLiteConnection) throws {
    do {
      let transaction = try SQLiteTransaction(on: connection)
      let released = try HeldRelease(settings, session).run(on: connection)
      try transaction.commit()
      outcomes += released.map { DiffOutcome($0) }
    } catch let error as EngineError where error.code == .conflict {
      // It stays where it is.
      session.forget()
      let table = TableName(error.table ?? "")
      guard let part = try Ledger.heldParts(on: connection).first(where: { TableName($0.table) == table }) else {
        throw error
      }
      var outcome = DiffOutcome(id: part.diff, path: part.file, sender: part.sender, state: .held)
      outcome.code = error.code.rawValue
      outcome.reason = EscapedText.line(error.message)
      outcomes.append(outcome)
    }
  }

  /// Takes group after group, until one has to be taken again.
  ///
  /// - Returns: Where a new reader has to begin.
  private mutating func takeGroups(
    _ items: [InboundItem], from start: Int, _ reader: InboundReader, _ session: ApplySession,
    on connection: borrowing SQLiteConnection, progress: (String, Int, Int) throws -> Void
  ) throws -> Int {
    var next = start
    while next < items.count {
      let end = min(items.count, next + Self.groupLimit)
      let group = try takeGroup(
        items, next..<end, isCareful: false, { _ in reader.next() }, session, on: connection, progress: progress)
      if group.failure == nil {
        noteGroup()
        if let stop = group.stop { throw stop }
        next = group.end
        continue
      }
      if group.failure is JointApply.Disturbance {
        lastGroupsApart = max(1, 2 * lastGroupsApart)
        groupsApart = lastGroupsApart
        return next
      }
      let again = next..<min(items.count, group.end + 1)
      let cache = OpeningCache()
      let open: (InboundItem) -> OpenedItem = { OpenedItem($0, cache: cache) }
      if let unsettled = group.failure as? InboundTurn.Unsettled, unsettled.isFaultOfFile {
        let second = try takeGroup(
          items, again, isCareful: true, open, session, on: connection, progress: progress)
        if second.failure == nil {
          if let stop = second.stop { throw stop }
          return again.upperBound
        }
      }
      for index in again {
        let alone = try takeGroup(
          items, index..<(index + 1), isCareful: true, open, session, on: connection, progress: progress)
        if let error = alone.failure ?? alone.stop { throw error }
      }
      return again.upperBound
    }
    return next
  }

  private mutating func noteGroup() {
    if groupsApart > 0 { groupsApart -= 1 } else { lastGroupsApart = 0 }
  }

  /// Takes some files in one transaction.
  ///
  /// - Returns: How far it came; with a failure nothing of it has happened.
  /// - Throws: `SQLiteError` when there is no transaction to be had.
  private mutating func takeGroup(
    _ items: [InboundItem], _ range: Range<Int>, isCareful: Bool, _ open: (InboundItem) -> OpenedItem,
    _ session: ApplySession, on connection: borrowing SQLiteConnection,
    progress: (String, Int, Int) throws -> Void
  ) throws -> Group {
    let transaction = try SQLiteTransaction(on: connection)
    var group = gather(
      items, range, isCareful: isCareful, open, session, in: transaction, on: connection, progress: progress)
    if group.failure == nil {
      do { try transaction.commit() } catch { group.failure = error }
    } else {
      transaction.rollback()
    }
    guard group.failure == nil else {
      session.forget()
      return group
    }
    var done: [(place: Int, path: String)] = []
    for taken in group.taken {
      if isToBeRemoved(taken) { done.append((outcomes.count, taken.item.path)) }
      outcomes.append(taken.outcome)
    }
    remover.remove(done)
    return group
  }

  private func gather(
    _ items: [InboundItem], _ range: Range<Int>, isCareful: Bool, _ open: (InboundItem) -> OpenedItem,
    _ session: ApplySession, in transaction: borrowing SQLiteTransaction, on connection: borrowing SQLiteConnection,
    progress: (String, Int, Int) throws -> Void
  ) -> Group {
    var group = Group(end: range.lowerBound)
    var joint = isCareful || groupsApart > 0 ? nil : JointApply(session)
    for index in range {
      guard group.bytes < Self.groupBytes else { break }
      do { try progress(items[index].path, index + 1, items.count) } catch {
        group.stop = error
        break
      }
      let opened = open(items[index])
      do {
        var turn = InboundTurn(of: opened, self, isCareful: isCareful, session)
        if let outcome = try turn.take(with: &joint, in: transaction, on: connection) {
          group.taken.append(Taken(item: opened.item, outcome: outcome))
        }
      } catch {
        opened.abandon()
        group.failure = error
        break
      }
      group.bytes += opened.byteCount
      group.end = index + 1
    }
    guard group.failure == nil else { return group }
    do { try joint?.finish(on: connection) } catch { group.failure = error }
    return group
  }

  /// Whether a file is done and the options say that it goes.
  private func isToBeRemoved(_ taken: Taken) -> Bool {
    // What is held is in the database.
    let isDone = [.applied, .alreadyApplied, .held].contains(taken.outcome.state)
    return isDone && !options.isDryRun
      && (taken.item.isFromFolder ? !options.keepsFiles : options.removesNamedFiles)
  }
}
