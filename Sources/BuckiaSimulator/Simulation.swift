/// Replicas of one database that are edited apart and exchange diffs over a network that fails, in memory and repeatable.
///
/// Each seed makes one history: edits, diffs that are delayed, doubled, dropped and delivered out of order, clocks that differ,
/// and applying that stops or crashes. In the end everybody gets everything. A history whose seed is the same does the same.
/// When something that Buckia promises, or that you ask for, does not hold, the run throws a ``SimulationFailure`` with the
/// shortest history that was found to fail.
///
/// ```swift
/// let simulation = Simulation(
///   schema: "CREATE TABLE notes(id TEXT PRIMARY KEY, title TEXT, edited INTEGER)", replicas: 3, conflicts: .keepLocal)
/// try simulation.run(seeds: 0..<100)
/// ```
///
/// Nothing is written to disk, and no clock or network of the machine is used. Buckia's documentation has an article about it.
public struct Simulation: Sendable {
  /// What all replicas begin with: the statements that create the tables, and rows if there are any.
  public var schema: String
  /// How many replicas there are, at least 2.
  public var replicas: Int
  /// What each replica does about conflicts.
  public var conflicts: ConflictPolicies
  /// Is asked about each conflict before the policies; nil for none. It must depend on the conflict alone.
  public var resolver: ConflictResolver?
  /// The edits from which each next one is drawn.
  public var edits: [Edit]
  /// What has to hold beside what Buckia promises.
  public var checks: [Check]
  /// The tables whose rows must be the same on all replicas in the end.
  public var convergingTables: Set<TableName> = []
  /// How many things happen in a history before everybody gets everything.
  public var length = 16
  /// What the network does with diffs.
  public var network = Network()
  /// How far the clocks of two replicas may be apart, in seconds.
  ///
  /// A diff whose id is more than five minutes ahead of the clock of whoever receives it waits until its time comes.
  public var clockSkew = 240
  /// How often applying is stopped and goes on, or crashes: a probability from 0 to 1.
  public var interruptions = 0.2
  /// What an update of the app adds to the schema: statements that create tables and add columns. Each replica gets it at some time, and all
  /// have it in the end. A statement that adds what is there already, because a diff has brought it, is left out.
  public var upgrade: [String] = []
  /// How far diffs may change the schema of a replica that receives them, as of one that has not got the upgrade yet.
  public var schemaMode = SchemaMode.additive
  /// Whose diffs are taken. With `known`, replicas sign them, and begin to trust each other one by one; in the end everybody trusts everybody.
  public var trust = TrustMode.any

  /// Makes a simulation.
  ///
  /// - Parameters:
  ///   - schema: What all replicas begin with, as SQL.
  ///   - replicas: How many there are.
  ///   - conflicts: What each does about conflicts.
  ///   - edits: The edits from which each next one is drawn.
  ///   - checks: What has to hold beside what Buckia promises.
  ///   - resolver: Is asked about each conflict before the policies.
  public init(
    schema: String, replicas: Int = 3, conflicts: ConflictPolicies = .keepLocal, edits: [Edit] = [.random],
    checks: [Check] = [], resolver: ConflictResolver? = nil
  ) {
    self.schema = schema
    self.replicas = replicas
    self.conflicts = conflicts
    self.resolver = resolver
    self.edits = edits
    self.checks = checks
  }

  /// A mistake for tests to find.
  package var sabotage: Sabotage?
}
