import BuckiaBytes
import ReplicationTestSupport
@testable import BuckiaApply
@testable import BuckiaLedger
@testable import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas
import TestSupport
import Testing

extension ApplyScenario {
  /// The outcome of applying the changes once.
  struct Outcome: Equatable {
    /// Every table's rows, as sorted lines.
    var content: [String: [String]] = [:]
    /// The questions asked, with all values, in order.
    var questions: [String] = []
    /// True if the whole file was refused.
    var isRefused = false
    /// True if dangling references were repaired, which SQLite does not do.
    var hasMendedReferences = false

    /// The questions in sorted order.
    var sortedQuestions: [String] { questions.sorted() }
  }

  final class Questions {
    var list: [String] = []
    var hasMendedReferences = false
  }

  /// Returns the outcome for a database.
  func outcome(
    of connection: borrowing SQLiteConnection, isStock: Bool, _ questions: Questions, isRefused: Bool
  ) throws -> Outcome {
    var outcome = Outcome(questions: questions.list, isRefused: isRefused)
    // The order in which several TEMP triggers fire for one event is undefined, and other TEMP triggers change it.
    let logged = schema.hasTemporaryTriggers ? ["what"] : ["id", "what"]
    outcome.content["log"] = try Rows.lines(of: "log", columns: logged, on: connection)
    for table in tables {
      let names = columns(of: table, forStock: isStock) + table.localNames
      let rows = try Rows.lists(of: table.name, columns: names, on: connection)
      outcome.content[table.name] = rows.map { $0.joined(separator: " | ") }.sorted()
    }
    return outcome
  }

  /// The changeset's columns by their names at the receiver.
  func columns(of table: RandomTable, forStock: Bool) -> [String] {
    let key = table.variant == .withoutKey ? [forStock ? "rid" : "_rowid_"] : []
    return key + table.columns.map(\.name)
  }

  // MARK: Answers

  /// The answer to a question, in the engine's terms.
  func answer(to question: String, kind: ConflictKind) -> ConflictDecision {
    switch answers {
    case .policy: return .useDefault
    case .own(let number):
      var hash = number ^ 0xcbf2_9ce4_8422_2325
      for byte in question.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
      hash ^= hash >> 29
      switch hash % 40 {
      case 0: return .abort
      case 1..<18: return .keepLocal
      case 18..<22: return .useDefault
      default: return .takeIncoming
      }
    }
  }

  /// The meaning of `useDefault`.
  var policy: ConflictPolicy { if case .policy(let policy) = answers { policy } else { .keepLocal } }

  /// The answer in SQLite's terms: only existing rows can be replaced.
  func stockAnswer(_ decision: ConflictDecision, kind: StockChangesets.ConflictKind) -> StockChangesets.Answer {
    let wish: ConflictPolicy =
      switch decision {
      case .useDefault: policy
      case .keepLocal: .keepLocal
      case .takeIncoming: .takeIncoming
      case .abort: .abort
      // These tests never answer with values.
      case .write: .keepLocal
      }
    switch wish {
    case .keepLocal: return .omit
    case .takeIncoming: return kind == .data || kind == .conflict ? .replace : .omit
    // SQLite does not know ids: these tests never ask for it.
    case .latest: return .omit
    case .abort: return .abort
    }
  }

  // MARK: SQLite's own apply

  /// Applies with `sqlite3changeset_apply_v2`.
  ///
  /// - Returns: Nil if it fails because a rowid would get a value that is no integer, for example by a foreign-key
  ///   action. To the engine that is a conflict like any other.
  func stock() throws -> Outcome? {
    let connection = try makeReceiver(forStock: true)
    let questions = Questions()
    var isRefused = false
    try connection.enableTriggers(firesTriggers)
    try connection.execute("BEGIN")
    do {
      try StockChangesets.apply(changes, to: connection) { question in
        let (asked, whole) = text(of: question)
        questions.list.append(whole)
        return stockAnswer(answer(to: asked, kind: .data), kind: question.kind)
      }
      try connection.execute("COMMIT")
    } catch {
      if error.isMismatch { return nil }
      guard error.isAborted || error.isConstraint else { throw error }
      isRefused = true
      try connection.execute("ROLLBACK")
    }
    return try outcome(of: connection, isStock: true, questions, isRefused: isRefused)
  }

