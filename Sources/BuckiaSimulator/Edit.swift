import SQLiteConnections

/// Something that a person does with an app: one transaction on one replica.
///
/// ```swift
/// let rename = Edit("rename a note") { database, random in
///   guard let note = random.pick(try database.rows("SELECT id FROM notes ORDER BY id")) else { return }
///   try database.run("UPDATE notes SET title = ?2 WHERE id = ?1", note[0], .text("title \(random.number(1...99))"))
/// }
/// ```
///
/// All randomness must come from the generator that the edit receives. A query without ORDER BY may return its rows in
/// another order in the next run.
public struct Edit: Sendable {
  /// The work on the database.
  typealias Body = @Sendable (SimulatedDatabase, inout SimulationRandom) throws -> Void

  /// Its name, which histories mention.
  public let name: String
  /// Its probability in proportion to the other edits.
  public var weight: Int
  /// nil for edits that are made from the schema.
  let body: Body?

  private init(_ name: String, weight: Int, body: Body?) {
    self.name = name
    self.weight = weight
    self.body = body
  }

  /// Creates an edit of the app's own.
  ///
  /// - Parameters:
  ///   - name: Its name, which histories mention.
  ///   - weight: Its probability in proportion to the other edits.
  ///   - body: Changes the database of a replica. An error of SQLite that it throws on, such as of a constraint, takes all of it back;
  ///     any other ends the simulation.
  public init(
    _ name: String, weight: Int = 1,
    _ body: @escaping @Sendable (SimulatedDatabase, inout SimulationRandom) throws -> Void
  ) {
    self.init(name, weight: weight, body: body)
  }

  /// Edits that are made from the schema: rows are inserted, updated and deleted, and get other keys, in any table. Foreign keys mostly
  /// refer to rows that are there. Values are of all kinds: NULL, floats, blobs, empty ones and long ones.
  public static let random = Edit("random", weight: 1, body: nil)
}

/// The database of one replica, for the length of an edit or a check.
///
/// The statements of an edit are recorded with their values, to repeat the edit without its code.
public final class SimulatedDatabase {
  /// The number of the replica, from 0.
  public let replica: Int
  private let connection: SQLiteConnection
  private(set) var statements: [Statement] = []

  /// - Parameter connection: The replica's, which must outlive the edit.
  init(_ replica: Int, on connection: borrowing SQLiteConnection) {
    self.replica = replica
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// Runs a statement that changes rows.
  ///
  /// - Parameters:
  ///   - sql: One statement.
  ///   - values: The values of its parameters.
  /// - Throws: `BuckiaError`, such as for a constraint. Thrown on by an edit, it takes back all of the edit, which then counts as
  ///   not made.
  public func run(_ sql: String, _ values: ChangesetValue...) throws {
    try run(Statement(sql: sql, values: values))
  }

  /// The rows of a query.
  ///
  /// - Parameters:
  ///   - sql: One query.
  ///   - values: The values of its parameters.
  /// - Throws: `BuckiaError` when SQLite refuses it.
  public func rows(_ sql: String, _ values: ChangesetValue...) throws -> [[ChangesetValue]] {
    try wrapping {
      let statement = try connection.prepare(sql)
      for (index, value) in values.enumerated() { try statement.bind(value, at: index) }
      var rows: [[ChangesetValue]] = []
      while try statement.step() { rows.append(statement.values) }
      return rows
    }
  }

  /// Runs a statement and writes it down.
  func run(_ statement: Statement) throws {
    try wrapping {
      let prepared = try connection.prepare(statement.sql)
      for (index, value) in statement.values.enumerated() { try prepared.bind(value, at: index) }
      try prepared.run()
    }
    statements.append(statement)
  }

  private func wrapping<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch { throw BuckiaError.wrapped(error) }
  }
}

extension SQLiteStatement {
  /// The values of the present row.
  var values: [ChangesetValue] { (0..<columnCount).map { ChangesetValue(self, at: $0) } }
}

/// The randomness of a simulation: the same seed gives the same numbers, on every machine.
///
/// This is SplitMix64; see Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
public struct SimulationRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Begins with a seed.
  public init(seed: UInt64) { state = seed }

  /// The next number.
  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// True with a probability from 0 to 1.
  public mutating func chance(_ probability: Double) -> Bool { Double.random(in: 0..<1, using: &self) < probability }

  /// One of several; nil if there is none.
  public mutating func pick<Element>(_ choices: some RandomAccessCollection<Element>) -> Element? {
    choices.randomElement(using: &self)
  }

  /// A whole number in a range.
  public mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }
}
