import SQLiteConnections

/// One copy of the database, with its snapshot, its clock and its inbound folder, all in memory.
final class Replica {
  let number: Int
  private(set) var database: SQLiteConnection
  /// The snapshot: the state of the database that was last sent or received.
  private var known: SQLiteConnection
  private let ids: SimulatedIDs
  private let tables: [ReplicatedTable]
  private let upgrade: [String]
  /// True if it has got the upgrade, if there is one.
  private(set) var isUpgraded: Bool
  /// Signs its diffs; nil if nothing is signed.
  let signer: ManifestSigner?
  /// The trusted authors, if not all are trusted.
  private(set) var trusted: Set<Int> = []
  private var standings: [String: KnownSenders.Standing] = [:]
  /// The seconds by which its clock is ahead.
  var ahead: Int
  /// The files that have arrived, in the order in which they have.
  var inbox: [SentDiff] = []
  /// The diffs of others that were applied.
  private(set) var applied: Set<KSUID> = []
  /// The diffs that were sent from here.
  private(set) var sent: Set<KSUID> = []
  /// True if it has refused a diff, whose values are then in the file alone.
  private(set) var hasRefused = false
  /// True if it was edited since it has last sent.
  private(set) var hasUnsentEdits = false
  /// True if a process ended before it made a snapshot: the changes that it had applied then count as edits of this
  /// replica.
  private var hasStaleSnapshot = false
  /// True if it has sent since the last snapshot.
  private var hasSent = false
  /// The rows; nil if they have to be read again.
  private var currentRows: DatabaseRows?

  init(_ number: Int, from template: Template, seed: UInt64, ahead: Int, signsDiffs: Bool = false) throws {
    self.number = number
    self.ahead = ahead
    database = try template.database.copiedInMemory()
    known = try template.known.copiedInMemory()
    tables = template.tables
    upgrade = template.upgrade
    isUpgraded = template.upgrade.isEmpty
    ids = SimulatedIDs(seed: seed)
    var random = SimulationRandom(seed: ~seed)
    signer = try signsDiffs ? ManifestSigner(seed: (0..<32).map { _ in UInt8(truncatingIfNeeded: random.next()) }) : nil
  }

  /// The rows.
  func rows() throws -> DatabaseRows {
    if let currentRows { return currentRows }
    let rows = try DatabaseRows(of: tables, by: queries(in: database), on: database)
    currentRows = rows
    return rows
  }

  /// The time of the replica's clock, in seconds of Unix time.
  private func time(at now: Int64) -> Int64 { now + Int64(ahead) }

  // MARK: Editing

  /// Changes the database in one transaction.
  ///
  /// - Parameter body: Changes it.
  /// - Returns: The statements that were run; nil if SQLite has refused them and nothing has changed.
  func edit(_ body: (SimulatedDatabase) throws -> Void) throws -> [Statement]? {
    let edited = SimulatedDatabase(number, on: database)
    try database.execute("PRAGMA foreign_keys = ON")
    let transaction = try SQLiteTransaction(on: database)
    do {
      try body(edited)
      try transaction.commit()
    } catch let error as BuckiaError where error.cause is SQLiteError {
      return nil
    } catch is SQLiteError {
      return nil
    }
    guard !edited.statements.isEmpty else { return nil }
    currentRows = nil
    hasUnsentEdits = true
    return edited.statements
  }

  /// For each table the query for the rows of a database that may not have got the upgrade; nil if there is none.
  private func queries(in connection: borrowing SQLiteConnection) throws -> [String?]? {
    guard !upgrade.isEmpty else { return nil }
    return try tables.map { try $0.query(in: connection) }
  }

  /// The tables that it has now.
  func presentTables() throws -> [ReplicatedTable] {
    upgrade.isEmpty ? tables : try ReplicatedTable.all(in: database)
  }

  /// Upgrades the schema.
  func getUpgrade() throws {
    guard !isUpgraded else { return }
    for statement in upgrade { try add(statement) }
    isUpgraded = true
    currentRows = nil
    // Definitions travel, too.
    hasUnsentEdits = true
  }

  /// Adds something to the schema, unless a diff has brought it already.
  private func add(_ statement: String) throws(SQLiteError) {
    do {
      try database.execute(statement)
    } catch {
      guard error.isAboutWhatExists else { throw error }
    }
  }

  /// Begins to trust the authors of diffs.
  func trust(_ others: [Replica]) {
    for other in others where other !== self {
      trusted.insert(other.number)
      if let key = other.signer?.identity { standings["\(key)"] = .trusted(name: "replica \(other.number)") }
    }
  }

  // MARK: Sending

  /// True if there is something to send.
  var hasSomethingToSend: Bool { hasUnsentEdits || hasStaleSnapshot }

