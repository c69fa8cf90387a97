extension Simulation {
  /// What happens to diffs on their way. Each diff is sent to all replicas.
  public struct Network: Sendable, Equatable {
    /// How many things may happen between the sending of a diff and its arrival. Diffs overtake each other.
    public var delay: ClosedRange<Int> = 0...6
    /// How often a copy gets lost, from 0 to 1. What is lost arrives in the end, when it is sent again.
    public var losses = 0.15
    /// How often a copy arrives twice, from 0 to 1.
    public var duplicates = 0.15
    /// Whether each edit is sent and applied everywhere before the next one is made. Nothing else happens then.
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
