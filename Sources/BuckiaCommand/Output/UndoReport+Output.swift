import Buckia

extension UndoReport {
  /// The report for people.
  ///
  /// - Parameter database: The database's path as it was typed, for the commands that are suggested.
  func lines(database: String, style: Style) -> [String] {
    var lines: [String] = []
    if undone.isEmpty {
      lines.append("There is nothing to undo.")
    } else {
      var table = TextTable([
        isDryRun ? "would be undone" : "undone", .text("by"), .number("inserted"), .number("updated"),
        .number("deleted"), .number("conflicts"),
      ])
      for diff in undone.prefix(style.listLimit) {
        table.add([
          .init(diff.diff), .init("\(diff.id)", .faint), .count(diff.inserted), .count(diff.updated),
          .count(diff.deleted), .count(diff.conflicts, .notable),
        ])
      }
      lines += table.lines(style: style, indent: 0)
      if undone.count > style.listLimit { lines.append(style.rest(undone.count - style.listLimit, "diff")) }
      lines += undone.flatMap(\.warnings).lines(style: style)
    }
    for diff in skipped.prefix(style.listLimit) {
      lines += style.wrapped("\(style(diff.diff, .strong)) was not undone: \(diff.reason.escaped)", hanging: 2)
    }
    if skipped.count > style.listLimit { lines.append(style.rest(skipped.count - style.listLimit, "diff")) }
    let conflicts = undone.reduce(0) { $0 + $1.conflicts }
    lines += warnings.lines(style: style)
    if conflicts > 0 && !isDryRun {
      lines += style.suggestion(
        "\(style("\(conflicts.counted("conflict")).", .notable)) See \(conflicts == 1 ? "it" : "them") with",
        "buckia conflicts \(database.shellQuoted)")
    }
    return lines
  }
}
