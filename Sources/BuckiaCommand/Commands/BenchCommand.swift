import ArgumentParser
import Buckia
import BuckiaBenchmarks

/// `buckia bench`
struct BenchCommand: Subcommand {
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
    try console.show(report.json, report.lines(style: console.style))
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

/// What `buckia bench` measured.
struct BenchReport {
  let results: [MeasuredComparison]
  /// The number of rows; nil for a user's database.
  let rows: Int?
  /// The user's database, if one was measured.
  let database: UserDatabase?
  let seconds: Double
  let machine = Machine.current

  // MARK: For people

  /// The report for people.
  func lines(style: Style) -> [String] {
    var lines = ["\(Version.text), \(Machine.isOptimized ? "release" : "debug") build", machine.summary.escaped]
    if !Machine.isOptimized {
      lines.append(
        style("This is a debug build, many times slower than a release build: its figures mean nothing.", .bad))
    }
    if machine.hasTemporaryFilesInMemory {
      lines.append(
        style(
          "Temporary files lie in memory here, so the disk is not measured; TMPDIR chooses another folder.", .notable))
    }
    if let database { lines += databaseLines(database, style: style) }
    for result in results {
      lines += ["", style(result.title.escaped, .strong), style("  \(result.size)", .faint)]
      lines += table(of: result).lines(style: style, indent: 4)
    }
    let notes = results.flatMap(\.notes).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
    lines += notes.warningLines(style: style)
    let rounds = results.first?.series.first?.values.count ?? 0
    lines += ["", "Medians of \(rounds) rounds, in turn; it took \(Elapsed(seconds))."]
    return lines
  }

  private func databaseLines(_ database: UserDatabase, style: Style) -> [String] {
    let table = TextTable(.changes(after: [.text("table"), .number("rows")]), of: database.tables) { entry in
      let counts = entry.counts
      return .changes(
        after: [.init(entry.name.escaped(limit: 60)), .count(entry.rows)], counts.inserted, counts.updated,
        counts.deleted)
    }
    let heading = "A copy of \(database.path.escaped), \(ByteCount(database.bytes)), and rows of it changed at random:"
    return ["", heading] + table.lines(style: style) + database.leftOut.lines(heading: "Not measured:", style: style)
  }

  private func table(of result: MeasuredComparison) -> TextTable {
    let measured = result.series.compactMap { series in series.median.map { (series: series, median: $0) } }
    return TextTable(["", .number(""), .prose("")], of: measured) { series, median in
      let shown = result.numbers.compactMap { figure, number in
        note(on: series.name, figure, figure.text(number, unit: result.unit), in: result)
      }
      return [
        .init(series.name.rawValue, series.isSubject ? .strong : nil), .init(result.unit.text(median)),
        .init(shown.joined(separator: "; "), .faint),
      ]
    }
  }

  /// The note on an implementation: a speed is shown in the row of the baseline, anything else in that of the subject.
  private func note(
    on name: ImplementationName, _ figure: Figure, _ number: String, in result: MeasuredComparison
  ) -> String? {
    switch figure.kind {
    case .speed:
      guard name == figure.baseline else { return nil }
      let subjects = Set(result.figures.map(\.subject))
      return "\(subjects.count > 1 ? figure.subject.rawValue : "Buckia") is \(number) as fast"
    case .share: return name == figure.subject ? figure.baseline.map { "\(number) of \($0)" } : nil
    case .extraShare: return name == figure.subject ? figure.baseline.map { "\(number) more than \($0)" } : nil
    case .extraPerItem: return name == figure.subject ? figure.baseline.map { "\(number) more a file than \($0)" } : nil
    case .value: return nil
    }
  }

  // MARK: For programs

  /// The report as `--json` has it.
  var json: JSONValue {
    [
      "version": 1,
      "buckia": .string(Version.number),
      "sqlite": .string(Version.sqlite),
      "zstd": .string(Version.zstd),
      "build": .string(Machine.isOptimized ? "release" : "debug"),
      "machine": [
        "processor": .string(machine.processor), "cores": .number(machine.cores), "memory": .number(machine.memory),
        "system": .string(machine.system), "load": machine.load.map { .real($0) } ?? .null,
        "temporaryFilesInMemory": .bool(machine.hasTemporaryFilesInMemory),
      ],
      "rows": rows.map { .number($0) } ?? .null,
      "database": database.map(Self.json) ?? .null,
      "comparisons": .array(results.map(Self.json)),
      "seconds": .real(seconds),
    ]
  }

  private static func json(_ database: UserDatabase) -> JSONValue {
    [
      "path": .string(database.path), "bytes": .number(database.bytes),
      "tables": .array(
        database.tables.map {
          [
            "name": .string($0.name), "rows": .number($0.rows), "inserted": .number($0.counts.inserted),
            "updated": .number($0.counts.updated), "deleted": .number($0.counts.deleted),
          ]
        }),
      "skipped": .array(database.leftOut.map(\.json)),
    ]
  }

  private static func json(_ result: MeasuredComparison) -> JSONValue {
    [
      "id": .string(result.id), "title": .string(result.title), "size": .string(result.size),
      "unit": .string(result.unit.rawValue),
      "contenders": .array(
        result.series.map {
          [
            "name": .string($0.name.rawValue), "median": $0.median.map { .real($0) } ?? .null,
            "values": .array($0.values.map { .real($0) }),
          ]
        }),
      "figures": .array(
        result.numbers.map { figure, number in
          [
            "subject": .string(figure.subject.rawValue), "baseline": .text(figure.baseline?.rawValue),
            "kind": .string(figure.kind.name), "number": .real(number),
          ]
        }),
      "notes": .strings(result.notes),
    ]
  }
}

extension Figure.Kind {
  /// The kind as `--json` has it.
  fileprivate var name: String {
    switch self {
    case .speed: "speed"
    case .share: "share"
    case .extraShare: "extra-share"
    case .extraPerItem: "extra-per-item"
    case .value: "value"
    }
  }
}
