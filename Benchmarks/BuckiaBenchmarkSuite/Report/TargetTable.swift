import BuckiaBenchmarks

/// The figures that have a target: one row each, with the measured number and the target.
struct TargetTable {
  struct Row {
    let work: String
    let subject: String
    let against: String
    let measured: String
    let target: String
    let isMet: Bool
  }

  let rows: [Row]

  init(_ records: [Record]) {
    rows = records.flatMap { record in
      let comparison = record.comparison
      return comparison.numbers.compactMap { figure, number -> Row? in
        guard let target = figure.targetText(unit: comparison.unit), let isMet = figure.isMet(by: number) else {
          return nil
        }
        return Row(
          work: comparison.title, subject: figure.subject.rawValue, against: figure.baseline?.rawValue ?? "",
          measured: figure.text(number, unit: comparison.unit), target: target, isMet: isMet)
      }
    }
  }

  /// The table as Markdown.
  var markdown: [String] {
    guard !rows.isEmpty else { return ["Nothing with a target was measured."] }
    var lines = ["| work | who | against | measured | target | met |", "| --- | --- | --- | ---: | ---: | --- |"]
    for row in rows {
      lines.append(
        "| \(row.work) | \(row.subject) | \(row.against) | **\(row.measured)** | \(row.target) | "
          + "\(row.isMet ? "yes" : "no") |")
    }
    return lines
  }

  /// The table for a terminal.
  var plainLines: [String] {
    let cells = rows.map { row in
      [row.work, row.subject, row.measured, "target \(row.target)", row.isMet ? "met" : "not met"]
    }
    guard let first = cells.first else { return [] }
    let widths = first.indices.map { column in cells.map { $0[column].count }.max() ?? 0 }
    return cells.map { row in
      zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }.joined(separator: "  ")
    }
  }
}
