import BuckiaBenchmarks

/// The newest figures in the README, between two marker comments.
struct ReadmeSection {
  static let begin = "<!-- benchmarks: written by make bench -->"
  static let end = "<!-- benchmarks: end -->"

  let run: RunDescription
  let records: [Record]

  /// The comparisons that the README shows, with what Buckia is measured against in them; RESULTS.md has all.
  private static let shown: [(title: String, baseline: String)] = [
    ("1,000,000 inserts, TEXT key", "sqlite3changeset_apply_v2"),
    ("250,000 updates and deletes, TEXT key", "sqlite3changeset_apply_v2"),
    ("1,000,000 inserts, the later diff wins, undo kept, TEXT key", "sqlite3changeset_apply_v2"),
    ("1,000,000 inserts under four indexes, TEXT key", "sqlite3changeset_apply_v2"),
    ("1,000,000 conflicting inserts, keep-local, TEXT key", "sqlite3changeset_apply_v2"),
    ("10,000 inbound files of 20 rows, one folder, synchronous FULL", "sqlite3changeset_apply_v2"),
    ("Difference of two databases, 1,000,000 rows, 1% changed, TEXT key", "sqlite3session_diff"),
    ("Difference of two databases, 1,000,000 rows, 1% changed, TEXT key", "sqldiff"),
    ("Peak memory, a changeset of 3 GiB in a diff file", ""),
    ("1,000,000 inserts, TEXT key, whole programs", "pygeodiff"),
    ("1,000,000 conflicting inserts, the local rows kept, TEXT key, whole programs", "apsw"),
    ("A call that applies a diff file, 1,000,000 new rows, TEXT key", "Buckia, from Swift"),
  ]

  var lines: [String] {
    var lines = ["| work | who | against | measured | target |", "| --- | --- | --- | ---: | ---: |"]
    for (title, baseline) in Self.shown {
      for record in records where record.comparison.title == title {
        guard let row = Self.row(record, against: baseline) else { continue }
        lines.append("| \(row) |")
      }
    }
    lines += [
      "",
      // On one line, since the README has to stay short.
      "\(run.day), \(run.machine.summary), SQLite \(Machine.sqliteVersion). Medians; `1.5x` is one and a half times as fast, "
        + "`5%` takes so much longer. All implementations, sizes and the way of measuring: "
        + "[RESULTS.md](Benchmarks/results/RESULTS.md).",
    ]
    return lines
  }

  /// The first figure with a target, or for other programs the first figure, since they have no targets.
  private static func row(_ record: Record, against baseline: String) -> String? {
    let comparison = record.comparison
    let numbers = comparison.numbers.filter { ($0.figure.baseline?.rawValue ?? "").hasPrefix(baseline) }
    guard
      let (figure, number) = numbers.first(where: { $0.figure.target != nil })
        ?? (record.part == .peer ? numbers.first : nil)
    else { return nil }
    return [
      comparison.title, figure.subject.rawValue, figure.baseline?.rawValue ?? "",
      figure.text(number, unit: comparison.unit),
      figure.targetText(unit: comparison.unit) ?? "",
    ].joined(separator: " | ")
  }

  /// Replaces the section between the markers of a text.
  ///
  /// - Throws: `ReportError` unless both markers are there, once each and in order.
  func inserted(into text: String) throws -> String {
    let parts = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    let begins = parts.indices.filter { parts[$0] == Self.begin }
    let ends = parts.indices.filter { parts[$0] == Self.end }
    guard begins.count == 1, ends.count == 1, begins[0] < ends[0] else {
      throw ReportError("the README has no place for the figures: a line \(Self.begin) and, further down, \(Self.end)")
    }
    return (parts[...begins[0]] + lines + parts[ends[0]...]).joined(separator: "\n")
  }
}
