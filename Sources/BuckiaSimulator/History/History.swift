/// Everything that happens in one simulation, as data: it can be kept as a file and taken again, step by step.
///
/// What it leaves out is the end, which is always the same: everybody sends what is not sent yet, everything is delivered to
/// everybody, and is applied.
public struct History: Sendable, Equatable {
  /// The seed that it was made from.
  public let seed: UInt64
  /// What all replicas begin with, as SQL.
  public let schema: String
  /// What the upgrade adds to it, statement by statement.
  public let upgrade: [String]
  /// How many replicas there are.
  public internal(set) var replicas: Int
  var steps: [Step] = []

  init(seed: UInt64, schema: String, upgrade: [String] = [], replicas: Int) {
    self.seed = seed
    self.schema = schema
    self.upgrade = upgrade
    self.replicas = replicas
  }

  /// How many steps there are.
  public var stepCount: Int { steps.count }
}

extension History: CustomStringConvertible {
  /// The steps, one a line.
  public var description: String {
    let lines = steps.enumerated().map { "  \($0 + 1). \($1)" } + ["  then everybody gets everything"]
    return lines.joined(separator: "\n")
  }
}