  /// Creates a diff of the unsent changes.
  ///
  /// - Returns: nil if nothing has changed.
  func send(_ diff: Int, at now: Int64) throws -> SentDiff? {
    guard hasSomethingToSend else { return nil }
    // A diff begins with the snapshot: two in a row, and the second would have the changes of the first once more.
    if hasSent { try keepSnapshot(without: unsentChanges()) }
    ids.unixSeconds = time(at: now)
    // Written on the thread that reads it, before the call that writes it returns.
    nonisolated(unsafe) var bytes: [UInt8] = []
    let report = try DatabaseManager.writeDiff(
      from: RowSource(on: known), to: RowSource(on: database), output: .stream { bytes += Array($0) },
      signer: signer,
      home: ids)
    hasUnsentEdits = false
    hasStaleSnapshot = false
    if let warning = report.warnings.first { throw Violation(.noFailure, "sending: \(warning)") }
    guard let id = report.id else { return nil }
    hasSent = true
    sent.insert(id)
    return try SentDiff(diff, id, by: number, bytes: bytes)
  }

  // MARK: Snapshots

  /// The unsent changes of this replica; nil for none. The comparison would find them too, and is by far the slowest
  /// part.
  private func unsentChanges() throws -> UnsentChanges? {
    hasSomethingToSend ? try UnsentChanges(in: database, since: RowSource(on: known)) : nil
  }

  /// Creates a snapshot of the present database.
  private func keepSnapshot(without unsent: UnsentChanges?, beside edits: UnsentEdits? = nil) throws {
    let copy = try database.copiedInMemory()
    try DatabaseManager.makeSnapshot(of: copy, without: unsent, beside: edits)
    known = copy
    hasSent = false
  }

  /// The rows of the snapshot.
  func knownRows() throws -> DatabaseRows {
    if hasSent { try keepSnapshot(without: unsentChanges()) }
    return try DatabaseRows(of: tables, by: queries(in: known), on: known)
  }

  /// True if the snapshot has all rows of the database.
  func isKnown() throws -> Bool { try knownRows() == rows() }

  // MARK: Receiving

  /// The results of applying files.
  struct Received {
    /// The files that are done.
    var done: [(diff: SentDiff, outcome: DiffOutcome)] = []
    /// True if the process has died.
    var hasCrashed = false
  }

  /// Applies the files in the inbound folder.
  func receive(_ reception: Reception, _ options: ApplyOptions, _ resolver: ConflictResolver?, at now: Int64) throws
    -> Received
  {
    let files = reception.order == .byID ? inbox.sorted { $0.id < $1.id } : inbox
    var received = Received()
    currentRows = nil
    switch reception.interruption {
    case nil: received.done = try apply(files, reception, nil, options, resolver, at: now)
    case .stop(let file)?:
      received.done = try apply(files, reception, min(file, files.count), options, resolver, at: now)
      let rest = Array(files.dropFirst(received.done.count))
      received.done += try apply(rest, reception, nil, options, resolver, at: now)
    case .crash(let rows)?:
      received = try crash(afterRows: rows, files, reception, options, resolver, at: now)
    }
    for (diff, outcome) in received.done { note(outcome.state, of: diff) }
    if !received.hasCrashed {
      let waiting = Set(
        received.done.filter { [.waiting, .rejected, .quarantined].contains($0.outcome.state) }.map(\.diff.number))
      inbox = files.filter { waiting.contains($0.number) }
    }
    return received
  }

  private func note(_ state: DiffState, of diff: SentDiff) {
    switch state {
    case .applied, .held: applied.insert(diff.id)
    case .alreadyApplied, .waiting, .quarantined: break
    case .rejected: hasRefused = true
    }
  }

  /// Applies files and keeps a snapshot, like `processInboundChanges`.
  private func apply(
    _ files: [SentDiff], _ reception: Reception, _ stop: Int?, _ options: ApplyOptions, _ resolver: ConflictResolver?,
    at now: Int64
  ) throws -> [(diff: SentDiff, outcome: DiffOutcome)] {
    let source = DeliveredFiles(files, groups: reception.groups, stoppingBefore: stop) {}
    let unsent = try unsentChanges()
    var settings = ApplySettings(options, resolver: resolver, time: 0)
    settings.unsent = options.conflicts.usesLatest ? try unsent?.edits(on: database) : nil
    do { try apply(source, settings, at: now) } catch is DeliveredFiles.Stop {}
    try keepSnapshot(without: unsent, beside: settings.unsent)
    return source.done
  }

