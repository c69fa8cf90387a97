import ArgumentParser
import BuckiaBenchmarks
import Foundation

/// Runs one comparison and writes a record of it for the report.
///
/// Each comparison gets a process of its own, so that none profits from memory that another has left behind.
struct MeasureCommand: ParsableCommand {
  static let configuration = CommandConfiguration(commandName: "measure", abstract: "Runs one comparison.")

  @Argument(help: "The comparison's id.")
  var id: String

  @Option(help: "How many rows the large tables have.")
  var rows = Record.fullRows

  @Option(help: "How often each implementation runs, instead of the suite's own number.")
  var rounds: Int?

  @Option(help: "The folder for the record.")
  var records: String

  func validate() throws {
    guard rows >= 2_000 else { throw ValidationError("--rows must be at least 2,000.") }
    guard (rounds ?? 1) > 0 else { throw ValidationError("--rounds must be at least 1.") }
  }

  /// A comparison that fails is a result, too: the report names it.
  func run() throws {
    guard let entry = BenchmarkSuite.entries(rows: rows).first(where: { $0.comparison.id == id }) else {
      throw ValidationError("There is no comparison \(id).")
    }
    // In case the process crashes.
    try note("its process did not run to the end", for: entry)
    do { try measure(entry) } catch {
      say("  failed: \(error)")
      try note(String(describing: error), for: entry)
      return
    }
    try Failure.remove(id, beside: records)
  }

  private func measure(_ entry: BenchmarkSuite.Entry) throws {
    say("\(entry.comparison.title): preparing")
    let run = try ComparisonRun(entry.comparison)
    for round in 1...(rounds ?? entry.rounds) {
      try run.round()
      let values = run.result.series.compactMap { series in
        series.values.last.map { "\(series.name) \(run.result.unit.text($0))" }
      }
      say("  round \(round): \(values.joined(separator: ", "))")
      try Record(part: entry.part, number: entry.number, rows: rows, comparison: run.result).write(into: records)
    }
  }

  private func note(_ reason: String, for entry: BenchmarkSuite.Entry) throws {
    try Failure(part: entry.part, title: entry.comparison.title, reason: reason).write(id, beside: records)
  }

  private func say(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }
}
