import Buckia

extension ConflictRecord {
  /// The details of the constraint that SQLite's message lacks, and the rows with the value.
  private func constraintLines(style: Style) -> [String] {
    var lines: [String] = []
    if let detail = constraint?.shown(beyond: reason ?? "") { lines += style.item(detail) }
    for other in others.prefix(style.listLimit) {
      lines += style.item("It is taken by the row with \(Self.shownKey(other))")
    }
    return lines
  }

  /// The person who has decided since.
  private func resolutionLines(style: Style) -> [String] {
    guard let resolution else {
      return rule.map { style.item("Decided by rule \($0).") } ?? []
    }
    let who = resolution.decidedBy.isEmpty ? "" : " by \(resolution.decidedBy.escaped(limit: 40))"
    let when = "\(UTCTime(unixMilliseconds: resolution.decidedAt))"
    let what = resolution.answer == .equal ? "Closed" : "Resolved"
    return style.wrapped(
      "\(style(what, .good))\(who), \(when): \(resolution.answer.explanation(ofMerge: isOfMerge)).", indent: 2,
      hanging: 4)
  }

  /// The row that is not there.
  private func parentLines(style: Style) -> [String] {
    guard let parent else { return [] }
    let key = Self.shownKey(parent.key)
    let cause = parent.conflict.map { "; it was left out, see #\($0)" } ?? ""
    return style.item("It refers to \(parent.table.escaped(limit: 60)), \(key)\(cause)")
  }

  /// Warnings on the record, a sentence each.
  var notes: [String] {
    let style = Style(isColored: false, width: .max)
    let lines = constraintLines(style: style) + parentLines(style: style) + resolutionLines(style: style)
    return [sentence] + (reason.map { [$0.escaped] } ?? [])
      + lines.map { String($0.drop { $0 == " " }) } + [origin]
  }

  /// The key of a row, followed by the row's name for people, unless the key contains it.
  static func shownKey(_ key: [Cell], label: String? = nil) -> String {
    let name = label.flatMap { text in key.contains { $0.value == .text(text) } ? nil : " (\(text.escaped))" } ?? ""
    return key.map { "\($0.column.escaped(limit: 40)) = \($0.value?.shown() ?? "?")" }.joined(separator: ", ") + name
  }

  /// True if it was met in a merge, which has OURS and THEIRS.
  var isOfMerge: Bool { mergedFile != nil }

  /// What happened.
  private var sentence: String {
    "\(kind.explanation(ofMerge: isOfMerge)); \(outcome.explanation(of: kind, ofMerge: isOfMerge))."
  }

  /// What its three versions are called: the row before both sides changed it, as it was here, and as the other side has it.
  private var versionNames: [String] {
    !isOfMerge ? ["before", "here", "incoming"] : ["BASE", "OURS", "THEIRS"]
  }

  /// Its origin: the other side of a merge, or the diff with its sender.
  private var origin: String {
    if let mergedFile { return "From THEIRS, \(mergedFile.escaped(limit: 64))" }
    return "From \(diff.escaped(limit: 64))\(sender.isEmpty ? "" : " (\(sender.escaped(limit: 40)))")"
  }

  /// The record for people: the event, then the three versions side by side, column by column; below each other in a
  /// narrow terminal.
  func lines(style: Style) -> [String] {
    let heading =
      "\(style("#\(id)", .strong))  \(style(table.escaped(limit: 60), .strong)), \(Self.shownKey(key, label: label))"
    var lines = style.wrapped(heading, hanging: 4)
    let origin = style(origin, .faint)
    let isOneLine = "\(sentence) \(origin)".visibleWidth + 2 <= style.width
    lines += isOneLine ? ["  \(sentence) \(origin)"] : style.wrapped(sentence, indent: 2) + ["  \(origin)"]
    if let reason { lines += style.wrapped(style(reason.escaped, .notable), indent: 2) }
    lines += constraintLines(style: style)
    lines += parentLines(style: style)
    lines += resolutionLines(style: style)
    let columns = columns.filter(isWorthShowing)
    let table = TextTable([.text("column")] + versionNames.map { .text($0) }, of: columns) { column in
      [.init(column.escaped(limit: 40))] + versions(of: column, limit: style.isFull ? .max : 40).map(\.cell)
    }
    if table.fits(style) { return lines + table.lines(style: style) }
    return lines + columns.flatMap { stackedLines(of: $0, style) }
  }

  /// A column and its versions, each in a line of its own.
  private func stackedLines(of column: String, _ style: Style) -> [String] {
    let indent = 4
    // The quotes, the widest name and the gap after it.
    let room = style.width - indent - 2 - (versionNames.map(\.count).max() ?? 0) - 2
    let table = TextTable(["", ""], of: versions(of: column, limit: style.isFull ? .max : room)) {
      [.init($0.name, .faint), $0.cell]
    }
    return ["  \(style(column.escaped(limit: 60), .faint))"] + table.lines(style: style, indent: indent)
  }

  /// The three versions of a column.
  private func versions(of column: String, limit: Int) -> [(name: String, cell: TextTable.Cell)] {
    let versions = Array(zip(versionNames, [base, local, incoming]))
    let values = versions.map { Self.value(of: column, in: $0.1) }
    var shown = ChangesetValue.shown(values.compactMap { $0 }, limit: limit)
    return zip(versions, values).map { version, value in
      guard version.1 != nil else { return (version.0, .init("no row", .faint)) }
      return (version.0, value == nil ? .init("·", .faint) : .init(shown.removeFirst()))
    }
  }

