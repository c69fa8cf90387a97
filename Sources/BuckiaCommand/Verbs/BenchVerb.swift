import ArgumentParser
import BuckiaBenchmarks

/// `buckia bench`
struct BenchVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measures on this machine what replication costs, against SQLite's own calls.",
    discussion: """
      Without a database it makes tables of its own, which takes about half a minute. With one it copies it into a \
      temporary folder, changes rows of the copy at random, and measures finding and applying those changes; the \
      database itself is only read. Each is done three times in turn with its alternatives; the medians are shown.

      Example:
        buckia bench notes.sqlite
      """)

  @Argument(help: "A database of your own to measure with.")
  var database: String?

  @Option(
    help: ArgumentHelp(
      "How many rows the tables have, or with a database, how many of its rows are changed (one in a hundred, unless "
        + "set).", valueName: "n"))
  var rows: Int?

  @OptionGroup var output: OutputOptions

  func validate() throws {
    let least = database == nil ? 20 : 1
    guard (rows ?? least) >= least, (rows ?? 0) <= 100_000_000 else {
      throw ValidationError("--rows must be from \(least) to 100,000,000.")
    }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let folder = try ScratchFolder()
    let cleanup = InterruptionCleanup(removing: folder.path)
    defer { cleanup.cancel() }
    let began = ContinuousClock.now
    var own: UserDatabase?
    let comparisons: [Comparison]
    if let database {
      let copies = try UserDatabase(
        copying: database, changing: rows, in: folder, progress: { console.progress.show($0) })
      own = copies
      comparisons = Comparison.userDatabase(copies)
    } else {
      comparisons = ShortSuite.comparisons(rows: rows ?? ShortSuite.defaultRows)
    }
    let results = try measure(comparisons, in: folder, progress: console.progress)
    let report = BenchReport(
      results: results, rows: own == nil ? rows ?? ShortSuite.defaultRows : nil, database: own,
      seconds: (ContinuousClock.now - began) / .seconds(1))
    try console.document(report.json)
    try console.say(report.lines(style: console.style))
    return .done
  }

  private func measure(
    _ comparisons: [Comparison], in folder: ScratchFolder, progress: ProgressLine
  ) throws -> [MeasuredComparison] {
    var results: [MeasuredComparison] = []
    for (index, comparison) in comparisons.enumerated() {
      let place = "\(index + 1) of \(comparisons.count): \(comparison.title)"
      progress.show("\(place), preparing…")
      let run = try ComparisonRun(comparison, in: folder)
      for round in 1...ShortSuite.rounds {
        try run.round {
          progress.show("\(place), round \(round) of \(ShortSuite.rounds), \($0.name)…")
        }
      }
      results.append(run.result)
    }
    progress.clear()
    return results
  }
}