  /// Applies files in a process that ends early: its commits stay, and the snapshot is not kept.
  private func crash(
    afterRows rows: Int, _ files: [SentDiff], _ reception: Reception, _ options: ApplyOptions,
    _ resolver: ConflictResolver?, at now: Int64
  ) throws -> Received {
    let image = try CommittedImage(of: database)
    let source = DeliveredFiles(files, groups: reception.groups, stoppingBefore: nil) { [unowned self] in
      image.update(from: database)
    }
    var settings = ApplySettings(options, resolver: resolver, time: 0)
    settings.unsent = options.conflicts.usesLatest ? try unsentChanges()?.edits(on: database) : nil
    settings.observer = CrashPoint(afterRows: rows)
    do { try apply(source, settings, at: now) } catch is CrashPoint.Crash {}
    database = try image.restored()
    if source.done.contains(where: { [.applied, .held].contains($0.outcome.state) }) {
      hasStaleSnapshot = true
    }
    return Received(done: source.done, hasCrashed: true)
  }

  private func apply(_ source: DeliveredFiles, _ settings: ApplySettings, at now: Int64) throws {
    let time = time(at: now) * 1_000
    var settings = settings
    settings.time = time
    settings.retention = .standard
    settings.senders = KnownSenders(standings)
    var receiver = try Receiver(on: database, settings: settings, clock: { time })
    try cleaningUp(after: {
      // A part that the policy `abort` refuses stays held.
      let released = try receiver.releaseHeld()
      if isUpgraded, settings.policies == .abort, released.contains(where: { $0.state != .applied }) {
        hasRefused = true
      }
      try receiver.receive(source)
    }) { try receiver.end() }
  }
}

/// The last committed database, the only part that outlives a process.
private final class CommittedImage {
  private var image: SQLiteConnection
  private var failure: (any Error)?

  init(of database: borrowing SQLiteConnection) throws { image = try database.copiedInMemory() }

  /// Follows a commit.
  func update(from database: borrowing SQLiteConnection) {
    do { image = try database.copiedInMemory() } catch { failure = error }
  }

  /// The database, opened again.
  ///
  /// - Throws: What has kept the image from following.
  func restored() throws -> SQLiteConnection {
    if let failure { throw failure }
    return try image.copiedInMemory()
  }
}

extension SQLiteError {
  /// True if a statement was refused because its table or column exists already.
  fileprivate var isAboutWhatExists: Bool {
    primaryCode == 1 && (message.contains("already exists") || message.hasPrefix("duplicate column name"))
  }
}

/// The initial state of every replica: the database with its ledger, and its snapshot.
final class Template {
  /// The tables that all replicas have in the end.
  let tables: [ReplicatedTable]
  /// The additions of the upgrade to the schema, statement by statement.
  let upgrade: [String]
  /// The database.
  let database: SQLiteConnection
  /// The snapshot.
  let known: SQLiteConnection

  /// - Parameters:
  ///   - schema: The statements that make the database.
  ///   - upgrade: The additions of an update of the app.
  ///   - keepsClocks: True if its tables have clocks.
  ///   - trust: Whose diffs are taken.
  /// - Throws: `BuckiaError` when the schema or the upgrade is no SQL.
  init(schema: String, upgrade: [String] = [], keepsClocks: Bool, trust: TrustMode = .any) throws {
    do {
      let database = try SQLiteConnection.inMemory()
      try database.execute(schema)
      let upgraded = try database.copiedInMemory()
      for statement in upgrade { try upgraded.execute(statement) }
      tables = try ReplicatedTable.all(in: upgraded)
      self.upgrade = upgrade
      let known = try database.copiedInMemory()
      try DatabaseManager.makeSnapshot(of: known, without: nil)
      try Ledger.prepare(on: database)
      try LedgerSettings.setTrust(trust, on: database)
      if keepsClocks { try DatabaseManager.keepClocks(on: database) }
      self.database = database
      self.known = known
    } catch {
      throw BuckiaError.wrapped(error)
    }
  }
}

extension SQLiteConnection {
  /// An empty database in memory.
  static func inMemory() throws -> SQLiteConnection { try SQLiteConnection(opening: ":memory:", as: .create) }

  /// A copy of the last committed database, in memory.
  func copiedInMemory() throws -> SQLiteConnection {
    let copy = try SQLiteConnection.inMemory()
    try self.copy(to: copy)
    return copy
  }
}

/// Gives the diffs of a replica their ids: from the seed of the simulation and the replica's own clock.
final class SimulatedIDs: OutgoingIDs {
  /// The time of the replica's clock, in seconds of Unix time.
  var unixSeconds: Int64 = 0
  private var clock = KSUIDClock()
  private var random: SimulationRandom

  init(seed: UInt64) { random = SimulationRandom(seed: seed) }

  func next(after observed: [KSUID]) throws -> (id: KSUID, warning: Warning?) {
    for id in observed { clock.observe(id) }
    return (try clock.next(unixSeconds: unixSeconds, using: &random), nil)
  }

  func begin(_ id: KSUID, from database: RowSource) -> (sender: Manifest.Sender?, warnings: [Warning]) { (nil, []) }
}