  /// A question of SQLite as text: the part that does not depend on the order of rows, and all of it.
  private func text(of question: borrowing StockChangesets.Question) -> (asked: String, whole: String) {
    if question.kind == .foreignKey { return ("foreignKey", "foreignKey") }
    let name = question.table
    let old = question.old
    var new = question.new
    // An UPDATE never changes the key, though it may change its spelling.
    if question.operation == 23 { for index in new.indices where isKey(index, of: name) { new[index] = old[index] } }
    let operation = ChangeOperation(rawValue: UInt8(truncatingIfNeeded: question.operation))
    let asked =
      "\(question.kind) \(name) \(operation?.name ?? "") old \(old.map(Self.text)) new \(new.map(Self.text))"
    return (asked, "\(asked) here \(question.conflicting.map(Self.text))")
  }

  private func isKey(_ index: Int, of name: String) -> Bool {
    guard let table = tables.first(where: { $0.name == name }) else { return index == 0 }
    return table.variant == .withoutKey ? index == 0 : table.key.contains(index)
  }

  private static func text(_ value: StockChangesets.Value?) -> String {
    switch value {
    case nil: "-"
    case .null?: "NULL"
    case .integer(let integer)?: "\(integer)"
    case .real(let bits)?: "r\(String(bits, radix: 16))"
    case .text(let bytes)?: "'\(String(decoding: bytes, as: UTF8.self))'"
    case .blob(let bytes)?: "x\(bytes.count < 20 ? "\(bytes)" : "\(bytes.count)")"
    }
  }

  // MARK: The reference

  /// Applies with the reference applier.
  ///
  /// - Returns: The outcome, and whether swapped values were resolved.
  func reference(_ deviations: ReferenceApplier.Deviations) throws -> (outcome: Outcome, hasSettledCircles: Bool) {
    let connection = try makeReceiver(forStock: true)
    let questions = Questions()
    var isRefused = false
    try connection.enableTriggers(firesTriggers)
    // A resolver is asked about each of these rows.
    let applier = ReferenceApplier(deviations, staysOut: { _ in true }) { question in
      let (asked, whole) = text(of: question)
      questions.list.append(whole)
      let decision = answer(to: asked, kind: .data)
      if case .useDefault = decision, policy == .keepLocal, deviations.contains(.mergesColumns), question.kind == .data
      {
        return .merge
      }
      // The engine writes a row without its parent on request, which SQLite does not offer.
      let kind = question.kind == .foreignKey ? .data : question.kind
      return .stock(stockAnswer(decision, kind: kind))
    }
    try connection.execute("BEGIN")
    do {
      try applier.apply(changes, to: connection)
      try connection.execute("COMMIT")
    } catch is ReferenceApplier.Aborted {
      isRefused = true
    } catch let error as SQLiteError where error.isConstraint {
      isRefused = true
    }
    if isRefused { try connection.execute("ROLLBACK") }
    return (
      try outcome(of: connection, isStock: true, questions, isRefused: isRefused), applier.hasSettledCircles
    )
  }

  private func text(of question: ReferenceApplier.Question) -> (asked: String, whole: String) {
    var new = question.new
    if question.operation == .update {
      for index in new.indices where isKey(index, of: question.table) { new[index] = question.old[index] }
    }
    let asked =
      "\(question.kind) \(question.table) \(question.operation?.name ?? "") old \(question.old.map(Self.text)) "
      + "new \(new.map(Self.text))"
    return (asked, "\(asked) here \(question.here.map(Self.text))")
  }

  // MARK: The engine

