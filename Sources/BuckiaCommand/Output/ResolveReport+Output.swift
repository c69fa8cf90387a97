import Buckia

extension ResolveReport {
  /// How it went, as an exit code: a row that was changed since waits for a person.
  ///
  /// - Parameter remembers: Whether the answers were to be kept as rules.
  func status(remembers: Bool) -> ExitStatus {
    if counts.refused > counts.changedSince { return .failed }
    if counts.refused > 0 { return .needsPerson }
    return remembers && counts.withoutRule > 0 ? .failed : .done
  }

  /// The report for people.
  ///
  /// - Parameter remembers: Whether the answers were to be kept as rules.
  func lines(remembers: Bool, style: Style) -> [String] {
    guard !conflicts.isEmpty else { return ["There are no such conflicts."] }
    // Those that need attention come first, where not all are shown.
    let shown = (conflicts.count > style.listLimit ? refused + resolved : conflicts).prefix(style.listLimit)
    var lines = shown.enumerated().flatMap { index, conflict in
      (index > 0 ? [""] : []) + conflict.lines(isDryRun: isDryRun, style: style)
    }
    if shown.count < counts.total { lines += ["", style.rest(counts.total - shown.count, "conflict")] }
    lines += [""] + style.wrapped(summary, hanging: 2)
    if remembers { lines += ruleLines(style: style) }
    for violation in violations.prefix(style.listLimit) {
      lines += style.wrapped("\(style("Note:", .notable)) a row was left so that \(violation.escaped)", hanging: 2)
    }
    if violations.count > style.listLimit { lines.append(style.rest(violations.count - style.listLimit, "such row")) }
    for warning in warnings {
      lines += style.wrapped("\(style("Note:", .notable)) \(warning.shown.escaped)", hanging: 2)
    }
    if refused.contains(where: \.canBeForced) {
      lines += style.wrapped("--force writes the row anyway.")
    }
    return lines
  }

  /// How many conflicts were resolved, in a sentence.
  var summary: String {
    let did = isDryRun ? "This was a dry run: nothing was changed. It would resolve" : "Resolved"
    let left =
      counts.refused == 0
      ? "" : "; \(counts.refused.counted("conflict")) stayed as \(counts.refused == 1 ? "it is" : "they are")"
    return "\(did) \(counts.resolved.counted("conflict")), \(counts.changed.counted("row")) changed\(left)."
  }

  /// What was remembered, and what could not be.
  func ruleLines(style: Style) -> [String] {
    var lines = rules.flatMap { style.wrapped("Remembered as rule \($0.id): \($0.sentence).", hanging: 2) }
    let without = counts.withoutRule
    if without > 0 {
      let reason =
        "no rule can decide \(without.counted("conflict")) of these: only where two versions of a row meet (data, conflict) is "
        + "there anything to choose"
      lines += style.wrapped("\(style("Note:", .notable)) \(reason)", hanging: 2)
    }
    return lines
  }
}

extension ResolvedConflict {
  /// What a person calls the row.
  var label: String? { (before ?? after).flatMap { RowLabel.text(of: $0) } }

  /// Whether `--force` helps.
  var canBeForced: Bool {
    [.rowChanged, .brokenReference, .repointsRows].contains(refusal?.code)
  }

  /// The conflict for people: the row before and after, or why it was not resolved.
  fileprivate func lines(isDryRun: Bool, style: Style) -> [String] {
    let name =
      table.isEmpty
      ? "" : "  \(style(table.escaped(limit: 60), .strong)), \(ConflictRecord.shownKey(key, label: label))"
    var lines = style.wrapped("\(style("#\(id)", .strong))\(name)", hanging: 4)
    if let refusal {
      lines += style.wrapped("\(style("Not resolved:", .bad)) \(refusal.reason.escaped).", indent: 2, hanging: 4)
      return lines + differenceLines(refusal.differences, style: style)
    }
    lines += style.wrapped("\(sentence(isDryRun: isDryRun)).", indent: 2, hanging: 4)
    if !unknownColumns.isEmpty {
      let columns = unknownColumns.map { $0.escaped(limit: 40) }.joined(separator: ", ")
      lines += style.wrapped("Not known, so left to their defaults: \(columns).", indent: 2, hanging: 4)
    }
    if !lostColumns.isEmpty {
      let columns = lostColumns.map { $0.escaped(limit: 40) }.joined(separator: ", ")
      lines += style.wrapped("Not in the table any more, so left out: \(columns).", indent: 2, hanging: 4)
    }
    return hasChanged ? lines + changeLines(style: style) : lines
  }

  /// What has become of the row, without a full stop.
  func sentence(isDryRun: Bool) -> String {
    let would = isDryRun ? "would be" : "was"
    return switch (before != nil, after != nil) {
    case _ where !hasChanged: "The row has these values already"
    case (false, _): "The row \(would) inserted"
    case (true, false): "The row \(would) deleted"
    case (true, true): "The row \(would) changed"
    }
  }

  private func changeLines(style: Style) -> [String] {
    var table = TextTable([.text("column"), "before", "after"])
    for (index, cell) in (before ?? after ?? []).enumerated() {
      let versions = [before?[index].value, after?[index].value]
      guard versions[0] != versions[1] else { continue }
      table.add([.init(cell.column.escaped(limit: 40))] + Self.cells(versions, [before != nil, after != nil], style))
    }
    return table.lines(style: style)
  }

  private func differenceLines(_ differences: [Difference], style: Style) -> [String] {
    guard !differences.isEmpty else { return [] }
    var table = TextTable([.text("column"), "known", "now"])
    for difference in differences {
      table.add(
        [.init(difference.column.escaped(limit: 40))]
          + Self.cells([difference.known, difference.present], [true, before != nil], style))
    }
    return table.lines(style: style)
  }

  private static func cells(_ versions: [ChangesetValue?], _ exist: [Bool], _ style: Style) -> [TextTable.Cell] {
    var shown = ChangesetValue.shown(versions.compactMap { $0 }, limit: style.isFull ? .max : 30)
    return zip(versions, exist).map { value, exists in
      guard exists else { return .init("no row", .faint) }
      return value == nil ? .init("·", .faint) : .init(shown.removeFirst())
    }
  }
}
