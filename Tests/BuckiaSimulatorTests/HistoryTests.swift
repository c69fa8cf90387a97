import TestSupport
import Testing

@testable import BuckiaSimulator

/// Histories are data: they are kept as files, regrouped, and taken step by step.
@Suite("Histories as data")
struct HistoryTests {
  private static let schema = "CREATE TABLE notes(id TEXT PRIMARY KEY, title, edited INTEGER)"

  /// Every kind of step, reception and value.
  private static let history = {
    var history = History(seed: .max, schema: schema, replicas: 2)
    let values: [ChangesetValue] = [
      .null, .integer(.min), .real(0.1), .real(-.infinity), .real(-0.0), .text("Ünï\n'\"\u{7}"), .blob([0, 255]),
      .blob([]),
    ]
    history.steps = [
      .setClock(replica: 1, ahead: -90),
      .edit(
        replica: 0, name: "all values",
        values.enumerated().map { number, value in
          Statement(sql: "INSERT INTO notes(id, title) VALUES (?1, ?2)", values: [.text("k\(number)"), value])
        }),
      .wait(seconds: 60), .send(replica: 0, diff: 7), .deliver(diff: 7, replica: 1), .deliver(diff: 7, replica: 1),
      .receive(replica: 1, Reception(order: .asArrived, groups: [1, 2], interruption: .crash(afterRows: 3))),
      .receive(replica: 1, Reception(groups: [1], interruption: .stop(beforeFile: 1))),
      .receive(replica: 1, Reception()),
    ]
    return history
  }()

  @Test("A history that was kept in a file is the same when it is read, to the last bit")
  func roundTrip() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("history.json")
    try Self.history.write(failing: "nothing", to: path)
    let read = try History(contentsOf: path)
    #expect(read == Self.history)
    // `==` takes both zeros for the same.
    #expect("\(read.json(failing: "nothing"))" == "\(Self.history.json(failing: "nothing"))")
  }

  @Test("Each step says in words what happens")
  func words() {
    let lines = "\(Self.history)".split(separator: "\n")
    #expect(lines[0] == "  1. the clock of replica 1 is set -90 seconds ahead")
    #expect(lines.contains("  4. replica 0 sends diff 7"))
    #expect(
      lines.contains("  8. replica 1 applies what has arrived, by id, in groups of 1, stops before file 1 and goes on"))
    #expect(lines.last == "  then everybody gets everything")
  }

  @Test("Other groups are for receptions that do not crash")
  func regrouped() {
    let other = Self.history.regrouped
    #expect(other.steps.count == Self.history.steps.count)
    #expect(other.steps[6] == Self.history.steps[6])
    guard case .receive(1, let reception) = other.steps[7] else { return #expect(Bool(false)) }
    #expect(reception.interruption == nil)
  }

  @Test("A history made by hand is taken, and all values arrive")
  func taken() throws {
    let simulation = Simulation(schema: Self.schema)
    try simulation.check(Self.history)
    let run = try SimulationRun(simulation, Template(schema: Self.schema, keepsClocks: false), replicas: 2, seed: 1)
    for step in Self.history.steps { try run.take(step) }
    _ = try run.finish()
    #expect(try run.replicas[0].rows() == run.replicas[1].rows())
    #expect(try run.replicas[1].rows().tables[0].count == 8)
    #expect(run.report.crashes == 1)
  }

  @Test("Steps about what is not there do nothing")
  func missing() throws {
    var history = History(seed: 1, schema: Self.schema, replicas: 2)
    history.steps = [
      .send(replica: 5, diff: 1), .deliver(diff: 9, replica: 0), .receive(replica: 0, Reception()),
      .send(replica: 0, diff: 1),
      .edit(replica: 0, name: "refused", [Statement(sql: "INSERT INTO nowhere VALUES (1)", values: [])]),
    ]
    try Simulation(schema: Self.schema).check(history)
  }
}
