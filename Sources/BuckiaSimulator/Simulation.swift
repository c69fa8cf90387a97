import SQLiteConnections

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
  /// The number of replicas, at least 2.
  public var replicas: Int
  /// The conflict policies of each replica.
  public var conflicts: ConflictPolicies
  /// Called for each conflict before the policies; nil for none. It must depend only on the conflict.
  public var resolver: ConflictResolver?
  /// The edits from which each next one is drawn.
  public var edits: [Edit]
  /// Invariants in addition to Buckia's promises.
  public var checks: [Check]
  /// The tables whose rows must be the same on all replicas in the end.
  public var convergingTables: Set<TableName> = []
  /// The number of steps of a history, before all replicas receive everything.
  public var length = 16
  /// The behavior of the network.
  public var network = Network()
  /// How far the clocks of two replicas may be apart, in seconds.
  ///
  /// A diff whose id is more than five minutes ahead of the receiver's clock is held until that time.
  public var clockSkew = 240
  /// The probability that applying is stopped and resumed, or crashes, from 0 to 1.
  public var interruptions = 0.2
  /// The schema changes of an update of the app: statements that create tables and add columns. Each replica gets it at
  /// some time, and all have it at the end. A statement whose table or column a diff has already added is left out.
  public var upgrade: [String] = []
  /// How far diffs may change the schema of a replica that receives them, as of one that has not got the upgrade yet.
  public var schemaMode = SchemaMode.additive
  /// The authors whose diffs are accepted. With `known`, replicas sign them, and begin to trust each other one by one;
  /// at the end all trust each other.
  public var trust = TrustMode.any

  /// Creates a simulation.
  ///
  /// - Parameters:
  ///   - schema: What all replicas begin with, as SQL.
  ///   - replicas: The number of replicas.
  ///   - conflicts: The conflict policies of each.
  ///   - edits: The edits from which each next one is drawn.
  ///   - checks: Invariants in addition to Buckia's promises.
  ///   - resolver: Called for each conflict before the policies.
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

  /// A deliberate mistake of tests, which the simulator must find: a change of a replica's database after each receipt
  /// of diffs.
  package var sabotage: (@Sendable (_ replica: Int, borrowing SQLiteConnection) throws -> Void)?
}

/// Something of your own that has to hold on each replica, all the time: after each edit, and whenever diffs were applied.
///
/// ```swift
/// let check = Check("No note without a title") { database in
///   let count = try database.rows("SELECT count(*) FROM notes WHERE title IS NULL")[0][0]
///   return count == 0 ? nil : "\(count) notes have none"
/// }
/// ```
public struct Check: Sendable {
  /// What holds, in plain words.
  public let name: String
  let body: @Sendable (SimulatedDatabase) throws -> String?

  /// Creates a check.
  ///
  /// - Parameters:
  ///   - name: What holds, in plain words.
  ///   - body: Checks the database of a replica, and returns the violation; nil for none. It must not change anything.
  public init(_ name: String, _ body: @escaping @Sendable (SimulatedDatabase) throws -> String?) {
    self.name = name
    self.body = body
  }
}

/// How much has happened.
public struct SimulationReport: Sendable, Equatable {
  /// Histories that were made.
  public internal(set) var histories = 0
  /// Edits that have changed something.
  public internal(set) var edits = 0
  /// Diffs that were sent.
  public internal(set) var diffs = 0
  /// Diffs that were applied, once for each replica.
  public internal(set) var applied = 0
  /// Conflicts that were met.
  public internal(set) var conflicts = 0
  /// Crashes while diffs were applied.
  public internal(set) var crashes = 0
  /// Diffs of which parts were held until the upgrade.
  public internal(set) var held = 0
  /// Diffs that were quarantined at first, because their author was not trusted.
  public internal(set) var quarantined = 0

  /// The edits that were tried, each with true if it has ever changed something.
  private var tries: [String: Bool] = [:]

  /// The names of edits that were tried and have never changed anything: they find no rows, or SQLite refuses their
  /// statements.
  public var idleEdits: [String] { tries.filter { !$0.value }.keys.sorted() }

  mutating func tried(_ edit: String, hasChanged: Bool) {
    tries[edit] = tries[edit] == true || hasChanged
  }

  mutating func add(_ received: Replica.Received) {
    if received.hasCrashed { crashes += 1 }
    for (_, outcome) in received.done {
      switch outcome.state {
      case .applied:
        applied += 1
        conflicts += outcome.conflicts
      case .held: held += 1
      case .quarantined: quarantined += 1
      case .alreadyApplied, .waiting, .rejected: break
      }
    }
  }

  static func += (sum: inout SimulationReport, other: SimulationReport) {
    sum.histories += other.histories
    sum.edits += other.edits
    sum.diffs += other.diffs
    sum.applied += other.applied
    sum.conflicts += other.conflicts
    sum.crashes += other.crashes
    sum.held += other.held
    sum.quarantined += other.quarantined
    for (edit, hasChanged) in other.tries { sum.tried(edit, hasChanged: hasChanged) }
  }
}

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
  /// A description of the violation.
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

  /// The violated invariant, the description, and the steps.
  public var description: String {
    "\(invariant): this does not hold in the history of seed \(seed).\n\(details)\n\(history.replicas) replicas:\n\(history)"
  }

  /// Writes the history to a file, which ``Simulation/replay(_:)`` takes. A file that is there is replaced.
  ///
  /// - Parameter path: The file, a JSON document.
  /// - Throws: `BuckiaError` when it cannot be written.
  public func write(to path: String) throws {
    do {
      try history.write(failing: "\(invariant): \(details)", to: path)
    } catch {
      throw BuckiaError.wrapped(error)
    }
  }
}
