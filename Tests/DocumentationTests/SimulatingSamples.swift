import BuckiaSimulator
import TestSupport
import Testing

@Suite("Samples about simulating")
struct SimulatingSamples {
  private static let notes = """
    CREATE TABLE notes(id TEXT PRIMARY KEY, title TEXT, edited INTEGER);
    INSERT INTO notes VALUES ('k1', 'Boat', 1);
    """

  @Test("Some seeds are run")
  func seeds() throws {
    let printed = try Printed.lines {
      let simulation = Simulation(
        schema: "CREATE TABLE notes(id TEXT PRIMARY KEY, title TEXT, edited INTEGER)", replicas: 3,
        conflicts: .keepLocal)
      let report = try simulation.run(seeds: 0..<20)
      print(report.histories, report.edits > 0, report.conflicts > 0)
    }
    #expect(printed == ["20 true true"])
  }

  @Test("An app's edits are run, and its checks hold")
  func edits() throws {
    var simulation = Simulation(schema: Self.notes)
    let rename = Edit("rename a note", weight: 2) { database, random in
      guard let note = random.pick(try database.rows("SELECT id FROM notes ORDER BY id")) else { return }
      try database.run("UPDATE notes SET title = ?2 WHERE id = ?1", note[0], .text("title \(random.number(1...99))"))
    }
    simulation.edits = [rename, .random]
    #expect(try simulation.run(seeds: 0..<4).edits > 0)
  }

  @Test("Some replicas are updated later than others, and not everybody is trusted at once")
  func upgrades() throws {
    var simulation = Simulation(schema: Self.notes)
    simulation.upgrade = [
      "ALTER TABLE notes ADD COLUMN remark TEXT", "CREATE TABLE drafts(id TEXT PRIMARY KEY, body TEXT)",
    ]
    simulation.schemaMode = .hold
    simulation.trust = .known
    #expect(try simulation.run(seeds: 0..<4).edits > 0)
  }

  @Test("What does not hold is found, kept and taken again")
  func failures() throws {
    let folder = try TemporaryFolder()
    let file = folder.file("failure.json")
    var simulation = Simulation(schema: Self.notes)
    simulation.convergingTables = ["notes"]
    simulation.checks = [
      Check("Each note has a title") { database in
        let count = try database.rows("SELECT count(*) FROM notes WHERE title IS NULL")[0][0]
        return count == 0 ? nil : "\(count) notes have none"
      }
    ]
    let printed = try Printed.lines {
      do {
        try simulation.run(seeds: 0..<1_000)
      } catch let failure as SimulationFailure {
        print(failure.invariant)
        print(failure.history)
        try failure.write(to: file)
      }
    }
    #expect(printed.last?.contains("then everybody gets everything") == true)
    #expect(throws: SimulationFailure.self) {
      try simulation.replay(file)
    }
  }
}