  /// All columns of the three versions, in order.
  var columns: [String] {
    var columns: [String] = []
    for cell in (local ?? []) + (incoming ?? []) + (base ?? []) where !columns.contains(cell.column) {
      columns.append(cell.column)
    }
    return columns
  }

  /// True if the versions differ in a column: the others would only distract.
  func isWorthShowing(_ column: String) -> Bool {
    let rows = [base, local, incoming].compactMap { $0 }
    let values = rows.compactMap { Self.value(of: column, in: $0) }
    // A single version is shown whole, without its key, which is above.
    guard rows.count > 1 else { return !key.contains { $0.column == column } }
    return values.contains { $0 != values.first }
  }

  static func value(of column: String, in cells: [Cell]?) -> ChangesetValue? {
    cells?.first { $0.column == column }?.value
  }
}

extension [ConflictRecord] {
  /// The records for people, with a line between them.
  func lines(style: Style) -> [String] {
    enumerated().flatMap { index, record in (index > 0 ? [""] : []) + record.lines(style: style) }
  }
}

extension ConflictKind {
  fileprivate func explanation(ofMerge isOfMerge: Bool) -> String {
    switch self {
    case .data: isOfMerge ? "OURS and THEIRS have changed the row" : "The row was changed here, too"
    case .notFound: "The row is not \(isOfMerge ? "in OURS" : "here"), or not any more"
    case .conflict: "Another row with this key is \(isOfMerge ? "in OURS" : "here already")"
    case .constraint: "A constraint of the table refuses the row"
    case .foreignKey: "The row refers to a row that is missing here, or that is another one here"
    }
  }
}

extension ConflictAnswer.Kind {
  func explanation(ofMerge isOfMerge: Bool) -> String {
    switch self {
    case .local: isOfMerge ? "the row of OURS" : "the local version"
    case .incoming: isOfMerge ? "the row of THEIRS" : "the incoming version"
    case .values: "values that were typed"
    case .deletion: "no row"
    case .both: "both rows, one of them with a new key"
    case .same: "the \(isOfMerge ? "row of OURS" : "local row") with the same UNIQUE value"
    case .equal: "both sides have the same values now"
    }
  }
}

extension ViolatedConstraint {
  /// The facts that a message lacks: the name and the expression.
  fileprivate func shown(beyond message: String) -> String? {
    var parts: [String] = []
    if let name, !message.contains(name) { parts.append("index \(name.escaped(limit: 60))") }
    if let expression, !message.contains(expression) { parts.append(expression.escaped(limit: 200)) }
    return parts.isEmpty ? nil : "The constraint is \(parts.joined(separator: ": "))"
  }
}

extension ConflictOutcome {
  func explanation(of kind: ConflictKind, ofMerge isOfMerge: Bool = false) -> String {
    switch self {
    // Where the row is missing, no local row was kept.
    case .keptLocal where kind == .foreignKey: Self.omitted.explanation(of: kind, ofMerge: isOfMerge)
    case .keptLocal: isOfMerge ? "the row of OURS was kept" : "the local row was kept"
    case .tookIncoming: isOfMerge ? "the row of THEIRS was taken" : "the incoming version was taken"
    case .merged:
      "columns changed on both sides kept the \(isOfMerge ? "values of OURS" : "local values"), the others were taken"
    case .resolved: "the app's resolver wrote the row"
    case .omitted: "the change\(isOfMerge ? " of THEIRS" : "") was not applied"
    case .reported: "the row was kept unchanged"
    }
  }
}

extension [ConflictCount] {
  /// The number of conflicts.
  var total: Int { reduce(0) { $0 + $1.count } }

  /// A table of the numbers.
  ///
  /// - Parameter isOfMerge: True if all of them were met in a merge.
  func lines(ofMerge isOfMerge: Bool = false, style: Style) -> [String] {
    TextTable.lines(
      [.text("table"), "kind", .number("conflicts"), .prose("")], of: self, "line", style: style
    ) { entry in
      [
        .init(entry.table.escaped(limit: 60)), .init(entry.kind.rawValue), .count(entry.count, .notable),
        .init(entry.outcome.explanation(of: entry.kind, ofMerge: isOfMerge), .faint),
      ]
    }
  }
}

extension ConflictRule {
  /// The text of the rule, without a full stop.
  var sentence: String {
    let columns = question.columns.listed()
    let version = answer == .local ? "keep the local version" : "take the incoming version"
    let article = question.operation == .delete ? "a" : "an"
    return
      "when \(article) \(question.operation.name) conflicts with a row of \(question.table.text.escaped(limit: 60))"
      + (columns.isEmpty ? "" : " in \(columns)") + ", \(version)"
  }

  /// The rule for people.
  func lines(style: Style) -> [String] {
    let who = decidedBy.isEmpty ? "" : " by \(decidedBy.escaped(limit: 40))"
    let origin = "Decided\(who) at #\(conflict), \(UTCTime(unixMilliseconds: decidedAt))"
    return style.wrapped("\(style("Rule \(id)", .strong))  \(sentence).", hanging: 4)
      + style.item(style(origin, .faint))
  }
}
