/// Everything that happens in one simulation, as data: it can be kept as a file and taken again, step by step.
///
/// It lacks the end, which is always the same: all replicas send their unsent changes, everything is delivered to all
/// of them, and is applied.
public struct History: Sendable, Equatable {
  /// The seed that it was made from.
  public let seed: UInt64
  /// What all replicas begin with, as SQL.
  public let schema: String
  /// The additions of the upgrade, statement by statement.
  public let upgrade: [String]
  /// The number of replicas.
  public internal(set) var replicas: Int
  var steps: [Step] = []

  init(seed: UInt64, schema: String, upgrade: [String] = [], replicas: Int) {
    self.seed = seed
    self.schema = schema
    self.upgrade = upgrade
    self.replicas = replicas
  }

  /// The number of steps.
  public var stepCount: Int { steps.count }
}

extension History: CustomStringConvertible {
  /// The steps, one a line.
  public var description: String {
    let lines = steps.enumerated().map { "  \($0 + 1). \($1)" } + ["  then everybody gets everything"]
    return lines.joined(separator: "\n")
  }
}

extension History {
  /// The same history, with files in other groups and without stops. It must come to the same.
  ///
  /// The result of a crash depends on the earlier commits. Therefore receptions with a crash are not changed.
  var regrouped: History {
    var random = SimulationRandom(seed: ~seed)
    var other = self
    other.steps = steps.map { step in
      guard case .receive(var reception) = step.action else { return step }
      if case .crash? = reception.interruption { return step }
      reception.interruption = nil
      reception.groups = random.chance(0.5) ? [] : [random.number(1...2)]
      return Step(step.replica, .receive(reception))
    }
    return other
  }
}

/// One thing that happens in a history.
struct Step: Equatable, Sendable, Codable {
  /// What happens.
  enum Action: Equatable, Sendable, Codable {
    /// Somebody changes the replica, in one transaction.
    case edit(name: String, statements: [Statement])
    /// The replica makes a diff of its unsent changes. Later steps refer to the diff by the number; without changes there
    /// is none.
    case send(diff: Int)
    /// A copy of a diff arrives in the inbound folder of the replica.
    case deliver(diff: Int)
    /// The replica applies the files in its inbound folder.
    case receive(Reception)
    /// Time passes.
    case wait(seconds: Int)
    /// The clock of the replica is set ahead by this number of seconds.
    case setClock(ahead: Int)
    /// The replica gets the upgrade of the schema.
    case upgrade
    /// The replica begins to trust the author of another one's diffs.
    case trust(other: Int)
  }

  /// The replica at which it happens; nil for all.
  var replica: Int?
  var action: Action

  init(_ replica: Int?, _ action: Action) {
    self.replica = replica
    self.action = action
  }
}

/// The way in which a replica applies the files in its inbound folder.
struct Reception: Equatable, Sendable, Codable {
  /// In which order.
  enum Order: String, Sendable, CaseIterable, Codable {
    /// By id, as in a folder.
    case byID = "by id"
    /// As they have arrived, one after the other named.
    case asArrived = "as arrived"
  }

  /// An interruption of applying.
  enum Interruption: Equatable, Sendable, Codable {
    /// Applying is stopped before this file, counted from 0, and begun again at once.
    case stop(beforeFile: Int)
    /// The process ends after this number of written rows, or at the end if there are fewer. The snapshot is not kept
    /// then. The files stay in the folder.
    case crash(afterRows: Int)
  }

  /// In which order files are applied.
  var order = Order.byID
  /// The numbers of files that share a transaction, one after the other and then from the first number again. Empty for
  /// as many as possible.
  var groups: [Int] = []
  /// The interruption; nil for none.
  var interruption: Interruption?
}

extension Step {
  /// The same without a replica, whose number the next one gets; nil if the step is about it.
  func leavingOut(_ left: Int) -> Step? {
    func number(_ replica: Int) -> Int { replica > left ? replica - 1 : replica }
    if replica == left || action == .trust(other: left) { return nil }
    if case .trust(let other) = action { return Step(replica.map(number), .trust(other: number(other))) }
    return Step(replica.map(number), action)
  }
}

extension Step: CustomStringConvertible {
  /// What happens, in words.
  var description: String {
    let name = "replica \(replica ?? 0)"
    return switch action {
    case .edit(let edit, let statements):
      "\(name) edits (\(edit)): \(statements.map(\.description).joined(separator: "; "))"
    case .send(let diff): "\(name) sends diff \(diff)"
    case .deliver(let diff): "diff \(diff) arrives at \(name)"
    case .receive(let reception): "\(name) applies \(reception)"
    case .wait(let seconds): "\(seconds) seconds pass"
    case .setClock(let ahead): "the clock of \(name) is set \(ahead) seconds ahead"
    case .upgrade: "\(name) gets the upgrade"
    case .trust(let other): "\(name) trusts replica \(other) from now on"
    }
  }
}

extension Reception: CustomStringConvertible {
  var description: String {
    var parts = ["what has arrived, \(order.rawValue)"]
    if !groups.isEmpty { parts.append("in groups of \(groups.map(String.init).joined(separator: ", "))") }
    switch interruption {
    case .stop(let file)?: parts.append("stops before file \(file) and goes on")
    case .crash(let rows)?: parts.append("and crashes after \(rows) rows")
    case nil: break
    }
    return parts.joined(separator: ", ")
  }
}

/// An SQL statement with the values of its parameters.
struct Statement: Equatable, Sendable, Codable, CustomStringConvertible {
  let sql: String
  var values: [ChangesetValue]

  /// The statement, followed by its values.
  var description: String {
    values.isEmpty ? sql : "\(sql)  ← \(values.map(Self.shown).joined(separator: ", "))"
  }

  private static func shown(_ value: ChangesetValue) -> String {
    let text = "\(value)"
    return text.utf8.count <= 60 ? text : "\(text.prefix(40))… (\(text.utf8.count) bytes)"
  }
}
