import Buckia
import SQLiteChangesets
import TestSupport
import Testing

@Suite("Conflict rules")
struct ConflictRuleTests {
  private static let notes = """
    CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT, stars INTEGER, price REAL);
    INSERT INTO notes VALUES (1, 'one', 1, 1), (2, 'two', 2, 2), (3, 'three', 3, 3)
    """

  /// An exchange in which a conflict about the stars of a row was resolved, and the answer kept as a rule.
  private static func remembering(_ answer: ConflictVersion) throws -> Exchange {
    let exchange = try Exchange(notes)
    try TestDatabases.run("UPDATE notes SET stars = 10, text = 'mine' WHERE id < 4", on: exchange.mine)
    try exchange.send("UPDATE notes SET stars = 20 WHERE id = 1")
    try exchange.apply()
    let options = ResolveOptions(decidedBy: "Ben", remembers: true)
    let report = try exchange.database.resolve([1], taking: .version(answer), options: options)
    #expect(report.resolved.first?.rule?.id == 1)
    return exchange
  }

  @Test("A rule decides later conflicts like the first before the policy, and the report and the record name it")
  func decides() throws {
    let exchange = try Self.remembering(.incoming)
    let rule = try #require(try exchange.database.conflictRules().first)
    #expect(rule.question.columns == ["stars"] && rule.question.table == "NOTES" && rule.answer == .incoming)
    #expect(rule.decidedBy == "Ben" && rule.conflict == 1)
    try exchange.send("UPDATE notes SET stars = 30 WHERE id = 2")
    let report = try exchange.apply(ApplyOptions(conflicts: .keepLocal))
    #expect(report.diffs.map(\.decidedByRule) == [1])
    #expect(try exchange.texts("SELECT stars FROM notes ORDER BY id") == ["20", "30", "10"])
    let record = try #require(try exchange.database.conflicts().last)
    #expect(record.rule == 1 && !record.isOpen && record.outcome == .tookIncoming)
  }

  @Test("A rule for the local version keeps the disputed columns, merges the others, and precedes the policy")
  func keeps() throws {
    let exchange = try Self.remembering(.local)
    try exchange.send("UPDATE notes SET stars = 30, price = 9 WHERE id = 2")
    #expect(try exchange.apply(ApplyOptions(conflicts: .takeIncoming)).diffs.map(\.decidedByRule) == [1])
    #expect(try exchange.texts("SELECT text, stars, price FROM notes WHERE id = 2") == ["mine|10|9.0"])
    // A conflict that a rule has decided can be resolved with another answer.
    #expect(try exchange.database.resolve([2], taking: .incoming).refused.isEmpty)
    #expect(try exchange.texts("SELECT stars FROM notes WHERE id = 2") == ["30"])
  }

  @Test(
    "A rule does not decide conflicts of other columns, kinds or operations",
    arguments: [
      "UPDATE notes SET text = 'theirs' WHERE id = 2", "UPDATE notes SET text = 'theirs', stars = 30 WHERE id = 2",
      "DELETE FROM notes WHERE id = 2", "INSERT INTO notes VALUES (4, 'theirs', 30, 4)",
    ])
  func otherQuestions(_ edit: String) throws {
    let exchange = try Self.remembering(.incoming)
    try TestDatabases.run("INSERT INTO notes VALUES (4, 'theirs', 10, 4)", on: exchange.mine)
    let before = try exchange.texts("SELECT * FROM notes ORDER BY id")
    try exchange.send(edit)
    let report = try exchange.apply()
    #expect(report.diffs.map(\.conflicts) == [1] && report.diffs.map(\.decidedByRule) == [0])
    #expect(try exchange.texts("SELECT * FROM notes ORDER BY id") == before)
  }

  @Test("The app's resolver comes first; where it leaves the answer open, the rule decides")
  func resolverFirst() throws {
    let exchange = try Self.remembering(.incoming)
    try exchange.send("UPDATE notes SET stars = stars + 30 WHERE id > 1")
    let report = try exchange.apply { conflict in
      conflict.key.first?.value == 2 ? .keepLocal : .useDefault
    }
    #expect(report.diffs.map(\.decidedByRule) == [1])
    #expect(try exchange.texts("SELECT stars FROM notes ORDER BY id") == ["20", "10", "33"])
  }

  @Test("The same answer again keeps its rule, another answer replaces it, and a forgotten rule decides nothing")
  func replacedAndForgotten() throws {
    let exchange = try Self.remembering(.incoming)
    let options = ResolveOptions(remembers: true)
    #expect(try exchange.database.resolve([1], taking: .incoming, options: options).resolved.first?.rule?.id == 1)
    #expect(try exchange.database.resolve([1], taking: .local, options: options).resolved.first?.rule?.id == 2)
    #expect(try exchange.database.conflictRules().map(\.id) == [2])
    try exchange.database.forgetConflictRule(2)
    #expect(try exchange.database.conflictRules().isEmpty)
    let error = #expect(throws: BuckiaError.self) { try exchange.database.forgetConflictRule(2) }
    #expect(error?.code == .noSuchRule)
    try exchange.send("UPDATE notes SET stars = 30 WHERE id = 2")
    #expect(try exchange.apply().diffs.map(\.decidedByRule) == [0])
  }

  @Test("Only a choice between two versions can be a rule")
  func noRule() throws {
    let exchange = try Exchange(Self.notes)
    try TestDatabases.run("DELETE FROM notes WHERE id = 1", on: exchange.mine)
    try exchange.send("UPDATE notes SET stars = 20 WHERE id = 1")
    try exchange.apply()
    let options = ResolveOptions(remembers: true)
    let report = try exchange.database.resolve([1], taking: .local, options: options)
    #expect(report.resolved.count == 1 && report.resolved.first?.rule == nil)
    let error = #expect(throws: BuckiaError.self) {
      try exchange.database.resolve([1], taking: .values(["stars": 1]), options: options)
    }
    #expect(error?.code == .misuse)
    #expect(try exchange.database.conflictRules().isEmpty)
  }

  @Test("A rule compares values as the column converts them")
  func convertedValues() throws {
    let exchange = try Exchange(
      "CREATE TABLE t(id INTEGER PRIMARY KEY, price REAL, n INTEGER); INSERT INTO t VALUES (1, 0, 0), (2, 0, 0)")
    try TestDatabases.run("UPDATE t SET price = 5, n = 5", on: exchange.mine)
    try exchange.send("UPDATE t SET price = 5, n = 6 WHERE id = 1")
    try exchange.apply()
    try exchange.database.resolve([1], taking: .incoming, options: ResolveOptions(remembers: true))
    #expect(try exchange.database.conflictRules().first?.question.columns == ["n"])
    try exchange.send("UPDATE t SET price = 5, n = 7 WHERE id = 2")
    #expect(try exchange.apply().diffs.map(\.decidedByRule) == [1])
  }
}
