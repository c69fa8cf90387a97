import SQLiteConnections

extension Simulation {
  /// What happens to diffs on their way. Each diff is sent to all replicas.
  public struct Network: Sendable, Equatable {
    /// The maximum number of steps between the sending and the arrival of a diff. Diffs overtake each other.
    public var delay: ClosedRange<Int> = 0...6
    /// The probability of a lost copy, from 0 to 1. A lost one arrives at the end, when it is sent again.
    public var losses = 0.15
    /// How often a copy arrives twice, from 0 to 1.
    public var duplicates = 0.15
    /// True to send and apply each edit everywhere before the next one. There are no other steps then.
    public var isInstant = false

    /// A network that delays, doubles and loses diffs.
    public init() {}

    /// A network on which each edit is everywhere before the next one is made: there are no conflicts.
    public static let instant = {
      var network = Network()
      network.isInstant = true
      return network
    }()
  }
}

extension Simulation {
  /// Makes the history of a seed and checks it: it is taken twice, and that of every fourth seed once more with its files in other
  /// groups.
  ///
  /// - Parameter seed: The seed. The same one makes the same history, as long as the simulation and Buckia are the same.
  /// - Returns: How much has happened.
  /// - Throws: `SimulationFailure` with the shortest history that was found to fail; `BuckiaError` where the schema is no SQL.
  @discardableResult
  public func run(seed: UInt64) throws -> SimulationReport {
    try run(seed: seed, template(of: schema, upgrade))
  }

  /// Makes and checks the histories of many seeds, up to the first that fails.
  ///
  /// - Parameters:
  ///   - seeds: The seeds.
  ///   - folder: The folder for the history of a failure, in a file with the seed as its name; nil to keep none.
  /// - Returns: How much has happened.
  /// - Throws: As ``run(seed:)``; `BuckiaError` where the file cannot be written.
  @discardableResult
  public func run(
    seeds: some Sequence<UInt64>, keepingFailuresIn folder: String? = nil
  ) throws -> SimulationReport {
    var sum = SimulationReport()
    let template = try template(of: schema, upgrade)
    for seed in seeds {
      do {
        sum += try run(seed: seed, template)
      } catch let failure as SimulationFailure {
        if let folder { try failure.write(to: "\(folder)/\(seed).json") }
        throw failure
      }
    }
    return sum
  }

  /// Runs and checks the history in a file of a failure. The rest is this simulation's: policies, the resolver and
  /// checks.
  ///
  /// - Parameter path: The file.
  /// - Throws: `SimulationFailure` when it still fails; `BuckiaError` where the file cannot be read or is no history.
  public func replay(_ path: String) throws { try check(try History(contentsOf: path)) }

  /// Runs and checks a history.
  ///
  /// - Throws: `SimulationFailure` with this very history.
  func check(_ history: History) throws {
    do {
      try verify(history, template(of: history.schema, history.upgrade))
    } catch let violation as Violation {
      throw SimulationFailure(violation, history)
    }
  }

  private func template(of schema: String, _ upgrade: [String]) throws -> Template {
    try Template(schema: schema, upgrade: upgrade, keepsClocks: conflicts.usesLatest, trust: trust)
  }

  private func run(seed: UInt64, _ template: Template) throws -> SimulationReport {
    guard replicas >= 2 else { throw BuckiaError(.misuse, "a simulation needs two replicas") }
    var generator = try HistoryGenerator(self, template, seed: seed)
    do {
      let (result, report) = try generator.generate()
      try result.requireSame(as: self.result(of: generator.history, template))
      if seed.isMultiple(of: 4) {
        try result.requireSameOutcomes(as: self.result(of: generator.history.regrouped, template))
      }
      return report
    } catch let violation as Violation {
      throw try HistoryShrinker(self, template).failure(of: generator.history, violation)
    }
  }

  /// Runs a history twice, and once with its files in other groups.
  ///
  /// - Throws: `Violation`.
  func verify(_ history: History, _ template: Template) throws {
    let once = try result(of: history, template)
    try once.requireSame(as: result(of: history, template))
    try once.requireSameOutcomes(as: result(of: history.regrouped, template))
  }

  /// Runs a history once.
  ///
  /// - Throws: `Violation`.
  func result(of history: History, _ template: Template) throws -> RunResult {
    let run = try SimulationRun(self, template, replicas: history.replicas, seed: history.seed)
    for step in history.steps { try run.take(step) }
    return try run.finish()
  }
}
