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
  /// Diffs that were not taken at first, because nobody trusted their author.
  public internal(set) var quarantined = 0

  /// How often each edit was tried, and how often it has changed something.
  private var tries: [String: Tries] = [:]

  /// The names of edits that were tried and have never changed anything: they do not find the rows that they look for, or SQLite refuses
  /// what they do.
  public var idleEdits: [String] { tries.filter { $0.value.changed == 0 }.keys.sorted() }

  private struct Tries: Equatable {
    var made = 0
    var changed = 0
  }

  mutating func tried(_ edit: String, hasChanged: Bool) {
    tries[edit, default: Tries()].made += 1
    if hasChanged { tries[edit]?.changed += 1 }
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
    for (edit, tried) in other.tries {
      sum.tries[edit, default: Tries()].made += tried.made
      sum.tries[edit]?.changed += tried.changed
    }
  }
}