  /// Applies with the engine.
  ///
  /// - Parameters:
  ///   - asks: True to use a resolver that records every question. Without one, equal changes of both sides are no
  ///     conflict.
  ///   - windowBytes: How many bytes of the changes are in memory at once; nil for all of them.
  ///   - indexes: How indexes are treated meanwhile.
  func engine(
    asks: Bool = true, windowBytes: Int? = nil, indexes: IndexPolicy = .rebuildWhereFaster
  ) throws -> (outcome: Outcome, counts: ApplyCounts) {
    let connection = try makeReceiver(forStock: false)
    let questions = Questions()
    var isRefused = false
    var counts = ApplyCounts()
    var resolver: ApplySettings.Resolver?
    if asks {
      resolver = { conflict in
        // SQLite does not look at foreign keys here: `ForeignKeyAuditTests` does.
        if conflict.kind == .foreignKey, conflict.operation == nil {
          questions.hasMendedReferences = true
          return .keepLocal
        }
        let (asked, whole) = text(of: conflict)
        // SQLite leaves out the changes of a missing table, which the engine creates.
        if let missing = schema.missing, conflict.table.text == missing { return .keepLocal }
        questions.list.append(whole)
        return answer(to: asked, kind: conflict.kind)
      }
    }
    do {
      var settings = ApplySettings(
        policies: ConflictPolicies(policy), resolver: resolver, firesTriggers: firesTriggers, time: 2_000_000_000_000)
      settings.indexPolicy = indexes
      let transaction = try SQLiteTransaction(on: connection)
      counts = try Receiver.plan(incoming(windowBytes: windowBytes), on: connection, settings: settings)
        .apply(in: transaction).counts
      try transaction.commit()
    } catch let error as ReplicationError where error.code == .conflict {
      isRefused = true
    }
    #expect(try connection.foreignKeysEnforced == enforcesForeignKeys, "seed \(seed)")
    #expect(try connection.triggersEnabled, "seed \(seed)")
    var outcome = try outcome(of: connection, isStock: false, questions, isRefused: isRefused)
    outcome.hasMendedReferences = questions.hasMendedReferences
    return (outcome, counts)
  }

  func incoming(windowBytes: Int? = nil) throws -> IncomingChanges {
    var changeset = TemporaryBuffer(changes)
    if let windowBytes {
      changeset = TemporaryBuffer(memoryLimit: 0, windowBytes: windowBytes)
      try changeset.write(changes)
    }
    return try IncomingChanges(
      key: LedgerKey(
        sender: "", id: KSUID(timestamp: 1, payloadHigh: 1, payloadLow: 2), digest: [UInt8](repeating: 7, count: 32),
        isRaw: definitions == nil), file: "test", definitions: definitions, changeset: changeset)
  }

  /// Applies to a receiver, and leaves broken references.
  ///
  /// - Returns: The result, and the number of broken references in each question to the resolver. Nil if the changes
  ///   are refused.
  func applyLettingReferencesStand(
    to connection: borrowing SQLiteConnection
  ) throws -> (result: ApplyResult, violations: [Int])? {
    var violations: [Int] = []
    let settings = ApplySettings(
      policies: policy == .abort ? .takeIncoming : ConflictPolicies(policy),
      resolver: { conflict in
        if conflict.kind == .foreignKey, conflict.operation == nil {
          violations.append(conflict.violations)
          return .keepLocal
        }
        let decision = answer(to: text(of: conflict).asked, kind: conflict.kind)
        if case .abort = decision { return .keepLocal }
        return decision
      }, firesTriggers: firesTriggers, time: 2_000_000_000_000)
    do {
      let transaction = try SQLiteTransaction(on: connection)
      let result = try Receiver.plan(incoming(), on: connection, settings: settings).apply(in: transaction)
      try transaction.commit()
      return (result, violations)
    } catch let error as ReplicationError where error.code == .conflict {
      return nil
    }
  }

  private func text(of conflict: borrowing Conflict) -> (asked: String, whole: String) {
    let name = conflict.table.text
    let table = tables.first { $0.name == name }
    let names = table.map { columns(of: $0, forStock: false) } ?? ["id", "what"]
    var old: [String] = []
    var new: [String] = []
    var here: [String] = []
    let showsLocal = (conflict.kind == .data || conflict.kind == .conflict) && conflict.local.exists
    for name in names {
      old.append(Self.text(conflict.base[name]))
      new.append(Self.text(conflict.incoming[name]))
      if showsLocal { here.append(Self.text(conflict.local[name])) }
    }
    let asked = "\(conflict.kind) \(name) \(conflict.operation?.name ?? "") old \(old) new \(new)"
    return (asked, "\(asked) here \(here)")
  }

  static func text(_ value: ChangesetValue?) -> String {
    switch value {
    case nil: "-"
    case .null?: "NULL"
    case .integer(let integer)?: "\(integer)"
    case .real(let real)?: "r\(String(real.bitPattern, radix: 16))"
    case .text(let text)?: "'\(text)'"
    case .blob(let bytes)?: "x\(bytes.count < 20 ? "\(bytes)" : "\(bytes.count)")"
    }
  }
}
