@testable import BuckiaEngine
import Testing

/// The engine against `sqlite3changeset_apply_v2`, on random schemas, changes and receivers that went their own way.
///
/// The order of questions is ours to choose, so under `abort` the one question may be any that SQLite would ask. Two more
/// differences are meant, and told apart precisely: values that go round under UNIQUE are settled here and refused
/// there, and an INSERT that takes the place of a row changes it here, where there it is deleted first and lost when
/// the new one is then refused.
@Suite struct DifferentialApplyTests {
  private static let policies: [ConflictPolicy] = [.keepLocal, .takeIncoming, .abort]

  @Test("Applying does what SQLite's own apply does: the same rows, refusals and questions", arguments: policies)
  func sameAsStock(_ policy: ConflictPolicy) throws {
    var excused = 0
    var conflicts = 0
    let seeds = Seeds.range(250)
    for seed in seeds {
      let scenario = try ApplyScenario(seed: seed)
      guard !scenario.changes.isEmpty, try !scenario.hasUpdateOfNothing() else { continue }
      let stock = try scenario.stock(policy)
      let ours = try scenario.engine(policy, asks: true)
      conflicts += stock.questions.isEmpty ? 0 : 1
      if ours.content == stock.content, ours.isRefused == stock.isRefused {
        if ours.questions == stock.questions { continue }
        if ours.isRefused, let question = ours.questions.first, ours.questions.count == 1,
          try scenario.stock(.keepLocal).questions.contains(question)
        {
          continue
        }
      }
      let excuse = scenario.excuse(for: ours, stock, policy)
      #expect(
        excuse == nil,
        """
        seed \(seed), \(policy): \(excuse ?? "")
        ours \(ours.questions)\nstock \(stock.questions)\nrefused: \(ours.isRefused), \(stock.isRefused)
        \(scenario.tables.map { $0.creation() })
        ours \(ours.content)\nstock \(stock.content)
        """)
      if excuse != nil { return }
      excused += 1
    }
    if seeds.count > 20 {
      #expect(conflicts > seeds.count / 4, "the changes hardly ever meet")
      #expect(excused < seeds.count / 10, "\(excused) of \(seeds.count) differ, as they may: too many")
    }
  }

  @Test("Not asking about equal edits changes nothing but the number of conflicts", arguments: policies)
  func equalEdits(_ policy: ConflictPolicy) throws {
    for seed in Seeds.range(150) {
      let scenario = try ApplyScenario(seed: seed)
      guard !scenario.changes.isEmpty else { continue }
      let asking = try scenario.engine(policy, asks: true)
      let silent = try scenario.engine(policy, asks: false)
      if policy == .abort {
        // What is refused only when asked about must be without a conflict that counts.
        if silent.isRefused { #expect(asking.isRefused, "seed \(seed)") }
        let counted = try scenario.engine(.keepLocal, asks: false).counts
        #expect(silent.isRefused == (counted.conflicts > 0), "seed \(seed)")
      } else {
        #expect(asking.content == silent.content, "seed \(seed)")
        #expect(silent.counts.conflicts <= asking.counts.conflicts, "seed \(seed)")
      }
    }
  }
}

extension ApplyScenario {
  /// Nil when the two outcomes differ only as they are meant to, else what is wrong.
  fileprivate func excuse(for ours: Outcome, _ stock: Outcome, _ policy: ConflictPolicy) -> String? {
    func constraints(_ outcome: Outcome, _ table: RandomTable, _ operation: String) -> Int {
      outcome.questions.count { $0 == "constraint \(table.name) \(operation)" }
    }
    if ours.isRefused {
      return stock.isRefused ? "the questions differ" : "refused, which SQLite applies"
    }
    for table in tables where ours.content[table.name] != stock.content[table.name] || ours.questions != stock.questions
    {
      let mine = ours.questions.filter { $0.contains(" \(table.name) ") }
      let theirs = stock.questions.filter { $0.contains(" \(table.name) ") }
      if mine == theirs, ours.content[table.name] == stock.content[table.name] { continue }
      let settled = constraints(stock, table, "UPDATE") - constraints(ours, table, "UPDATE")
      let isRound = table.hasUnique && (settled >= 2 || (policy == .abort && stock.isRefused))
      // There the row is gone once it was to be replaced: the new one is not asked about again, and may get lost.
      let replaced = "conflict \(table.name) INSERT"
      let isAskedAgain = mine.count { $0 == replaced } > theirs.count { $0 == replaced }
      let isReplaced =
        policy == .takeIncoming && stock.questions.contains(replaced)
        && (constraints(stock, table, "INSERT") > 0 || (table.hasUnique && isAskedAgain))
      guard isRound || isReplaced else { return "table \(table.name) differs" }
      if let stranger = ours.rows[table.name]?.first(where: { !isFromBoth($0, table) }) {
        return "table \(table.name) has a row that nobody wrote: \(stranger)"
      }
    }
    return nil
  }

  /// Whether every cell of a row is the receiver's or the author's.
  private func isFromBoth(_ row: Rows.Row, _ table: RandomTable) -> Bool {
    func key(_ row: Rows.Row) -> [String] { table.key.map { (row[table.columns[$0].name] ?? "").lowercased() } }
    func name(_ row: Rows.Row) -> [String] { table.isNoCase ? key(row).map { String($0.prefix(8)) } : key(row) }
    let sources = ((authors[table.name] ?? []) + (locals[table.name] ?? [])).filter { name($0) == name(row) }
    return row.allSatisfy { column, value in sources.contains { $0[column] == value } }
  }
}
