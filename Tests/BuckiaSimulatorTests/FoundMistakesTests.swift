import BuckiaSimulator
import SQLiteConnections
import TestSupport
import Testing

/// Introduced mistakes, which a simulation must find.
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

  @Test("A policy that prefers its own side is found not to converge, by a history with two edits")
  func ownSide() throws {
    let simulation = simulation { $0.convergingTables = ["notes"] }
    let failure = try failure(of: simulation)
    #expect(failure.invariant == .convergence)
    #expect(failure.history.stepCount <= 4)
    #expect(failure.history.replicas == 2)
    #expect(failure.description.contains("In the end, tables that converge are the same everywhere"))
  }

  @Test("A receiver that forgets what it has applied is detected")
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

  @Test("A lost value, in no replica and no record, is detected")
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

  @Test("A missing conflict record is detected")
  func lostRecord() throws {
    let failure = try failure(
      of: simulation { $0.sabotage = { _, database in try database.execute("DELETE FROM buckia_conflict") } })
    #expect(failure.invariant == .counters)
    #expect(failure.history.stepCount <= 6)
  }

  @Test("A dangling reference that no record names is detected")
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

  @Test("A resolver with random answers is found not to be repeatable")
  func chance() throws {
    let failure = try failure(
      of: simulation { simulation in
        simulation.resolver = { _ in Bool.random() ? .keepLocal : .takeIncoming }
      })
    #expect(failure.invariant == .repeatable)
  }

  @Test("A failed check of the app is reported with its name, and the edit that violates it")
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

  @Test("A saved failure is reproduced until the mistake is gone, and is readable")
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

  @Test("run(seeds:) saves the history of a failure on request")
  func keptFailure() throws {
    let folder = try TemporaryFolder()
    let simulation = simulation { $0.convergingTables = ["notes"] }
    let failure = #expect(throws: SimulationFailure.self) {
      try simulation.run(seeds: 0..<200, keepingFailuresIn: folder.file(""))
    }
    let seed = try #require(failure).seed
    #expect(try folder.names(in: "") == ["\(seed).json"])
  }

  @Test("A file without a history is refused")
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

  @Test("An invalid schema and a single replica are errors of the caller")
  func misuse() throws {
    #expect(throws: BuckiaError.self) { try Simulation(schema: "CREATE TABEL notes").run(seed: 1) }
    #expect(throws: BuckiaError.self) { try Simulation(schema: Self.notes, replicas: 1).run(seed: 1) }
  }
}
