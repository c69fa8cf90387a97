import Buckia

extension MergeReport {
  /// The report for people.
  ///
  /// - Parameter database: The path of the result as it was typed, for the commands that are suggested.
  func lines(database: String, style: Style) -> [String] {
    let rows = "\(inserted.counted("row")) inserted, \(updated.grouped) updated, \(deleted.grouped) deleted"
    var lines = style.wrapped("\(style(database.escaped, .strong))  \(rows) in \(Elapsed(seconds))", hanging: 2)
    if !hasBase {
      lines += style.wrapped(
        "There is no base: rows that are equal are one, and others with the same key are conflicts.", hanging: 2)
    }
    for change in schemaChanges.prefix(style.listLimit) {
      lines += style.wrapped("schema: \(change.escaped)", indent: 2, hanging: 4)
    }
    if schemaChanges.count > style.listLimit {
      lines.append(style.rest(schemaChanges.count - style.listLimit, "change", indent: 2))
    }
    lines += unmergedLines(database: database, style: style)
    if isDryRun { lines += ["", "This was a dry run: nothing was changed."] }
    return lines
  }

  /// What was not merged, and what a person has to know and to decide.
  func unmergedLines(database: String, style: Style) -> [String] {
    let remarks = warnings.isEmpty ? [] : [""] + warnings.lines(style: style)
    return skipped.lines(heading: "Not merged:", style: style) + remarks
      + conflictLines(database: database, style: style)
  }

  private func conflictLines(database: String, style: Style) -> [String] {
    var lines: [String] = []
    if !schemaConflicts.isEmpty {
      lines += ["", style("\(schemaConflicts.count.counted("conflict")) in the schema:", .notable)]
      for conflict in schemaConflicts.prefix(style.listLimit) {
        lines += style.wrapped(conflict.description.escaped, indent: 2, hanging: 4)
      }
      if schemaConflicts.count > style.listLimit {
        lines.append(style.rest(schemaConflicts.count - style.listLimit, "conflict", indent: 2))
      }
    }
    guard conflicts > 0 else { return lines }
    let summary = ConflictSummary(conflictCounts)
    lines += ["", style("\(conflicts.counted("conflict")) of rows:", .notable)] + summary.lines(style: style)
    if isDryRun {
      let shown = Array(dryRunConflicts.prefix(style.conflictLimit))
      lines += [""] + shown.lines(style: style)
      return shown.count < conflicts ? lines + ["", style.rest(conflicts - shown.count, "conflict")] : lines
    }
    return lines
      + style.suggestion("See \(conflicts == 1 ? "it" : "them") with", "buckia conflicts \(database.shellQuoted)")
  }
}

extension MergeProgress {
  /// What happens, for the line of progress.
  var line: String {
    switch self {
    case .comparing(let progress): progress.line
    case .applying(let rows): "Merging \(rows.counted("change"))"
    }
  }
}
