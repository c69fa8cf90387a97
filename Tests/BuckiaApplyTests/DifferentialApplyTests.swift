import TestSupport
import Testing
@testable import BuckiaApply
@testable import BuckiaLedger

/// Compares the engine with `sqlite3changeset_apply_v2`, on random schemas, changes and receivers with their own edits.
///
/// If the two differ, a plain row-by-row applier must explain it: without the intended deviations it must do what
/// SQLite does, and with all of them what the engine does.
@Suite struct DifferentialApplyTests {
  @Test("Applying equals SQLite's own apply: the same rows, refusals and questions", arguments: Seeds.shards)
  func sameAsStock(_ shard: Int) throws {
    var tally = Tally()
    try Seeds.tryEach(1_600, shard: shard) { seed in
      let scenario = try ApplyScenario(seed: seed)
      guard !scenario.changes.isEmpty, try !scenario.hasUpdateOfNothing() else { throw Seeds.Unsuitable() }
      guard let stock = try scenario.stock() else { throw Seeds.Unsuitable() }
      let ours = try scenario.engine().outcome
      tally.cases += 1
      if !stock.questions.isEmpty { tally.conflicts += 1 }
      // SQLite leaves dangling references: `ForeignKeyAuditTests` and `ReferencePropertyTests` test those.
      if ours.hasMendedReferences {
        tally.mended += 1
        return
      }
      if scenario.isEqual(ours, stock) { return }
      tally.deviations += 1
      let plain = try scenario.reference([]).outcome
      if !scenario.isEqual(plain, stock) {
        Issue.record("\(Seeds.replay(seed))\n\(scenario.report(plain, stock, "reference", "stock"))")
      }
      let (reference, hasResolvedCycles) = try scenario.reference(.all)
      if scenario.isEqual(ours, reference) || scenario.differsInRepeats(ours, reference) { return }
      // A file that is applied again to repair a reference is asked about again, and may be refused then.
      if scenario.schema.hasForeignKeys, ours.isRefused, !reference.isRefused,
        ours.questions.starts(with: reference.questions)
      {
        return
      }
      // The reference does not know the rows of a table that only the engine creates.
      if scenario.schema.missing != nil, ours.questions.contains(where: { $0.hasPrefix("foreignKey") }) { return }
      // Of two changes that want one value, the reference takes the first, and so may apply fewer changes with swapped
      // values. Triggers also show how their rows are parked. `UniqueCycleTests` tests both.
      if hasResolvedCycles, scenario.asksLess(ours, reference) { return }
      if hasResolvedCycles, scenario.showsOrder {
        if scenario.asksLess(ours, stock) || scenario.asksTheSame(ours, reference) { return }
        // A trigger can prevent a swap from being resolved.
        if scenario.isEqual(ours, try scenario.reference(.all.subtracting(.resolvesCycles)).outcome) { return }
      }
      Issue.record("\(Seeds.replay(seed))\n\(scenario.report(ours, reference, "ours", "reference"))")
    }
    if tally.cases > 500 {
      #expect(tally.mended < tally.cases / 4, "\(tally.mended) of \(tally.cases) break references: too many")
      #expect(tally.conflicts > tally.cases / 4, "the changes hardly ever meet")
      #expect(
        tally.deviations < tally.cases / 10, "\(tally.deviations) of \(tally.cases) differ, as they may: too many")
    }
  }

  @Test("The size of the window in memory makes no difference", arguments: Seeds.shards)
  func windows(_ shard: Int) throws {
    try Seeds.tryEach(300, shard: shard) { seed in
      let scenario = try ApplyScenario(seed: seed)
      guard !scenario.changes.isEmpty else { throw Seeds.Unsuitable() }
      let whole = try scenario.engine()
      let windowBytes = [1, 64, 300][Int(seed % 3)]
      let windowed = try scenario.engine(windowBytes: windowBytes)
      #expect(whole.counts == windowed.counts, "seed \(seed), windows of \(windowBytes) bytes")
      if !scenario.isEqual(whole.outcome, windowed.outcome) {
        Issue.record(
          "\(Seeds.replay(seed))\n\(scenario.report(whole.outcome, windowed.outcome, "whole", "windowed"))")
      }
    }
  }

  @Test("Dropping indexes while changes are applied makes no difference", arguments: Seeds.shards)
  func indexes(_ shard: Int) throws {
    try Seeds.tryEach(400, shard: shard) { seed in
      let scenario = try ApplyScenario(seed: seed)
      guard !scenario.changes.isEmpty else { throw Seeds.Unsuitable() }
      let keeping = try scenario.engine(indexes: .keep)
      let rebuilding = try scenario.engine(indexes: .rebuild)
      #expect(keeping.counts == rebuilding.counts, "seed \(seed)")
      if !scenario.isEqual(keeping.outcome, rebuilding.outcome) {
        Issue.record(
          "\(Seeds.replay(seed))\n\(scenario.report(keeping.outcome, rebuilding.outcome, "keeping", "rebuilding"))")
      }
    }
  }

  private struct Tally {
    var cases = 0
    var conflicts = 0
    var deviations = 0
    var mended = 0
  }

  @Test("Not asking about equal edits only changes the number of conflicts", arguments: Seeds.shards)
  func equalEdits(_ shard: Int) throws {
    let policies: [ConflictPolicy] = [.keepLocal, .takeIncoming, .abort]
    try Seeds.tryEach(240, shard: shard) { seed in
      let policy = policies[Int(seed / 4 % 3)]
      let scenario = try ApplyScenario(seed: seed, answers: .policy(policy))
      guard !scenario.changes.isEmpty else { throw Seeds.Unsuitable() }
      let asking = try scenario.engine()
      let silent = try scenario.engine(asks: false)
      if policy == .abort {
        // If only asking leads to a refusal, there is no conflict that counts.
        if silent.outcome.isRefused, !scenario.schema.hasForeignKeys {
          #expect(asking.outcome.isRefused, "seed \(seed)")
        }
        let keeping = try ApplyScenario(seed: seed, answers: .policy(.keepLocal)).engine(asks: false)
        let isRefused = keeping.counts.conflicts > 0 || keeping.outcome.isRefused
        #expect(silent.outcome.isRefused == isRefused, "seed \(seed)")
      } else if !scenario.showsOrder {
        // Triggers see writes of rows that were equal already.
        #expect(asking.outcome.content == silent.outcome.content, "seed \(seed)")
        #expect(silent.counts.conflicts <= asking.counts.conflicts, "seed \(seed)")
      }
    }
  }
}

