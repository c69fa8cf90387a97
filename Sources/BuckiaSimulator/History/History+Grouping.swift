extension History {
  /// The same history, with files in other groups and without stops. It must come to the same.
  ///
  /// What a crash leaves behind depends on what was committed before, so receptions that crash stay as they are.
  var regrouped: History {
    var random = SimulationRandom(seed: ~seed)
    var other = self
    other.steps = steps.map { step in
      guard case .receive(let replica, var reception) = step else { return step }
      if case .crash? = reception.interruption { return step }
      reception.interruption = nil
      reception.groups = random.chance(0.5) ? [] : [random.number(1...2)]
      return .receive(replica: replica, reception)
    }
    return other
  }
}
