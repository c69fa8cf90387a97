import BenchmarkRecords
import BuckiaBenchmarks
import Foundation

/// Makes the tables and charts of one run of the suite from its records.
///
/// ```
/// BenchmarkReport --records DIR --output DIR [--readme FILE] [--swift VERSION] [--commit ID] [--load NUMBER]
/// ```
@main
enum BenchmarkReport {
  static func main() {
    do {
      let options = try Options(CommandLine.arguments.dropFirst())
      let records = try Record.all(in: options.records)
      let failures = try Failure.all(beside: options.records)
      guard !records.isEmpty || !failures.isEmpty else {
        throw ReportError("there are no records in \(options.records)")
      }
      let run = RunDescription(records: records, options: options)
      let charts = ChartGroup.all.compactMap { $0.chart(of: records) }
      try write(
        ResultsDocument(run: run, records: records, failures: failures, charts: charts), charts: charts,
        into: options.output)
      if let readme = options.readme {
        if run.isFull, failures.isEmpty {
          let shown = Set(ChartGroup.all.filter(\.isInReadme).map(\.file))
          let section = ReadmeSection(run: run, records: records, charts: charts.filter { shown.contains($0.name) })
          let text = try String(contentsOfFile: readme, encoding: .utf8)
          try section.inserted(into: text).write(toFile: readme, atomically: true, encoding: .utf8)
        } else {
          print(
            "\(readme) shows full runs only, in which nothing failed; this one had \(Quantity.grouped(run.rows)) rows.")
        }
      }
      for line in TargetTable(records).plainLines { print(line) }
      print("\(options.output)/RESULTS.md has the whole report.")
      guard failures.isEmpty else {
        throw ReportError("\(failures.count) comparisons failed:\n" + failures.map(\.line).joined(separator: "\n"))
      }
    } catch {
      FileHandle.standardError.write(Data("The report failed: \(error)\n".utf8))
      exit(1)
    }
  }

  private static func write(
    _ document: ResultsDocument, charts: [(name: String, chart: BarChart)], into folder: String
  ) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    // Charts of an older run must not stand beside newer figures.
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) where name.hasSuffix(".svg") {
      try FileManager.default.removeItem(atPath: "\(folder)/\(name)")
    }
    for (name, chart) in charts {
      try chart.svg.write(toFile: "\(folder)/\(name)", atomically: true, encoding: .utf8)
    }
    try document.text.write(toFile: "\(folder)/RESULTS.md", atomically: true, encoding: .utf8)
  }
}

/// What the report is told.
struct Options {
  let records: String
  let output: String
  let readme: String?
  let swift: String?
  let commit: String?
  let load: Double?

  init(_ arguments: ArraySlice<String>) throws {
    var values: [String: String] = [:]
    var rest = arguments
    while let name = rest.popFirst() {
      guard name.hasPrefix("--"), let value = rest.popFirst() else {
        throw ReportError("usage: BenchmarkReport --records DIR --output DIR [--readme FILE] [--swift VERSION] …")
      }
      if !value.isEmpty { values[name] = value }
    }
    guard let records = values["--records"], let output = values["--output"] else {
      throw ReportError("--records and --output are needed")
    }
    self.records = records
    self.output = output
    readme = values["--readme"]
    swift = values["--swift"]
    commit = values["--commit"]
    load = values["--load"].flatMap(Double.init)
  }
}

/// Why there is no report.
struct ReportError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
