@testable import BuckiaApply
@testable import BuckiaLedger
import Testing
import TestSupport

/// After random edits on both sides, indexes contain what the triggers would have written for the resulting rows.
@Suite struct IndexPropertyTests {
  private static func edit(_ random: inout SeededGenerator) -> String {
    let words = ["bell", "kitchen", "radio", "night", "market", "rain", "clock"]
    func text() -> String {
      if random.oneIn(6) { return "NULL" }
      let count = Int.random(in: 0...3, using: &random)
      return "'\((0..<count).map { _ in random.pick(words) }.joined(separator: " "))'"
    }
    let id = Int.random(in: 1...12, using: &random)
    let place = random.oneIn(8) ? "NULL" : "\(Int.random(in: 1...14, using: &random))"
    switch Int.random(in: 0..<8, using: &random) {
    case 0...2: return "INSERT INTO notes VALUES (\(id), \(text()), \(text()), \(place))"
    case 3: return "DELETE FROM notes WHERE id = \(id)"
    case 4: return "UPDATE notes SET id = \(Int.random(in: 1...12, using: &random)) WHERE id = \(id)"
    case 5: return "UPDATE notes SET place = \(place) WHERE id = \(id)"
    // Each place moves by one: a chain of changes that only parking a row resolves.
    case 6: return "UPDATE notes SET place = -place; UPDATE notes SET place = 1 - place"
    default: return "UPDATE notes SET title = \(text()), body = \(text()) WHERE id = \(id)"
    }
  }

  @Test("After random edits on both sides an index matches its table", arguments: IndexMaintenanceTests.examples)
  func random(_ example: IndexMaintenanceTests.Example) throws {
    for seed in Seeds.range(40) {
      var random = SeededGenerator(seed: seed)
      let scenario = IndexScenario(base: example.base, tables: ["notes"])
      let author = try scenario.author((0..<Int.random(in: 1...12, using: &random)).map { _ in Self.edit(&random) })
      let receiver = try scenario.database()
      for _ in 0..<Int.random(in: 0...6, using: &random) {
        try receiver.executeUnlessRefused(Self.edit(&random))
      }
      let policy = random.oneIn(2) ? ConflictPolicy.keepLocal : .takeIncoming
      let result = try IndexScenario.apply(
        author.changes, to: receiver,
        settings: ApplySettings(policies: ConflictPolicies(policy), time: 2_000_000_000_000))
      #expect(result.warnings == [], "\(example.name), seed \(seed)")
      let expected = try scenario.database(withNotesOf: receiver)
      let answers = try IndexScenario.answers(of: receiver)
      #expect(try answers == IndexScenario.answers(of: expected), "\(example.name), seed \(seed)")
      try IndexScenario.expectNothingLeft(on: receiver)
    }
  }
}
