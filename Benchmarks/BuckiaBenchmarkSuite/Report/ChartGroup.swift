import BuckiaBenchmarks

/// Comparisons that are shown in one chart.
struct ChartGroup {
  /// The chart's file name.
  let file: String
  let title: String
  /// The prefix of the ids of its comparisons.
  let prefix: String

  /// All charts, in the order in which they are shown.
  static let all = [
    ChartGroup(file: "inserts.svg", title: "Applying inserts", prefix: "inserts-"),
    ChartGroup(
      file: "updates-and-deletes.svg", title: "Applying updates and deletes", prefix: "updates-and-deletes-"),
    ChartGroup(
      file: "latest.svg", title: "Applying where the later diff wins, and what takes a diff back is kept",
      prefix: "latest-"),
    ChartGroup(file: "indexed.svg", title: "Applying changes to a table with four indexes", prefix: "indexed-"),
    ChartGroup(file: "conflicts.svg", title: "Conflicting inserts, the local rows kept", prefix: "conflicts-"),
    ChartGroup(
      file: "small-files.svg", title: "Many small files in one folder", prefix: "small-files"),
    ChartGroup(file: "opening.svg", title: "Opening a diff file, beside applying it", prefix: "opening-"),
    ChartGroup(file: "difference.svg", title: "Finding the difference of two databases", prefix: "difference-"),
    ChartGroup(file: "transfers-up.svg", title: "Uploading to a WebDAV server", prefix: "upload-"),
    ChartGroup(file: "transfers-down.svg", title: "Downloading from a WebDAV server", prefix: "download-"),
    ChartGroup(file: "backup.svg", title: "Backups of a large database", prefix: "backup-changed"),
    ChartGroup(file: "backup-restore.svg", title: "Restoring the 100th backup", prefix: "backup-restore"),
    ChartGroup(file: "memory.svg", title: "Peak memory", prefix: "memory-"),
    ChartGroup(
      file: "peer-difference.svg", title: "Finding the difference, against other programs", prefix: "peer-difference-"),
    ChartGroup(file: "peer-equal-files.svg", title: "Finding that two databases are equal", prefix: "peer-equal-files"),
    ChartGroup(file: "peer-inserts.svg", title: "Applying inserts, against other programs", prefix: "peer-inserts-"),
    ChartGroup(
      file: "peer-updates-and-deletes.svg", title: "Applying updates and deletes, against other programs",
      prefix: "peer-updates-and-deletes-"),
    ChartGroup(
      file: "peer-conflicts.svg", title: "Conflicting inserts, against other programs", prefix: "peer-conflicts-"),
    ChartGroup(file: "host-small.svg", title: "Calls from other languages, few rows", prefix: "host-small-"),
    ChartGroup(file: "host-large.svg", title: "Calls from other languages, many rows", prefix: "host-large-"),
  ]

  /// The chart, when any of its comparisons was measured.
  func chart(of records: [Record]) -> (name: String, chart: BarChart)? {
    let comparisons = records.map(\.comparison).filter {
      $0.id.hasPrefix(prefix) && $0.series.contains { $0.median != nil }
    }
    guard let first = comparisons.first else { return nil }
    let rounds = comparisons.flatMap(\.series).map(\.values.count).max() ?? 0
    let middle = rounds > 1 ? "medians of \(rounds) rounds" : "one round"
    let unit = first.unit == .seconds ? "Time" : "MiB resident"
    let legend = "\(unit), \(middle): shorter is better\(Self.explanation(of: first))"
    let chart = BarChart(
      title: title, legend: legend, groups: comparisons.map(Self.group), ids: Set(comparisons.map(\.id)))
    return (file, chart)
  }

  /// The meaning of the numbers in brackets.
  private static func explanation(of comparison: MeasuredComparison) -> String {
    guard let figure = comparison.numbers.first?.figure, let baseline = figure.baseline else { return "" }
    switch figure.kind {
    case .share: return "; in brackets, the share of \(baseline)"
    case .extraShare: return "; in brackets, how much longer than \(baseline)"
    default: return "; in brackets, how many times as fast as \(baseline)"
    }
  }

  private static func group(_ comparison: MeasuredComparison) -> BarChart.Group {
    let bars = comparison.series.compactMap { series -> BarChart.Bar? in
      guard let median = series.median else { return nil }
      var text = comparison.unit.text(median)
      // After Buckia's bar: the ratio to its first baseline.
      if let (figure, number) = comparison.numbers.first(where: { $0.figure.subject == series.name }),
        figure.kind != .value
      {
        text += " (\(figure.text(number, unit: comparison.unit)))"
      }
      return BarChart.Bar(label: series.name.rawValue, value: median, text: text, isSubject: series.isSubject)
    }
    return BarChart.Group(label: comparison.title, bars: bars)
  }
}
