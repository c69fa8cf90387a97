import TestSupport
import Testing

@testable import BuckiaSimulator

/// Histories are data: they are saved in files, regrouped, and executed step by step.
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
      Step(1, .setClock(ahead: -90)),
      Step(
        0,
        .edit(
          name: "all values",
          statements: values.enumerated().map { number, value in
            Statement(sql: "INSERT INTO notes(id, title) VALUES (?1, ?2)", values: [.text("k\(number)"), value])
          })),
      Step(nil, .wait(seconds: 60)), Step(0, .send(diff: 7)), Step(1, .deliver(diff: 7)), Step(1, .deliver(diff: 7)),
      Step(1, .receive(Reception(order: .asArrived, groups: [1, 2], interruption: .crash(afterRows: 3)))),
      Step(1, .receive(Reception(groups: [1], interruption: .stop(beforeFile: 1)))),
      Step(1, .receive(Reception())),
    ]
    return history
  }()

  @Test("A history is read unchanged from a file, to the last bit")
  func roundTrip() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("history.json")
    try Self.history.write(failing: "nothing", to: path)
    let read = try History(contentsOf: path)
    #expect(read == Self.history)
    // `==` treats both zeros as equal.
    #expect(try read.document(failing: "nothing") == Self.history.document(failing: "nothing"))
  }

  @Test("Each step is described in words")
  func words() {
    let lines = "\(Self.history)".split(separator: "\n")
    #expect(lines[0] == "  1. the clock of replica 1 is set -90 seconds ahead")
    #expect(lines.contains("  4. replica 0 sends diff 7"))
    #expect(
      lines.contains("  8. replica 1 applies what has arrived, by id, in groups of 1, stops before file 1 and goes on"))
    #expect(lines.last == "  then everybody gets everything")
  }

  @Test("Regrouping changes receptions that do not crash")
  func regrouped() {
    let other = Self.history.regrouped
    #expect(other.steps.count == Self.history.steps.count)
    #expect(other.steps[6] == Self.history.steps[6])
    guard other.steps[7].replica == 1, case .receive(let reception) = other.steps[7].action else {
      return #expect(Bool(false))
    }
    #expect(reception.interruption == nil)
  }

  @Test("A history made by hand is executed, and all values arrive")
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

  @Test("Steps about missing diffs or replicas do nothing")
  func missing() throws {
    var history = History(seed: 1, schema: Self.schema, replicas: 2)
    history.steps = [
      Step(5, .send(diff: 1)), Step(0, .deliver(diff: 9)), Step(0, .receive(Reception())),
      Step(0, .send(diff: 1)),
      Step(0, .edit(name: "refused", statements: [Statement(sql: "INSERT INTO nowhere VALUES (1)", values: [])])),
    ]
    try Simulation(schema: Self.schema).check(history)
  }
}
