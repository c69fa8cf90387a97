import SQLiteConnections

/// One run of a history: makes steps, and checks the invariants after each.
final class SimulationRun {
  let replicas: [Replica]
  let tables: [ReplicatedTable]
  /// The diffs that were sent, by their numbers.
  private(set) var diffs: [Int: SentDiff] = [:]
  /// How much has happened.
  private(set) var report = SimulationReport()
  let simulation: Simulation
  private let options: ApplyOptions
  private let invariants: DatabaseInvariants
  /// What edits have written.
  private(set) var written: WrittenValues
  /// The right time, in seconds of Unix time.
  private var now: Int64 = 1_700_000_000
  private var trace: [String] = []
  /// True if each edit knew all edits before it.
  private(set) var isSequential = true

  /// How often everybody sends and receives in the end before that counts as endless.
  private static let roundLimit = 4

  init(_ simulation: Simulation, _ template: Template, replicas count: Int, seed: UInt64) throws {
    self.simulation = simulation
    tables = template.tables
    written = WrittenValues(of: template.tables)
    options = ApplyOptions(conflicts: simulation.conflicts, schema: simulation.schemaMode)
    invariants = DatabaseInvariants(
      template.tables, simulation.checks, mayLackColumns: !template.upgrade.isEmpty)
    var random = SimulationRandom(seed: seed)
    replicas = try (0..<count).map { number in
      let ahead = random.number(0...max(0, simulation.clockSkew)) - simulation.clockSkew / 2
      return try Replica(
        number, from: template, seed: random.next(), ahead: ahead, signsDiffs: simulation.trust == .known)
    }
  }

  // MARK: Steps

  /// Makes a step. If its subject does not exist, nothing happens.
  ///
  /// - Throws: `Violation`.
  func take(_ step: Step) throws {
    let number = step.replica ?? 0
    guard replicas.indices.contains(number) else { return }
    let replica = replicas[number]
    try naming("\(step)") {
      switch step.action {
      case .edit(_, let statements):
        try edit(number) { database in for statement in statements { try database.run(statement) } }
      case .send(let diff): try send(diff, from: replica)
      case .deliver(let diff): deliver(diff, to: replica)
      case .receive(let reception): try receive(reception, at: replica)
      case .wait(let seconds): now += Int64(seconds)
      case .setClock(let ahead): replica.ahead = ahead
      case .upgrade:
        try replica.getUpgrade()
        trace.append("replica \(number) has the upgrade")
      case .trust(let other): if replicas.indices.contains(other) { replica.trust([replicas[other]]) }
      }
    }
  }

  /// Creates an edit that is no step yet.
  ///
  /// - Parameters:
  ///   - number: The replica.
  ///   - name: The name of the edit.
  ///   - body: Changes the database.
  ///   - didEdit: Receives the step, before the checks. It is not called if nothing has changed.
  /// - Throws: `Violation`.
  func edit(
    _ number: Int, _ name: String, _ body: (SimulatedDatabase) throws -> Void, didEdit: (Step) -> Void
  ) throws {
    try naming("replica \(number) edits (\(name))") {
      var hasChanged = false
      defer { report.tried(name, hasChanged: hasChanged) }
      hasChanged = try edit(number, body) { didEdit(Step(number, .edit(name: name, statements: $0))) }
    }
  }

  /// - Returns: True if rows have changed.
  @discardableResult
  private func edit(
    _ number: Int, _ body: (SimulatedDatabase) throws -> Void, didEdit: ([Statement]) -> Void = { _ in }
  ) throws -> Bool {
    let replica = replicas[number]
    let before = try replica.rows()
    guard let statements = try replica.edit(body) else { return false }
    didEdit(statements)
    report.edits += 1
    now += 1
    let after = try replica.rows()
    written.edit(of: number, from: before, to: after, known: try replica.knownRows())
    if isSequential { isSequential = knowsEverything(replica) }
    trace.append("replica \(number) edits: \(statements)")
    try invariants.require(of: replica)
    return after.tables != before.tables
  }

  /// True if a replica has everything that was edited before.
  private func knowsEverything(_ replica: Replica) -> Bool {
    replicas.allSatisfy { $0 === replica || !$0.hasUnsentEdits }
      && diffs.values.allSatisfy { $0.author == replica.number || replica.applied.contains($0.id) }
  }

  private func send(_ number: Int, from replica: Replica) throws {
    guard diffs[number] == nil, let diff = try replica.send(number, at: now) else { return }
    diffs[number] = diff
    report.diffs += 1
    trace.append("replica \(replica.number) sends \(diff.id) in \(diff.byteCount) bytes")
  }

  private func deliver(_ number: Int, to replica: Replica) {
    guard let diff = diffs[number], diff.author != replica.number else { return }
    replica.inbox.append(diff)
  }

  /// - Parameter releasesHeld: True to apply also without new files: held changes may be released.
  private func receive(_ reception: Reception, at replica: Replica, releasingHeld releasesHeld: Bool = false) throws {
    guard !replica.inbox.isEmpty || releasesHeld else { return }
    let before = replica.applied
    let received = try replica.receive(reception, options, simulation.resolver, at: now)
    try simulation.sabotage?(replica.number, replica.database)
    report.add(received)
    // The changes that a process applied before its end count as edits of this replica, since it has made no snapshot.
    if received.hasCrashed { isSequential = false }
    // The next editor does not see the rows of held files.
    if received.done.contains(where: { $0.outcome.state == .held }) { isSequential = false }
    for (diff, outcome) in received.done {
      trace.append(
        "replica \(replica.number), diff \(diff.id): \(outcome.state) \(outcome.inserted) \(outcome.updated) "
          + "\(outcome.deleted) \(outcome.conflicts) \(outcome.reason ?? "")")
    }
    try invariants.require(received, of: replica, appliedBefore: before)
    if simulation.trust == .known { try invariants.requireTrust(received, of: replica) }
    try invariants.require(of: replica)
  }

