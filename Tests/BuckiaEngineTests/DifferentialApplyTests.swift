@testable import BuckiaEngine
import Testing

/// The engine against `sqlite3changeset_apply_v2`, on random schemas, changes and receivers that went their own way.
@Suite struct DifferentialApplyTests {
  @Test("Applying does what SQLite's own apply does: the same rows, refusals and questions", arguments: Seeds.shards)
  func sameAsStock(_ shard: Int) throws {
    for seed in Seeds.range(4_000, shard: shard) {
      let scenario = try ApplyScenario(seed: seed)
      guard !scenario.changes.isEmpty, try !scenario.hasUpdateOfNothing() else { continue }
      let stock = try scenario.stock()
      let ours = try scenario.engine().outcome
      guard !scenario.isEqual(ours, stock) else { continue }
      let plain = try scenario.reference([]).outcome
      let reference = try scenario.reference(.all).outcome
      if !scenario.isEqual(plain, stock) {
        Issue.record("reference \(scenario.report(plain, stock, "reference", "stock"))")
      }
      if !scenario.isEqual(ours, reference) {
        Issue.record("\(scenario.report(ours, reference, "ours", "reference"))")
      }
    }
  }
}

extension ApplyScenario {
  /// Whether two ways to apply came to the same.
  func isEqual(_ one: Outcome, _ other: Outcome) -> Bool {
    guard one.content == other.content, one.isRefused == other.isRefused else { return false }
    if one.isRefused { return true }
    return showsOrder ? one.questions == other.questions : one.sortedQuestions == other.sortedQuestions
  }

  /// What two ways to apply differ in.
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
