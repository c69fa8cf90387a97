import BuckiaSimulator
import SQLiteConnections
import TestSupport
import Testing

/// Mistakes are built in, and have to be found.
@Suite("Simulations find mistakes")
struct FoundMistakesTests {
  private static let notes = """
    CREATE TABLE notes(id TEXT PRIMARY KEY, title TEXT, edited INTEGER);
    INSERT INTO notes VALUES ('k1', 'Boat', 1), ('k2', 'Radio', 2);
    """

  private func simulation(schema: String = FoundMistakesTests.notes, _ change: (inout Simulation) -> Void) -> Simulation
  {
    var simulation = Simulation(schema: schema)
    change(&simulation)
    return simulation
  }

  /// The first failure among some seeds.
  private func failure(of simulation: Simulation) throws -> SimulationFailure {
    var found: SimulationFailure?
    do { try simulation.run(seeds: 0..<200) } catch let failure as SimulationFailure { found = failure }
    return try #require(found)
  }

  @Test("A policy that prefers its own side does not converge, which takes two edits to see")
  func ownSide() throws {
    let simulation = simulation { $0.convergingTables = ["notes"] }
    let failure = try failure(of: simulation)
    #expect(failure.invariant == .convergence)
    #expect(failure.history.stepCount <= 4)
    #expect(failure.history.replicas == 2)
    #expect(failure.description.contains("In the end, tables that converge are the same everywhere"))
  }

  @Test("A receiver that forgets what it has applied is found")
  func forgottenEntry() throws {
    let failure = try failure(
      of: simulation {
        $0.sabotage = { _, database in
          try database.execute(
            "DELETE FROM buckia_ledger WHERE entry = (SELECT min(entry) FROM buckia_ledger HAVING count(*) > 1)")
        }
      })
    #expect([.appliedOnce, .counters, .ledgersAgree].contains(failure.invariant))
    #expect(failure.history.stepCount <= 10)
  }

  @Test("A value that is in no replica and no record any more is missed")
  func lostValue() throws {
    let failure = try failure(
      of: simulation {
        $0.sabotage = { replica, database in
          if replica == 1 { try database.execute("UPDATE notes SET title = 'overwritten' WHERE edited > 100") }
        }
      })
    #expect(failure.invariant == .nothingLost)
    #expect(failure.history.stepCount <= 4)
  }

  @Test("A conflict that is not recorded is missed")
  func lostRecord() throws {
    let failure = try failure(
      of: simulation { $0.sabotage = { _, database in try database.execute("DELETE FROM buckia_conflict") } })
    #expect(failure.invariant == .counters)
    #expect(failure.history.stepCount <= 6)
  }

  @Test("A reference that leads nowhere and that no record names is found")
  func brokenReference() throws {
    let schema = """
      CREATE TABLE albums(id TEXT PRIMARY KEY, title TEXT);
      CREATE TABLE photos(id TEXT PRIMARY KEY, album TEXT REFERENCES albums(id));
      INSERT INTO albums VALUES ('k1', 'Sea');
      INSERT INTO photos VALUES ('k1', 'k1');
      """
    let failure = try failure(
      of: simulation(schema: schema) {
        $0.sabotage = { _, database in
          try database.execute("PRAGMA foreign_keys = OFF; DELETE FROM albums")
        }
      })
    #expect(failure.invariant == .foreignKeys)
    #expect(failure.history.stepCount <= 4)
  }

  @Test("A resolver that answers by chance does not do the same twice")
  func chance() throws {
    let failure = try failure(
      of: simulation { simulation in
        simulation.resolver = { _ in Bool.random() ? .keepLocal : .takeIncoming }
      })
    #expect(failure.invariant == .repeatable)
  }

  @Test("An app's own check fails with its name, and with the edit that breaks it")
  func check() throws {
    let rename = Edit("rename") { database, random in
      let title: ChangesetValue = random.chance(0.1) ? .null : .text("title \(random.number(1...99))")
      try database.run("UPDATE notes SET title = ?1 WHERE id = 'k1'", title)
    }
    let check = Check("Each note has a title") { database in
      let count = try database.rows("SELECT count(*) FROM notes WHERE title IS NULL")[0][0]
      return count == 0 ? nil : "\(count) notes have none"
    }
    let simulation = Simulation(schema: Self.notes, edits: [rename], checks: [check])
    let failure = try failure(of: simulation)
    #expect(failure.invariant == .check("Each note has a title"))
    #expect(failure.history.stepCount == 1)
    #expect(failure.description.contains("edits (rename): UPDATE notes SET title = ?1 WHERE id = 'k1'  ← NULL"))
  }

  @Test("A kept file fails again until the mistake is gone, and people can read it")
  func replay() throws {
    let folder = try TemporaryFolder()
    var simulation = simulation { $0.convergingTables = ["notes"] }
    let failure = try failure(of: simulation)
    let path = folder.file("failure.json")
    try failure.write(to: path)
    let again = #expect(throws: SimulationFailure.self) { try simulation.replay(path) }
    #expect(again?.invariant == failure.invariant)
    #expect(again?.history == failure.history)
    simulation.convergingTables = []
    try simulation.replay(path)
    let text = String(decoding: try fileBytes(path), as: UTF8.self)
    #expect(text.contains("\"edit\" : {"))
    #expect(text.contains("UPDATE") || text.contains("INSERT"))
  }

  @Test("run(seeds:) keeps the history of a failure where it is asked to")
  func keptFailure() throws {
    let folder = try TemporaryFolder()
    let simulation = simulation { $0.convergingTables = ["notes"] }
    let failure = #expect(throws: SimulationFailure.self) {
      try simulation.run(seeds: 0..<200, keepingFailuresIn: folder.file(""))
    }
    let seed = try #require(failure).seed
    #expect(try folder.names(in: "") == ["\(seed).json"])
  }

  @Test("A file that is no history is refused")
  func otherFile() throws {
    let folder = try TemporaryFolder()
    let simulation = simulation { _ in }
    for text in [
      "", "[]", "{\"format\":2}", "{\"format\":1,\"seed\":\"x\"}",
      "{\"format\":1,\"failure\":\"\",\"seed\":1,\"schema\":\"\",\"replicas\":2,\"steps\":[{\"action\":{\"dance\":{}}}]}",
    ] {
      let path = folder.file("other.json")
      try folder.write(Array(text.utf8), to: "other.json")
      let error = #expect(throws: BuckiaError.self) { try simulation.replay(path) }
      #expect(error?.message.contains("no history") == true, "\(text)")
    }
    #expect(throws: BuckiaError.self) { try simulation.replay(folder.file("missing.json")) }
  }

  @Test("A schema that is no SQL is the caller's mistake, as is a single replica")
  func misuse() throws {
    #expect(throws: BuckiaError.self) { try Simulation(schema: "CREATE TABEL notes").run(seed: 1) }
    #expect(throws: BuckiaError.self) { try Simulation(schema: Self.notes, replicas: 1).run(seed: 1) }
  }
}
