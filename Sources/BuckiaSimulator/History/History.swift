import SQLiteChangesets

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
      guard case .receive(let replica, var reception) = step else { return step }
      if case .crash? = reception.interruption { return step }
      reception.interruption = nil
      reception.groups = random.chance(0.5) ? [] : [random.number(1...2)]
      return .receive(replica: replica, reception)
    }
    return other
  }
}

/// One thing that happens in a history.
enum Step: Equatable, Sendable {
  /// Somebody changes a replica, in one transaction.
  case edit(replica: Int, name: String, [Statement])
  /// A replica makes a diff of its unsent changes. Later steps refer to the diff by the number; without changes there
  /// is none.
  case send(replica: Int, diff: Int)
  /// A copy of a diff arrives in the inbound folder of a replica.
  case deliver(diff: Int, replica: Int)
  /// A replica applies the files in its inbound folder.
  case receive(replica: Int, Reception)
  /// Time passes.
  case wait(seconds: Int)
  /// The clock of a replica is set ahead by this number of seconds.
  case setClock(replica: Int, ahead: Int)
  /// A replica gets the upgrade of the schema.
  case upgrade(replica: Int)
  /// A replica begins to trust the author of another one's diffs.
  case trust(replica: Int, other: Int)
}

/// The way in which a replica applies the files in its inbound folder.
struct Reception: Equatable, Sendable {
  /// In which order.
  enum Order: String, Sendable, CaseIterable {
    /// By id, as in a folder.
    case byID = "by id"
    /// As they have arrived, one after the other named.
    case asArrived = "as arrived"
  }

  /// An interruption of applying.
  enum Interruption: Equatable, Sendable {
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
  /// The replica at which it happens; nil for none.
  var replica: Int? {
    switch self {
    case .edit(let replica, _, _), .send(let replica, _), .deliver(_, let replica), .receive(let replica, _),
      .setClock(let replica, _), .upgrade(let replica), .trust(let replica, _):
      replica
    case .wait: nil
    }
  }

  /// The same without a replica, whose number the next one gets; nil if the step is about it.
  func leavingOut(_ left: Int) -> Step? {
    func number(_ replica: Int) -> Int { replica > left ? replica - 1 : replica }
    if case .trust(let replica, let other) = self {
      return replica == left || other == left ? nil : .trust(replica: number(replica), other: number(other))
    }
    guard let replica else { return self }
    return replica == left ? nil : moved(to: number(replica))
  }

  private func moved(to replica: Int) -> Step {
    switch self {
    case .edit(_, let name, let statements): .edit(replica: replica, name: name, statements)
    case .send(_, let diff): .send(replica: replica, diff: diff)
    case .deliver(let diff, _): .deliver(diff: diff, replica: replica)
    case .receive(_, let reception): .receive(replica: replica, reception)
    case .setClock(_, let ahead): .setClock(replica: replica, ahead: ahead)
    case .upgrade: .upgrade(replica: replica)
    case .trust(_, let other): .trust(replica: replica, other: other)
    case .wait: self
    }
  }
}

extension Step: CustomStringConvertible {
  /// What happens, in words.
  var description: String {
    switch self {
    case .edit(let replica, let name, let statements):
      "replica \(replica) edits (\(name)): \(statements.map(\.description).joined(separator: "; "))"
    case .send(let replica, let diff): "replica \(replica) sends diff \(diff)"
    case .deliver(let diff, let replica): "diff \(diff) arrives at replica \(replica)"
    case .receive(let replica, let reception): "replica \(replica) applies \(reception)"
    case .wait(let seconds): "\(seconds) seconds pass"
    case .setClock(let replica, let ahead): "the clock of replica \(replica) is set \(ahead) seconds ahead"
    case .upgrade(let replica): "replica \(replica) gets the upgrade"
    case .trust(let replica, let other): "replica \(replica) trusts replica \(other) from now on"
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
struct Statement: Equatable, Sendable, CustomStringConvertible {
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
