import BuckiaBenchmarks

/// `RESULTS.md`, the full report of one run.
struct ResultsDocument {
  let run: RunDescription
  let records: [Record]
  let failures: [Failure]
  let charts: [(name: String, chart: BarChart)]

  var text: String {
    var lines = ["# What was measured", ""]
    if !run.isFull {
      lines += [
        "This run was scaled to \(Quantity.grouped(run.rows)) rows. The targets speak of \(Quantity.grouped(Record.fullRows)).",
        "",
      ]
    }
    if run.isBusy { lines += ["**Other programs were running on this machine: do not rely on these figures.**", ""] }
    lines += ["| | |", "| --- | --- |"] + run.facts.map { "| \($0) | \($1) |" }
    if !failures.isEmpty { lines += ["", "## What failed", ""] + failures.map { "- \($0.line)" } }
    lines += ["", "## Targets", ""] + TargetTable(records).markdown
    for part in Part.allCases {
      let own = records.filter { $0.part == part }
      guard !own.isEmpty else { continue }
      lines += ["", "## \(part.title)"]
      let ids = Set(own.map(\.comparison.id))
      for (name, chart) in charts where !ids.isDisjoint(with: chart.ids) {
        lines += ["", "![\(chart.title)](\(name))"]
      }
      for record in own { lines += [""] + section(record.comparison) }
      let notes = own.flatMap(\.comparison.notes).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
      if !notes.isEmpty { lines += [""] + notes.map { "- \($0)" } }
    }
    lines += ["", "## How it was measured", ""] + Self.method + ["", "## How to repeat it", ""] + Self.repetition
    return lines.joined(separator: "\n") + "\n"
  }

  private func section(_ comparison: MeasuredComparison) -> [String] {
    let rounds = comparison.series.map(\.values.count).max() ?? 0
    var lines = [
      "### \(comparison.title)", "", "\(comparison.size). \(rounds == 1 ? "One round" : "\(rounds) rounds").", "",
      "| | median | lowest | highest | |", "| --- | ---: | ---: | ---: | --- |",
    ]
    for series in comparison.series {
      guard let median = series.median, let lowest = series.values.min(), let highest = series.values.max() else {
        continue
      }
      let name = series.isSubject ? "**\(series.name)**" : series.name.rawValue
      let values = [median, lowest, highest].map(comparison.unit.text).joined(separator: " | ")
      lines.append("| \(name) | \(values) | \(comparison.notes(on: series.name).joined(separator: "; ")) |")
    }
    return lines
  }

  private static let method = [
    "- Release build. Each comparison runs in a process of its own and goes round by round: in every round each implementation does",
    "  the work once, and the order turns around from round to round, so that whatever drifts falls on all of them alike. What is",
    "  compared are medians.",
    "- Every run starts from fresh copies of its database and files, on the same file system, which were brought to the disk",
    "  before the clock started. They are in the system's page cache for all implementations alike; SQLite's own cache is empty.",
    "- Databases are files in WAL mode with SQLite's default cache and `synchronous = FULL`, and the time ends with the commit.",
    "- In the first round what each implementation arrived at is read back, outside the timing; unless all have the same rows, the",
    "  comparison fails.",
    "- SQLite's own call gets the changes as its session extension records them. Buckia gets them as its own diffs hold them: by",
    "  key. What SQLite's call makes of changes in that order is measured beside it.",
    "- Files in a folder: SQLite's own call reads a raw changeset from each file and leaves it there; Buckia opens, checks and",
    "  decompresses diff files and removes them. Differences: Buckia's are compressed and brought to the disk, the others are not.",
    "- Rows have a key and four columns, some 120 bytes (230 for differences); half of that does not compress. Where whole files of",
    "  2 GiB are compared, they have some 2,000 bytes, mostly two to a page.",
  ]

  private static let repetition = [
    "```",
    "make bench                              # everything; writes this file and the charts",
    "make bench BUCKIA_BENCH_ROWS=100000     # smaller; the report goes to .build/benchmarks/results",
    "make bench PART=apply                   # one part: apply, folder, diff, share, sync, backup, memory, peer or hosts",
    "buckia bench                            # a short version, for any machine",
    "```",
  ]
}

extension Failure {
  /// What failed and why.
  var line: String { "\(title): \(reason)" }
}

extension MeasuredComparison {
  /// What the figures say about an implementation, in words.
  func notes(on name: ImplementationName) -> [String] {
    numbers.filter { $0.figure.subject == name }.compactMap { figure, number in
      let text = figure.text(number, unit: unit)
      switch figure.kind {
      case .speed: return figure.baseline.map { "\(text) as fast as \($0)" }
      case .share: return figure.baseline.map { "\(text) of \($0)" }
      case .extraShare:
        let difference = number < 0 ? "\(figure.text(-number, unit: unit)) less" : "\(text) more"
        return figure.baseline.map { "\(difference) than \($0)" }
      case .extraPerItem: return figure.baseline.map { "\(text) more for each file than \($0)" }
      case .value: return nil
      }
    }
  }
}
