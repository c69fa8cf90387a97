import BuckiaSimulator
import TestSupport
import Testing

/// Replicas whose apps are updated at different times, and that trust each other one by one.
@Suite("Simulated upgrades and trust")
struct UpgradeTests {
  /// One of the simulations among which the seeds are divided.
  private static func simulation(of schema: SchemaZoo.Schema, _ kind: Int) -> Simulation {
    var simulation = Simulation(schema: schema.sql, replicas: kind % 3 == 2 ? 3 : 2)
    simulation.length = 4 + kind % 5
    simulation.upgrade = SchemaZoo.upgrade(of: schema)
    simulation.conflicts = [.keepLocal, .takeIncoming, .keepLocal, .abort][kind / 2 % 4]
    simulation.schemaMode = kind % 2 == 0 ? .hold : .additive
    return simulation
  }

  private static func run(_ simulation: Simulation, _ seeds: some Sequence<UInt64>) throws {
    do { try simulation.run(seeds: seeds) } catch let failure as SimulationFailure {
      Issue.record("\(Seeds.replay(failure.seed)): \(failure)")
    }
  }

  @Test("Nothing is lost if an app is updated here earlier than there", arguments: SchemaZoo.all)
  func upgrades(schema: SchemaZoo.Schema) throws {
    for kind in 0..<8 {
      let seeds = SchemaZoo.seeds(60, of: schema).filter { $0 / UInt64(SchemaZoo.all.count) % 8 == UInt64(kind) }
      try Self.run(Self.simulation(of: schema, kind), seeds)
    }
  }

  @Test(
    "If the later diff wins, all have the same rows once all are updated", arguments: SimulationTests.unconstrained)
  func upgradesConverge(schema: SchemaZoo.Schema) throws {
    var simulation = Simulation(schema: schema.sql, replicas: 3, conflicts: .latest)
    simulation.length = 8
    simulation.upgrade = SchemaZoo.upgrade(of: schema)
    try Self.run(simulation, SchemaZoo.seeds(30, of: schema))
  }

  @Test("Diffs sent before their sender is trusted are applied once it is", arguments: SchemaZoo.all)
  func trust(schema: SchemaZoo.Schema) throws {
    var simulation = Simulation(schema: schema.sql, replicas: 3)
    simulation.trust = .known
    simulation.length = 8
    try Self.run(simulation, SchemaZoo.seeds(30, of: schema))
  }

  // MARK: Mistakes

  private static let notes = "CREATE TABLE notes(id TEXT PRIMARY KEY, title TEXT, edited INTEGER)"

  private func failure(of simulation: Simulation) throws -> SimulationFailure {
    var found: SimulationFailure?
    do { try simulation.run(seeds: 0..<200) } catch let failure as SimulationFailure { found = failure }
    return try #require(found)
  }

  @Test("A lost held value is detected; the shortest history has an upgrade, and is the same from a file")
  func lostHeldValue() throws {
    var simulation = Simulation(schema: Self.notes, replicas: 2)
    simulation.upgrade = ["ALTER TABLE notes ADD COLUMN remark TEXT"]
    simulation.schemaMode = .hold
    simulation.network.losses = 0
    simulation.sabotage = { _, database in try database.execute("DELETE FROM buckia_held_change") }
    let failure = try failure(of: simulation)
    #expect([.nothingLost, .nothingHeld, .counters].contains(failure.invariant))
    #expect(failure.history.stepCount <= 8)
    #expect(failure.description.contains("gets the upgrade"))
    let folder = try TemporaryFolder()
    let path = folder.file("failure.json")
    try failure.write(to: path)
    let again = #expect(throws: SimulationFailure.self) { try simulation.replay(path) }
    #expect(again?.history == failure.history)
    simulation.sabotage = nil
    try simulation.replay(path)
  }

  @Test("A receiver that accepts diffs from any sender is detected")
  func carelessReceiver() throws {
    var simulation = Simulation(schema: Self.notes, replicas: 2)
    simulation.length = 8
    simulation.trust = .known
    simulation.sabotage = { _, database in
      try database.execute("UPDATE buckia_settings SET value = 'any' WHERE name = 'trust'")
    }
    let failure = try failure(of: simulation)
    #expect(failure.invariant == .trust)
    #expect(failure.history.stepCount <= 8)
  }

  @Test("Histories hold parts, and quarantine files of unknown senders")
  func variety() throws {
    var updated = Simulation(schema: Self.notes, replicas: 3)
    updated.upgrade = ["ALTER TABLE notes ADD COLUMN remark TEXT"]
    updated.schemaMode = .hold
    #expect(try updated.run(seeds: 0..<12).held > 2)
    var careful = Simulation(schema: Self.notes, replicas: 3)
    careful.trust = .known
    #expect(try careful.run(seeds: 0..<12).quarantined > 0)
  }
}
