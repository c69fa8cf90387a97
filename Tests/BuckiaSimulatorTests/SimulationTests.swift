import BuckiaSimulator
import TestSupport
import Testing

/// Buckia's guarantees, in random histories of all kinds of databases.
@Suite("Simulated histories")
struct SimulationTests {
  /// Ways to resolve conflicts. The resolver takes the greater of two values.
  private static let policies: [@Sendable (inout Simulation) -> Void] = [
    { $0.conflicts = .keepLocal }, { $0.conflicts = .takeIncoming }, { $0.conflicts = .abort },
    { simulation in
      simulation.resolver = { conflict in
        guard conflict.kind == .data || conflict.kind == .conflict else { return .useDefault }
        let (here, there) = (conflict.local.values.compactMap { $0 }, conflict.incoming.values.compactMap { $0 })
        return "\(there)".utf8.lexicographicallyPrecedes("\(here)".utf8) ? .keepLocal : .takeIncoming
      }
    },
  ]

  /// The number of replicas, chosen by seed. Most are small, which allows many histories.
  private static let replicas = [2, 2, 3, 2, 2, 2, 3, 2, 2, 2, 4, 2, 2, 3, 8, 2]

  /// One of the simulations among which the seeds are divided.
  private static func simulation(of schema: SchemaZoo.Schema, _ kind: Int) -> Simulation {
    var simulation = Simulation(schema: schema.sql, replicas: replicas[kind])
    simulation.length = 3 + kind % 7
    policies[(kind + kind / 4) % 4](&simulation)
    return simulation
  }

  @Test("Buckia's guarantees hold in every history", arguments: SchemaZoo.all)
  func promisesHold(schema: SchemaZoo.Schema) throws {
    for kind in Self.replicas.indices {
      do {
        let seeds = SchemaZoo.seeds(640, of: schema).filter {
          $0 / UInt64(SchemaZoo.all.count) % UInt64(Self.replicas.count) == kind
        }
        try Self.simulation(of: schema, kind).run(seeds: seeds)
      } catch let failure as SimulationFailure {
        Issue.record("\(Seeds.replay(failure.seed)): \(failure)")
      }
    }
  }

  /// The kinds of databases in which only the later diff decides about a row.
  static let unconstrained = SchemaZoo.all.filter {
    [
      "text keys", "integer keys", "composite keys", "WITHOUT ROWID", "NULLs, floats and blobs", "NOCASE keys",
      "STRICT", "UNIQUE",
    ]
    .contains($0.name)
  }

  @Test("If the later diff wins, all replicas end with the same rows", arguments: unconstrained)
  func convergence(schema: SchemaZoo.Schema) throws {
    for count in [2, 3] {
      var simulation = Simulation(schema: schema.sql, replicas: count, conflicts: .latest)
      simulation.length = 8
      do { try simulation.run(seeds: SchemaZoo.seeds(120, of: schema)) } catch let failure as SimulationFailure {
        Issue.record("\(Seeds.replay(failure.seed)): \(failure)")
      }
    }
  }

  @Test("If each edit arrives everywhere before the next, there are no conflicts", arguments: SchemaZoo.all)
  func instantNetwork(schema: SchemaZoo.Schema) throws {
    var simulation = Simulation(schema: schema.sql, replicas: 2)
    simulation.network = .instant
    simulation.length = 4
    do {
      #expect(try simulation.run(seeds: SchemaZoo.seeds(60, of: schema)).conflicts == 0)
    } catch let failure as SimulationFailure {
      Issue.record("\(Seeds.replay(failure.seed)): \(failure)")
    }
  }

  @Test("Two replicas with the same value do not keep it when one of them changes it")
  func sameValueTwice() throws {
    var simulation = Simulation(
      schema: "CREATE TABLE notes(id TEXT PRIMARY KEY, title TEXT, edited INTEGER)", replicas: 3, conflicts: .keepLocal)
    simulation.length = 60
    do { try simulation.run(seeds: 0..<24) } catch let failure as SimulationFailure {
      Issue.record("\(failure)")
    }
  }

  @Test("Edits that never change anything are named")
  func idleEdits() throws {
    var simulation = Simulation(schema: "CREATE TABLE notes(id TEXT PRIMARY KEY, title TEXT)", replicas: 2)
    let idle = Edit("close a note") { database, _ in
      try database.run("UPDATE notes SET title = title WHERE id = 'missing'")
    }
    let refused = Edit("reopen a note") { database, _ in try database.run("INSERT INTO closed VALUES (1)") }
    simulation.edits = [idle, refused, .random]
    let report = try simulation.run(seeds: 0..<8)
    #expect(report.idleEdits == ["close a note", "reopen a note"])
  }

  @Test("Histories contain conflicts, crashes, and all other faults")
  func variety() throws {
    let report = try Simulation(schema: SchemaZoo.all[0].sql, replicas: 3).run(seeds: 0..<20)
    #expect(report.histories == 20)
    #expect(report.edits > 100)
    #expect(report.diffs > 40)
    #expect(report.applied > report.diffs)
    #expect(report.conflicts > 5)
    #expect(report.crashes > 0)
  }

  @Test("A seed makes the same history each time, and other seeds make others")
  func seeds() throws {
    func history(_ seed: UInt64) throws -> SimulationFailure? {
      let simulation = Simulation(
        schema: SchemaZoo.all[0].sql,
        checks: [
          Check("No replica edits") {
            try $0.rows("SELECT 1 FROM notes WHERE edited > 2").isEmpty ? nil : "somebody does"
          }
        ])
      do { try simulation.run(seed: seed) } catch let failure as SimulationFailure { return failure }
      return nil
    }
    let first = try #require(try history(3))
    #expect(try history(3)?.history == first.history)
    #expect(try history(4)?.history != first.history)
  }
}
