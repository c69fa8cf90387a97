/// A history in which something does not hold that has to.
///
/// ```swift
/// do {
///   try simulation.run(seeds: 0..<1_000)
/// } catch let failure as SimulationFailure {
///   print(failure)
///   try failure.write(to: "failure.json")
/// }
/// ```
public struct SimulationFailure: Error, Sendable, CustomStringConvertible {
  /// What does not hold.
  public let invariant: Invariant
  /// What was found instead.
  public let details: String
  /// The shortest history that was found to fail in this way.
  public let history: History

  init(_ violation: Violation, _ history: History) {
    invariant = violation.invariant
    details = violation.details
    self.history = history
  }

  /// The seed that made the history.
  public var seed: UInt64 { history.seed }

  /// What does not hold, what was found instead, and the steps.
  public var description: String {
    "\(invariant): this does not hold in the history of seed \(seed).\n\(details)\n\(history.replicas) replicas:\n\(history)"
  }

  /// Writes the history to a file, which ``Simulation/replay(_:)`` takes. A file that is there is replaced.
  ///
  /// - Parameter path: The file, a JSON document.
  /// - Throws: `BuckiaError` when it cannot be written.
  public func write(to path: String) throws {
    do {
      try HistoryFile.write(history, failing: "\(invariant): \(details)", to: path)
    } catch {
      throw BuckiaError.wrapped(error)
    }
  }
}
