/// Creates a history that fails shorter and simpler, as long as it fails in the same way.
///
/// Steps are left out in ever smaller pieces, as in Zeller and Hildebrandt, "Simplifying and isolating failure-inducing
/// input", 2002; then unneeded replicas, statements, and unusual values and receptions.
final class HistoryShrinker {
  private let simulation: Simulation
  private let template: Template
  /// The number of histories that may still be tried.
  private var attemptsLeft = 600

  init(_ simulation: Simulation, _ template: Template) {
    self.simulation = simulation
    self.template = template
  }

  /// The failure with the shortest history that was found.
  func failure(of history: History, _ violation: Violation) throws -> SimulationFailure {
    var best = SimulationFailure(violation, history)
    var length = Int.max
    // One simplification can make another possible.
    while best.history.weight < length, attemptsLeft > 0 {
      length = best.history.weight
      try leaveOutSteps(&best)
      try leaveOutReplicas(&best)
      try simplify(&best)
    }
    return best
  }

  /// Accepts a simpler history if it fails in the same way.
  private func attempt(_ history: History, _ best: inout SimulationFailure) throws -> Bool {
    guard attemptsLeft > 0, history != best.history else { return false }
    attemptsLeft -= 1
    do {
      switch best.invariant {
      case .repeatable, .groupingIsInvisible: try simulation.verify(history, template)
      default: _ = try simulation.result(of: history, template)
      }
      return false
    } catch let violation as Violation {
      guard violation.invariant == best.invariant else { return false }
      best = SimulationFailure(violation, history)
      return true
    }
  }

  private func leaveOutSteps(_ best: inout SimulationFailure) throws {
    var size = max(1, best.history.steps.count / 2)
    while true {
      var start = 0
      var hasChanged = false
      while start < best.history.steps.count {
        var shorter = best.history
        shorter.steps.removeSubrange(start..<min(start + size, shorter.steps.count))
        if try attempt(shorter, &best) { hasChanged = true } else { start += size }
      }
      if size == 1, !hasChanged { return }
      size = max(1, size / 2)
    }
  }

  private func leaveOutReplicas(_ best: inout SimulationFailure) throws {
    var replica = best.history.replicas - 1
    while replica >= 0, best.history.replicas > 2 {
      var fewer = best.history
      fewer.replicas -= 1
      fewer.steps = fewer.steps.compactMap { $0.leavingOut(replica) }
      _ = try attempt(fewer, &best)
      replica -= 1
    }
  }

  private func simplify(_ best: inout SimulationFailure) throws {
    for place in best.history.steps.indices {
      for simpler in best.history.steps[place].simpler {
        var other = best.history
        other.steps[place] = simpler
        _ = try attempt(other, &best)
      }
    }
  }
}

extension History {
  /// How much there is to read.
  fileprivate var weight: Int { replicas + steps.reduce(0) { $0 + $1.weight } }
}

extension Step {
  fileprivate var weight: Int {
    switch action {
    case .edit(_, let statements):
      statements.reduce(100) { $0 + 10 + $1.values.reduce(0) { $0 + "\($1)".utf8.count } }
    case .receive(let reception): reception == Reception() ? 100 : 101
    default: 100
    }
  }

  /// Simpler steps that may do as well, each in one respect.
  fileprivate var simpler: [Step] {
    switch action {
    case .edit(let name, let statements):
      let fewer = statements.indices.map { place in
        var rest = statements
        rest.remove(at: place)
        return rest
      }
      let plainer = statements.indices.flatMap { place in
        statements[place].values.indices.compactMap { index -> [Statement]? in
          guard let value = statements[place].values[index].simpler else { return nil }
          var other = statements
          other[place].values[index] = value
          return other
        }
      }
      return ((statements.count > 1 ? fewer : []) + plainer).map { Step(replica, .edit(name: name, statements: $0)) }
    case .receive: return [Step(replica, .receive(Reception()))]
    default: return []
    }
  }
}

extension ChangesetValue {
  /// A shorter value of the same kind; nil if there is none.
  fileprivate var simpler: ChangesetValue? {
    switch self {
    case .text(let text) where text.utf8.count > 8: .text(String(text.prefix(4)))
    case .blob(let bytes) where bytes.count > 2: .blob(Array(bytes.prefix(2)))
    case .real(let number) where number.description.utf8.count > 4: .real(0.5)
    case .integer(let number) where number > 9_999: .integer(number % 10_000)
    default: nil
    }
  }
}
