@testable import BuckiaApply
import SQLiteConnections
import Testing

/// Indexes in a transaction of the application, with and without errors.
@Suite struct IndexTransactionTests {
  private static let scenario = IndexScenario(
    base: """
      CREATE TABLE notes(id INTEGER PRIMARY KEY, title TEXT);
      CREATE VIRTUAL TABLE words USING fts5(title);
      CREATE VIRTUAL TABLE spans USING rtree(id, low, high);
      CREATE TRIGGER i AFTER INSERT ON notes BEGIN
        INSERT INTO words(rowid, title) VALUES (new.id, new.title); INSERT INTO spans VALUES (new.id, new.id, new.id + 1);
      END;
      CREATE TRIGGER u AFTER UPDATE ON notes BEGIN UPDATE words SET title = new.title WHERE rowid = old.id; END;
      CREATE TRIGGER d AFTER DELETE ON notes BEGIN
        DELETE FROM words WHERE rowid = old.id; DELETE FROM spans WHERE id = old.id;
      END;
      INSERT INTO notes VALUES (1, 'one'), (2, 'two');
      """, tables: ["notes"])

  private struct Stop: Error {}

  enum Failure: CaseIterable {
    case policy, resolver, progress
  }

  private func settings(_ failure: Failure) -> ApplySettings {
    switch failure {
    case .policy: ApplySettings(policies: .abort, time: 2_000_000_000_000)
    case .resolver: ApplySettings(resolver: { _ in throw Stop() }, time: 2_000_000_000_000)
    case .progress: ApplySettings(time: 2_000_000_000_000, progress: { _ in throw Stop() })
    }
  }

  @Test(
    "When applying fails, nothing is left behind and the indexes are unchanged", arguments: Failure.allCases)
  func stops(_ failure: Failure) throws {
    let author = try Self.scenario.author(
      "INSERT INTO notes VALUES (3, 'three'); UPDATE notes SET title = 'zwei' WHERE id = 2; DELETE FROM notes WHERE id = 1"
    )
    let receiver = try Self.scenario.database()
    try receiver.execute("BEGIN; INSERT INTO notes VALUES (9, 'nine'); UPDATE notes SET title = 'mine' WHERE id = 2")
    let before = try IndexScenario.answers(of: receiver)
    #expect(throws: (any Error).self) {
      let savepoint = try SQLiteTransaction(on: receiver)
      let plan = try Receiver.plan(
        try IndexScenario.incoming(author.changes), on: receiver, settings: settings(failure))
      _ = try plan.apply()
      try savepoint.commit()
    }
    let isOpen = receiver.isInTransaction
    #expect(isOpen)
    try IndexScenario.expectNothingLeft(on: receiver)
    #expect(try IndexScenario.answers(of: receiver) == before)
    try receiver.execute("COMMIT")
    #expect(try IndexScenario.answers(of: receiver) == before)
    // The triggers of the database are unchanged.
    try receiver.execute("INSERT INTO notes VALUES (3, 'three')")
    #expect(try IndexScenario.answers(of: receiver)["words"] == ["mine: 2", "nine: 9", "one: 1", "three: 3"])
  }

  @Test("After a failure no copied trigger is left, even before the application rolls back")
  func beforeRollback() throws {
    let author = try Self.scenario.author("UPDATE notes SET title = 'zwei' WHERE id = 2")
    let receiver = try Self.scenario.database()
    try receiver.execute("UPDATE notes SET title = 'mine' WHERE id = 2; BEGIN")
    #expect(throws: (any Error).self) {
      let plan = try Receiver.plan(
        try IndexScenario.incoming(author.changes), on: receiver,
        settings: ApplySettings(policies: .abort, time: 2_000_000_000_000))
      _ = try plan.apply()
    }
    try IndexScenario.expectNothingLeft(on: receiver)
    try receiver.execute("ROLLBACK")
    try IndexScenario.expectNothingLeft(on: receiver)
  }

  @Test("Index changes are committed and rolled back with the application's transaction", arguments: [true, false])
  func outerTransaction(_ commits: Bool) throws {
    let author = try Self.scenario.author("INSERT INTO notes VALUES (3, 'three'); DELETE FROM notes WHERE id = 1")
    let receiver = try Self.scenario.database()
    let before = try IndexScenario.answers(of: receiver)
    try receiver.execute("BEGIN")
    _ = try IndexScenario.apply(author.changes, to: receiver)
    try IndexScenario.expectNothingLeft(on: receiver)
    try receiver.execute(commits ? "COMMIT" : "ROLLBACK")
    let expected = commits ? try IndexScenario.answers(of: author.connection) : before
    #expect(try IndexScenario.answers(of: receiver) == expected)
    try IndexScenario.expectNothingLeft(on: receiver)
  }

  @Test("When one of many diffs in a transaction fails, the index contains the changes of the others")
  func several() throws {
    let receiver = try Self.scenario.database()
    let outer = try SQLiteTransaction(on: receiver)
    for id in 3...8 {
      let author = try Self.scenario.author("INSERT INTO notes VALUES (\(id), 'n\(id)')")
      var settings = ApplySettings(time: 2_000_000_000_000)
      if id == 5 { settings.progress = { _ in throw Stop() } }
      do {
        _ = try IndexScenario.apply(author.changes, to: receiver, settings: settings)
        #expect(id != 5)
      } catch is Stop {
        #expect(id == 5)
      }
    }
    try outer.commit()
    let answers = try IndexScenario.answers(of: receiver)
    #expect(answers["words"] == ["n3: 3", "n4: 4", "n6: 6", "n7: 7", "n8: 8", "one: 1", "two: 2"])
    #expect(answers["spans"]?.count == 7)
  }

  @Test("An existing TEMP trigger with the name of a copy stays, and the index is reported")
  func nameTaken() throws {
    let author = try Self.scenario.author("INSERT INTO notes VALUES (3, 'three')")
    let receiver = try Self.scenario.database()
    try receiver.execute("CREATE TEMP TRIGGER buckia_temp_index_0 AFTER INSERT ON main.notes BEGIN SELECT 1; END")
    let result = try IndexScenario.apply(author.changes, to: receiver)
    #expect(result.counts.inserted == 1)
    #expect(!result.warnings.isEmpty)
    #expect(try receiver.integer("SELECT count(*) FROM temp.sqlite_schema WHERE type = 'trigger'") == 1)
  }
}