  /// Converts any error into a violation.
  private func naming(_ step: String, _ body: () throws -> Void) throws {
    do { try body() } catch let error where !(error is Violation) {
      throw Violation(.noFailure, "\(step): \(error)")
    }
  }

  // MARK: The end

  /// Lets all replicas send and receive everything, and checks the final invariants.
  ///
  /// - Throws: `Violation`.
  func finish() throws -> RunResult {
    do {
      try settle()
      try requireEnd()
      for replica in replicas where try !replica.isKnown() {
        throw Violation(.atRest, "replica \(replica.number) has changes that were not sent")
      }
      return try RunResult(trace, replicas)
    } catch let error where !(error is Violation) {
      throw Violation(.noFailure, "in the end: \(error)")
    }
  }

  private func settle() throws {
    // The clocks are right at the end: no diff is held for its time.
    now += Int64(2 * simulation.clockSkew) + 3_600
    for replica in replicas {
      replica.ahead = 0
      try replica.getUpgrade()
      replica.trust(replicas)
    }
    var next = (diffs.keys.max() ?? -1) + 1
    for _ in 0..<Self.roundLimit {
      for replica in replicas {
        try send(next, from: replica)
        next += 1
      }
      for replica in replicas { try receiveAll(at: replica) }
      if !replicas.contains(where: \.hasSomethingToSend) { break }
    }
  }

  private func receiveAll(at replica: Replica) throws {
    let waiting = Set(replica.inbox.map(\.number))
    for diff in diffs.values.sorted(by: { $0.number < $1.number })
    where diff.author != replica.number && !replica.applied.contains(diff.id) && !waiting.contains(diff.number) {
      replica.inbox.append(diff)
    }
    try receive(Reception(), at: replica, releasingHeld: simulation.schemaMode == .hold)
  }
}

/// The outcome of a history on all replicas, for comparison with another run of it.
struct RunResult: Equatable {
  /// The steps so far.
  private let trace: [String]
  /// All tables of each replica, the ledger's among them, row by row.
  private let contents: [[String]]
  /// The same as far as it may not depend on how files were grouped: rows, ledger entries and conflict records.
  private let outcomes: [[String]]

  init(_ trace: [String], _ replicas: [Replica]) throws {
    self.trace = trace
    contents = try replicas.map { try Self.contents(of: $0.database) }
    outcomes = try replicas.map { try Self.outcomes(of: $0) }
  }

  /// - Throws: `Violation` when another run of the same history has done something else.
  func requireSame(as other: RunResult) throws {
    try Self.require(.repeatable, [trace] + contents, [other.trace] + other.contents)
  }

  /// - Throws: `Violation` when a run that grouped the files differently has another outcome.
  func requireSameOutcomes(as other: RunResult) throws {
    try Self.require(.groupingIsInvisible, outcomes, other.outcomes)
  }

  private static func require(_ invariant: Invariant, _ first: [[String]], _ second: [[String]]) throws {
    for (one, other) in zip(first, second) where one != other {
      let place =
        zip(one, other).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? min(one.count, other.count)
      func line(_ lines: [String]) -> String { place < lines.count ? lines[place] : "nothing" }
      throw Violation(invariant, "once: \(line(one))\nand once: \(line(other))")
    }
  }

  private static func contents(of database: borrowing SQLiteConnection) throws -> [String] {
    let tables = try database.rows(of: "SELECT name FROM main.sqlite_schema WHERE type = 'table' ORDER BY name") {
      $0.text(at: 0) ?? ""
    }
    var lines: [String] = []
    for table in tables {
      try database.forEachRow(of: "SELECT * FROM main.\(SQLText.identifier(table))") { row in
        lines.append("\(table): \(row.values.map(text).joined(separator: ", "))")
      }
    }
    return lines
  }

  /// A value, shortened if long.
  private static func text(of value: ChangesetValue) -> String {
    guard case .blob(let bytes) = value, bytes.count > 64 else { return "\(value)" }
    return "a blob with the digest \(ContentDigest(of: bytes))"
  }

  private static func outcomes(of replica: Replica) throws -> [String] {
    var lines = try replica.rows().tables.enumerated().flatMap { table, rows in
      rows.values.map { "row of table \(table): \($0)" }.sorted()
    }
    let entries = """
      SELECT diff, state, inserted, updated, deleted, conflicts, omitted, reason FROM main.buckia_ledger ORDER BY diff
      """
    try replica.database.forEachRow(ofCached: entries) { lines.append("ledger: \($0.values)") }
    lines += try ConflictRecord.all(on: replica.database).map { record in
      "conflict: \(record.diff) \(record.table) \(record.key) \(record.kind) \(record.outcome) "
        + "\(record.base ?? []) \(record.local ?? []) \(record.incoming ?? []) \(record.reason ?? "")"
    }.sorted()
    return lines
  }
}