extension ApplyScenario.Outcome {
  /// The outcome with each question once.
  fileprivate var withoutRepeats: Self {
    var outcome = self
    var known: Set<String> = []
    outcome.questions = questions.filter { known.insert($0).inserted }
    return outcome
  }
}

extension ApplyScenario {
  /// True if two ways to apply have the same outcome.
  func isEqual(_ one: Outcome, _ other: Outcome) -> Bool {
    guard one.content == other.content, one.isRefused == other.isRefused else { return false }
    if one.isRefused { return true }
    return showsOrder ? one.questions == other.questions : one.sortedQuestions == other.sortedQuestions
  }

  /// True if two ways to apply differ only in how often they ask about a change that waits for others. It is asked
  /// about each time it is tried, and the number of attempts does not matter.
  func differsInRepeats(_ one: Outcome, _ other: Outcome) -> Bool {
    isEqual(one.withoutRepeats, other.withoutRepeats)
  }

  /// True if two ways to apply ask the same, except about the table that triggers write to.
  func asksTheSame(_ one: Outcome, _ other: Outcome) -> Bool {
    let questions = [one, other].map { $0.sortedQuestions.filter { !$0.hasPrefix("conflict log ") } }
    return questions[0] == questions[1]
  }

  /// True if the first way to apply asks nothing that the other does not, and fewer questions about blocked changes.
  func asksLess(_ one: Outcome, _ other: Outcome) -> Bool {
    var rest = other.questions
    for question in one.questions {
      guard let place = rest.firstIndex(of: question) else { return false }
      rest.remove(at: place)
    }
    return !rest.isEmpty && !one.isRefused
      && rest.allSatisfy { $0.hasPrefix("constraint") || $0.hasPrefix("data") }
  }

  /// The differences between two ways to apply.
  func report(_ one: Outcome, _ other: Outcome, _ oneName: String, _ otherName: String) -> String {
    var lines: [String] = []
    for (name, rows) in other.content where one.content[name] != rows {
      lines.append("\(name)")
      let mine = one.content[name] ?? []
      lines += mine.filter { !rows.contains($0) }.map { "  only \(oneName):  \($0)" }
      lines += rows.filter { !mine.contains($0) }.map { "  only \(otherName): \($0)" }
    }
    return """
      \(description)
      refused: \(oneName) \(one.isRefused), \(otherName) \(other.isRefused)
      \(lines.joined(separator: "\n"))
      \(oneName)
        \(one.questions.joined(separator: "\n  "))
      \(otherName)
        \(other.questions.joined(separator: "\n  "))
      """
  }
}
