@testable import BuckiaEngine
import BuckiaKSUID
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// One author, one receiver: what the author recorded, and how to make the receiver's database again and again.
struct ApplyScenario {
  /// The outcome of applying the changes once.
  struct Outcome {
    /// Every table's rows, as lines.
    var content: [String: [String]] = [:]
    /// The same rows, column by column.
    var rows: [String: [Rows.Row]] = [:]
    /// The questions that were asked, sorted.
    var questions: [String] = []
    /// Whether the whole file was refused.
    var isRefused = false
    var counts = ApplyCounts()
  }

  let tables: [RandomTable]
  let changes: [UInt8]
  let definitions: [TableDefinition]?
  /// The rows of the author's tables after the changes, and the receiver's before, by table.
  private(set) var authors: [String: [Rows.Row]] = [:]
  private(set) var locals: [String: [Rows.Row]] = [:]
  private let script: [String]
  private let orders: [[Int]]

  init(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let plain = (0..<Int.random(in: 1...2, using: &random)).map { RandomTable(name: "t \($0)", random: &random) }
    let isConstrained = !random.oneIn(3)
    let constrained = isConstrained ? plain.map { $0.constrained(&random) } : plain
    // The receiver's tables may refuse what the author's allow.
    let authorsTables = random.oneIn(2) ? plain : constrained
    let isPositional = random.oneIn(3)
    let isPatchset = isPositional && random.oneIn(2)
    tables = constrained
    let isReordered = !isPositional && random.oneIn(2)
    orders = constrained.map { table in
      isReordered ? table.columns.indices.shuffled(using: &random) : Array(table.columns.indices)
    }

    var base: [String] = []
    for table in constrained {
      for _ in 0..<Int.random(in: 4...14, using: &random) { base.append(table.statement(&random)) }
    }
    let author = try SQLiteConnection(opening: ":memory:", as: .create)
    for table in authorsTables { try author.execute(table.creation()) }
    for statement in base { try author.execute(statement) }
    let session = try SQLiteSession(on: author)
    try session.attach()
    for _ in 0..<Int.random(in: 1...14, using: &random) {
      let table = Int.random(in: 0..<constrained.count, using: &random)
      try author.execute(authorsTables[table].statement(&random))
    }
    changes = isPatchset ? try session.patchset() : try session.changeset()
    var local: [String] = []
    for _ in 0..<Int.random(in: 0...8, using: &random) {
      let table = Int.random(in: 0..<constrained.count, using: &random)
      local.append(constrained[table].statement(&random))
    }
    script = base + local
    if isPositional {
      definitions = nil
    } else {
      let schema = try SchemaReader(author)
      definitions = try schema.entries.map { try schema.definition(of: $0, on: author) }
    }
    authors = try rows(of: author)
    locals = try rows(of: try makeReceiver(forStock: true))
  }

  /// The receiver's database. Stock apply needs the columns in the author's order.
  private func makeReceiver(forStock: Bool) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: ":memory:", as: .create)
    for (table, order) in zip(tables, orders) {
      try connection.execute(table.creation(order: forStock ? nil : order))
    }
    for statement in script { try connection.execute(statement) }
    return connection
  }

  private func content(of connection: borrowing SQLiteConnection) throws -> [String: [String]] {
    var content: [String: [String]] = [:]
    for table in tables {
      content[table.name] = try Rows.lines(of: table.name, columns: table.columns.map(\.name), on: connection)
    }
    return content
  }

  private func rows(of connection: borrowing SQLiteConnection) throws -> [String: [Rows.Row]] {
    var rows: [String: [Rows.Row]] = [:]
    for table in tables {
      rows[table.name] = try Rows.all(of: table.name, columns: table.columns.map(\.name), on: connection)
    }
    return rows
  }

  /// Whether an UPDATE changes nothing but the spelling of a key: `a` to `A` under NOCASE. Sessions record such a change;
  /// applying it, SQLite 3.40 fails with an error in its own SQL. The engine leaves the row as it is.
  func hasUpdateOfNothing() throws -> Bool {
    try changes.withRawSpan { bytes in
      var reader = ChangesetReader()
      while let change = try reader.next(in: bytes) {
        if change.operation == .update, !reader.new.contains(where: \.isDefined) { return true }
      }
      return false
    }
  }

  /// Applies with `sqlite3changeset_apply_v2`.
  func stock(_ policy: ConflictPolicy) throws -> Outcome {
    let connection = try makeReceiver(forStock: true)
    var outcome = Outcome()
    let questions = Questions()
    do {
      try StockChangesets.apply(changes, to: connection) { question in
        let operation = ChangeOperation(rawValue: UInt8(truncatingIfNeeded: question.operation))
        questions.list.append("\(question.kind) \(question.table) \(operation?.name ?? "")")
        switch policy {
        case .abort: return .abort
        case .keepLocal: return .omit
        case .takeIncoming: return question.kind == .data || question.kind == .conflict ? .replace : .omit
        }
      }
    } catch {
      guard error.isAborted else { throw error }
      outcome.isRefused = true
    }
    outcome.questions = questions.list.sorted()
    outcome.content = try content(of: connection)
    outcome.rows = try rows(of: connection)
    return outcome
  }

  private final class Questions { var list: [String] = [] }

  /// Applies with the engine.
  ///
  /// - Parameter asks: Whether a resolver is there that hears every question and leaves the answer to the policy.
  func engine(_ policy: ConflictPolicy, asks: Bool) throws -> Outcome {
    let connection = try makeReceiver(forStock: false)
    var outcome = Outcome()
    let questions = Questions()
    var resolver: ConflictResolver?
    if asks {
      resolver = { conflict in
        questions.list.append("\(conflict.kind) \(conflict.table) \(conflict.operation?.name ?? "")")
        return .useDefault
      }
    }
    let incoming = try IncomingChanges(
      key: LedgerKey(
        sender: "", id: KSUID(timestamp: 1, payloadHigh: 1, payloadLow: 2), digest: [UInt8](repeating: 7, count: 32),
        isRaw: definitions == nil), file: "test", definitions: definitions, changeset: ChangesetSpool(changes))
    do {
      let settings = ApplySettings(policy: policy, resolver: resolver, time: 0)
      let transaction = try SQLiteTransaction(on: connection)
      outcome.counts = try ApplyPlan(incoming, on: connection, settings: settings).apply(on: connection).counts
      try transaction.commit()
    } catch let error as EngineError where error.code == .conflict {
      outcome.isRefused = true
    }
    outcome.questions = questions.list.sorted()
    outcome.content = try content(of: connection)
    outcome.rows = try rows(of: connection)
    return outcome
  }
}
