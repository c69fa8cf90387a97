import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas
import ReplicationTestSupport
import TestSupport
@testable import BuckiaApply
@testable import BuckiaLedger
@testable import SQLiteSchemas

/// An author and a receiver made from a seed: the changes that the author recorded, and a way to make the receiver's
/// database repeatedly.
struct ApplyScenario {
  /// The source of the answers.
  enum Answers: Equatable {
    case policy(ConflictPolicy)
    /// An application's resolver: its answer follows from the question and a number.
    case own(UInt64)
  }

  let seed: UInt64
  let schema: ScenarioSchema
  /// The recorded changes.
  let changes: [UInt8]
  /// The author's definitions; nil if the changes are applied as a raw changeset.
  let definitions: [TableDefinition]?
  let answers: Answers
  /// True if the receiver's connection enforces foreign keys, and whether its triggers fire.
  let enforcesForeignKeys: Bool
  let firesTriggers: Bool
  private let script: [String]
  private let scriptEnforces: Bool
  private let orders: [[Int]]

  /// The receiver's tables.
  var tables: [RandomTable] { schema.receivers.filter { $0.name != schema.missing } }

  /// True if triggers reveal the order in which rows are written.
  var showsOrder: Bool { !schema.receiverTriggers.isEmpty && (firesTriggers || schema.hasTemporaryTriggers) }

  init(seed: UInt64, answers: Answers? = nil) throws {
    self.seed = seed
    var random = SeededGenerator(seed: seed)
    schema = ScenarioSchema(&random)
    // A missing table cannot be created without its definition.
    let isPositional = schema.missing == nil && random.oneIn(3)
    let isPatchset = random.oneIn(4)
    let isReordered = !isPositional && random.oneIn(2)
    orders = schema.receivers.map { table in
      isReordered ? table.columns.indices.shuffled(using: &random) : Array(table.columns.indices)
    }
    enforcesForeignKeys = schema.hasForeignKeys && random.oneIn(2)
    firesTriggers = random.oneIn(3)
    let authorEnforces = schema.hasForeignKeys && random.oneIn(2)
    scriptEnforces = random.oneIn(2)
    let choices: [Answers] = [
      .policy(.keepLocal), .policy(.takeIncoming), .policy(.takeIncoming), .policy(.abort), .own(random.next()),
      .own(random.next()),
    ]
    self.answers = answers ?? choices[Int.random(in: 0..<choices.count, using: &random)]

    var base: [String] = []
    for table in schema.receivers where table.name != schema.missing {
      for _ in 0..<Int.random(in: 4...14, using: &random) { base.append(table.statement(&random)) }
    }
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    try author.execute("PRAGMA encoding = '\(schema.authorEncoding)'")
    try author.execute(ScenarioSchema.log)
    for table in schema.authors { try author.execute(table.creation(isTwin: true)) }
    for trigger in schema.authorTriggers { try author.execute(trigger) }
    if authorEnforces { try author.execute("PRAGMA foreign_keys = ON") }
    try Self.run(base, on: author)
    let session = try SQLiteSession(on: author)
    try session.attach()
    var recorded: [String] = []
    for _ in 0..<Int.random(in: 1...14, using: &random) {
      let table = Int.random(in: 0..<schema.authors.count, using: &random)
      recorded.append(schema.authors[table].statement(&random))
    }
    try Self.run(recorded, on: author)
    changes = isPatchset ? try session.patchset() : try session.changeset()

    var local: [String] = []
    for _ in 0..<Int.random(in: 0...8, using: &random) {
      let table = schema.receivers[Int.random(in: 0..<schema.receivers.count, using: &random)]
      if table.name != schema.missing { local.append(table.statement(&random)) }
    }
    script = base + local
    if isPositional {
      definitions = nil
    } else {
      let empty = try SQLiteConnection(opening: ":memory:", as: .create)
      try empty.execute(ScenarioSchema.log)
      for table in schema.authors { try empty.execute(table.creation()) }
      let reader = try SchemaReader(empty)
      definitions = try reader.entries.map { try reader.definition(of: $0) }
    }
  }

  /// Runs each statement on its own, because some may be refused.
  private static func run(_ statements: [String], on connection: borrowing SQLiteConnection) throws {
    for statement in statements {
      do {
        try connection.execute(statement)
      } catch {
        guard error.isConstraint || error.isMismatch else { throw error }
      }
    }
  }

  /// The receiver's database.
  ///
  /// SQLite's apply needs the columns in the author's order, and a key in every table. Its connection does not enforce
  /// foreign keys: whether the engine's does must make no difference.
  func makeReceiver(forStock: Bool) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    try connection.execute("PRAGMA encoding = '\(schema.receiverEncoding)'; \(ScenarioSchema.log)")
    for (table, order) in zip(schema.receivers, orders) where table.name != schema.missing {
      try connection.execute(table.creation(order: forStock ? nil : order, isTwin: forStock))
      for index in table.indexes { try connection.execute(index) }
    }
    for trigger in schema.receiverTriggers { try connection.execute(trigger) }
    if scriptEnforces { try connection.execute("PRAGMA foreign_keys = ON") }
    try Self.run(script, on: connection)
    try connection.execute("PRAGMA foreign_keys = \(enforcesForeignKeys && !forStock ? "ON" : "OFF")")
    return connection
  }

  /// True if an UPDATE only changes the spelling of a key: `a` to `A` under NOCASE. Sessions record such a change;
  /// applying it, SQLite 3.40 fails with an error in its own SQL. The engine leaves the row unchanged.
  func hasUpdateOfNothing() throws -> Bool {
    try changes.withRawSpan { bytes in
      var reader = ChangesetReader()
      while let change = try reader.next(in: bytes) {
        if change.operation == .update, !reader.new.contains(where: \.isDefined) { return true }
      }
      return false
    }
  }

  /// The information needed to repeat the case.
  var description: String {
    """
    seed \(seed), \(answers), \(definitions == nil ? "positional" : "by name"), foreign keys \(enforcesForeignKeys), \
    triggers \(firesTriggers), \(schema.receiverEncoding)
    \((schema.receivers.map { $0.creation() } + schema.receivers.flatMap(\.indexes) + schema.receiverTriggers)
      .joined(separator: ";\n"))
    """
  }
}
