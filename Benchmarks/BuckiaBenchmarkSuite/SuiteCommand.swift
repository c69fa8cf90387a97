import ArgumentParser

/// What `make bench` runs: `list` names the comparisons, `measure` runs one of them, `report` writes tables and charts.
@main
struct SuiteCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "BuckiaBenchmarkSuite", abstract: "Measures Buckia against SQLite and other programs.",
    subcommands: [
      ListCommand.self, MeasureCommand.self, MemoryCommand.self, TransferCommand.self, CallCommand.self,
      ReportCommand.self,
    ])
}

/// Prints the ids of the comparisons.
struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Prints the ids of the comparisons, one a line.")

  @Option(help: "How many rows the large tables have.")
  var rows = Record.fullRows

  @Option(help: "Only the comparisons of one part.")
  var part: Part?

  func run() {
    for entry in BenchmarkSuite.entries(rows: rows) where part == nil || part == entry.part {
      print(entry.comparison.id)
    }
  }
}

extension Part: ExpressibleByArgument {}
