import ArgumentParser
import BuckiaBenchmarks
import Foundation

/// Writes tables and charts from the records of one run.
struct ReportCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "report", abstract: "Writes tables and charts from the records of one run.")

  @Option(help: "The folder with the records.")
  var records: String

  @Option(help: "The folder for RESULTS.md and the charts.")
  var output: String

  @Option(help: "A README whose benchmark section is replaced after a full run.")
  var readme: String?

  @Option(help: "The version of Swift, for the report.")
  var swift: String?

  @Option(help: "Buckia's commit, for the report.")
  var commit: String?

  @Option(help: "The load average before the run, for the report.")
  var load: Double?

  func run() throws {
    let records = try Record.all(in: self.records)
    let failures = try Failure.all(beside: self.records)
    guard !records.isEmpty || !failures.isEmpty else { throw ReportError("there are no records in \(self.records)") }
    let run = RunDescription(records: records, swift: swift, commit: commit, load: load)
    let charts = ChartGroup.all.compactMap { $0.chart(of: records) }
    try write(
      ResultsDocument(run: run, records: records, failures: failures, charts: charts), charts: charts, into: output)
    if let readme {
      if run.isFull, failures.isEmpty {
        let section = ReadmeSection(run: run, records: records)
        let text = try String(contentsOfFile: readme, encoding: .utf8)
        try section.inserted(into: text).write(toFile: readme, atomically: true, encoding: .utf8)
      } else {
        print("\(readme) shows full runs without failures only; this one had \(Quantity.grouped(run.rows)) rows.")
      }
    }
    for line in TargetTable(records).plainLines { print(line) }
    print("\(output)/RESULTS.md has the whole report.")
    guard failures.isEmpty else {
      throw ReportError("\(failures.count) comparisons failed:\n" + failures.map(\.line).joined(separator: "\n"))
    }
  }

  private func write(
    _ document: ResultsDocument, charts: [(name: String, chart: BarChart)], into folder: String
  ) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    // Remove the charts of older runs, which would not match the new figures.
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) where name.hasSuffix(".svg") {
      try FileManager.default.removeItem(atPath: "\(folder)/\(name)")
    }
    for (name, chart) in charts {
      try chart.svg.write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
    }
    try document.text.write(toFile: "\(folder)/RESULTS.md", atomically: true, encoding: .utf8)
  }
}
