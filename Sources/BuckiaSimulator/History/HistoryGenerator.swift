/// Generates the history of a seed, step by step, while a run makes the steps: edits depend on the present rows.
struct HistoryGenerator {
  private(set) var history: History
  private let simulation: Simulation
  private let run: SimulationRun
  private let randomEdit: RandomEdit
  /// When each replica gets the upgrade.
  private var upgrades: [Int] = []
  /// The pairs of replicas of which one will trust the other.
  private var strangers: [(replica: Int, other: Int)] = []
  private var random: SimulationRandom
  /// Copies of diffs that are on their way.
  private var travelling: [(due: Int, diff: Int, replica: Int)] = []
  private var nextDiff = 0

  init(_ simulation: Simulation, _ template: Template, seed: UInt64) throws {
    self.simulation = simulation
    history = History(
      seed: seed, schema: simulation.schema, upgrade: simulation.upgrade, replicas: simulation.replicas)
    run = try SimulationRun(simulation, template, replicas: simulation.replicas, seed: seed)
    randomEdit = RandomEdit(template.tables)
    // The run has drawn from the seed itself.
    random = SimulationRandom(seed: seed ^ 0x5e5e_5e5e_5e5e_5e5e)
  }

  /// Generates the history. If it fails, its last step is the failing one.
  ///
  /// - Throws: `Violation`.
  mutating func generate() throws -> (result: RunResult, report: SimulationReport) {
    if simulation.trust == .known { try meet() }
    if !simulation.upgrade.isEmpty {
      // Some get it at the end only.
      upgrades = run.replicas.map { _ in random.number(0...max(1, simulation.length * 3 / 2)) }
    }
    for action in 0..<max(0, simulation.length) {
      if !simulation.upgrade.isEmpty || simulation.trust == .known { try change(at: action) }
      if simulation.network.isInstant { try actInstantly() } else { try act(at: action) }
    }
    let result = try run.finish()
    var report = run.report
    report.histories = 1
    return (result, report)
  }

  private mutating func take(_ replica: Int?, _ action: Step.Action) throws {
    let step = Step(replica, action)
    history.steps.append(step)
    try run.take(step)
  }

  // MARK: Drawing

  private mutating func act(at action: Int) throws {
    switch random.number(0...99) {
    case ..<50: try edit()
    case ..<70: try send(at: action)
    case ..<92: try receive()
    case ..<97: try take(nil, .wait(seconds: random.number(1...600)))
    default:
      let ahead = random.number(0...max(0, simulation.clockSkew)) - simulation.clockSkew / 2
      try take(random.number(0...(run.replicas.count - 1)), .setClock(ahead: ahead))
    }
    let arrived = travelling.filter { $0.due <= action }
    travelling.removeAll { $0.due <= action }
    for copy in arrived { try take(copy.replica, .deliver(diff: copy.diff)) }
  }

  /// Lets most trust each other from the beginning.
  private mutating func meet() throws {
    for replica in run.replicas.indices {
      for other in run.replicas.indices where other != replica {
        if random.chance(0.6) {
          try take(replica, .trust(other: other))
        } else {
          strangers.append((replica, other))
        }
      }
    }
  }

  /// Replicas get the upgrade, and begin to trust each other.
  private mutating func change(at action: Int) throws {
    for (replica, time) in upgrades.enumerated() where time == action { try take(replica, .upgrade) }
    if random.chance(0.15), let place = random.pick(strangers.indices) {
      let (replica, other) = strangers.remove(at: place)
      try take(replica, .trust(other: other))
    }
  }

  private mutating func actInstantly() throws {
    guard let author = try edit() else { return }
    try take(author, .send(diff: nextDiff))
    defer { nextDiff += 1 }
    guard run.diffs[nextDiff] != nil else { return }
    for replica in run.replicas.indices where replica != author {
      try take(replica, .deliver(diff: nextDiff))
      try take(replica, .receive(Reception()))
    }
  }

  /// - Returns: The replica that was edited; nil if nothing has changed.
  @discardableResult
  private mutating func edit() throws -> Int? {
    let replica = random.number(0...(run.replicas.count - 1))
    guard let edit = drawnEdit() else { return nil }
    var generator = SimulationRandom(seed: random.next())
    var step: Step?
    defer { if let step { history.steps.append(step) } }
    try run.edit(replica, edit.name) { database in
      if let body = edit.body {
        try body(database, &generator)
      } else {
        let edit = try simulation.upgrade.isEmpty ? randomEdit : RandomEdit(run.replicas[replica].presentTables())
        try edit.make(in: database, &generator)
      }
    } didEdit: {
      step = $0
    }
    return step == nil ? nil : replica
  }

  private mutating func drawnEdit() -> Edit? {
    let total = simulation.edits.reduce(0) { $0 + max(0, $1.weight) }
    guard total > 0 else { return nil }
    var left = random.number(0...(total - 1))
    return simulation.edits.first { edit in
      left -= max(0, edit.weight)
      return left < 0
    }
  }

  private mutating func send(at action: Int) throws {
    let author = random.number(0...(run.replicas.count - 1))
    let diff = nextDiff
    nextDiff += 1
    try take(author, .send(diff: diff))
    guard run.diffs[diff] != nil else { return }
    let network = simulation.network
    for replica in run.replicas.indices where replica != author {
      let copies = random.chance(network.losses) ? 0 : random.chance(network.duplicates) ? 2 : 1
      for _ in 0..<copies {
        travelling.append((action + random.number(network.delay), diff, replica))
      }
    }
  }

  private mutating func receive() throws {
    guard let replica = random.pick(run.replicas.filter { !$0.inbox.isEmpty }) else { return }
    var reception = Reception()
    if random.chance(0.3) { reception.order = .asArrived }
    if random.chance(0.5) { reception.groups = (0..<random.number(1...3)).map { _ in random.number(1...3) } }
    if random.chance(simulation.interruptions) {
      reception.interruption =
        random.chance(0.5)
        ? .stop(beforeFile: random.number(0...replica.inbox.count)) : .crash(afterRows: random.number(0...4))
    }
    try take(replica.number, .receive(reception))
  }
}
