import Buckia

extension ApplyReport {
  /// The report as `--json` has it.
  ///
  /// - Parameter failure: The error that stopped the work, if any.
  func json(failure: ErrorReport?) -> JSONValue { json(stoppedBy: failure?.failure) }

  /// How it went, as an exit code.
  ///
  /// A refusal is more important than an open decision. A diff refused by the policy `abort` also waits for a decision:
  /// with another policy it can be applied.
  ///
  /// - Parameters:
  ///   - failure: The error that stopped the work, if any.
  ///   - failsOnConflict: True if conflicts alone ask for a person.
  func status(failure: ErrorReport?, failsOnConflict: Bool) -> ExitStatus {
    if let failure { return failure.status }
    if diffs.contains(where: { $0.state == .rejected && $0.code != .conflict }) { return .failed }
    if answers.contains(where: { $0.state == .refused }) { return .failed }
    let asksPerson = diffs.contains { diff in
      switch diff.state {
      case .waiting, .held, .quarantined, .rejected: true
      case .applied: failsOnConflict && diff.conflicts > 0
      case .alreadyApplied: false
      }
    }
    return asksPerson ? .needsPerson : .done
  }

  /// The report for people.
  ///
  /// - Parameter database: The typed path of the database, for the suggested commands.
  func lines(database: String, style: Style) -> [String] {
    var lines = style.listed(answers, "answer", indent: 0) {
      $0.lines(database: database, style: style, isDryRun: isDryRun) + [""]
    }
    lines += diffs.isEmpty ? ["There is nothing\(answers.isEmpty ? "" : " else") to apply."] : tableLines(style: style)
    lines += noteLines(style: style)
    if isDryRun { lines += dryRunConflictLines(style: style) }
    lines.append("")
    lines += summaryLines(style: style)
    lines += ledgerLines(database: database, style: style)
    lines += limitLines(database: database, style: style)
    lines += folderLines(database: database, style: style)
    lines += snapshotLines(database: database, style: style)
    lines += style.wrapped("Trust: \(trust.explanation)", hanging: 2)
    lines += warnings.lines(style: style)
    let conflicts = diffs.reduce(0) { $0 + $1.conflicts }
    let ruled = diffs.reduce(0) { $0 + $1.decidedByRule }
    if ruled > 0 {
      let were = isDryRun ? "would be" : ruled == 1 ? "was" : "were"
      lines += style.wrapped("\(ruled.counted("conflict")) \(were) decided by rules.", hanging: 2)
    }
    return lines + (isDryRun ? [] : style.advice(onConflicts: conflicts, in: database))
  }

  /// The warnings on the files; equal ones of several files are combined.
  private func noteLines(style: Style) -> [String] {
    let groups = diffs.map { (name: $0.name, notes: $0.noteLines(style: style, isDryRun: isDryRun)) }
      .filter { !$0.notes.isEmpty }.grouped(by: \.notes)
    let lines = groups.prefix(style.listLimit).flatMap { notes, group -> [String] in
      let files = group.map(\.name)
      let shown = files.prefix(style.isFull ? .max : 3).map(\.escaped).joined(separator: ", ")
      let rest = files.count > 3 && !style.isFull ? " and \((files.count - 3).grouped) more" : ""
      return [""] + style.wrapped(style(shown + rest, .strong), hanging: 2) + notes
    }
    let left = groups.dropFirst(style.listLimit).reduce(0) { $0 + $1.elements.count }
    return lines + (left > 0 ? ["", style.rest(left, "file with notes")] : [])
  }

  /// The files in a table. If there are many, those that were not simply applied are first.
  private func tableLines(style: Style) -> [String] {
    let columns: [TextTable.Column] = .changes(
      after: ["state", "file", .text("sender")], before: [.number("conflicts")])
    var sorted = diffs
    if diffs.count > style.listLimit {
      let isUsual = { (diff: DiffOutcome) in diff.state == .applied || diff.state == .alreadyApplied }
      sorted = diffs.filter { !isUsual($0) } + diffs.filter(isUsual)
    }
    return TextTable.lines(columns, of: sorted, "file", style: style, indent: 0) { diff in
      [
        .init(diff.state.rawValue, diff.state.role), .init(diff.name.escaped(limit: 60)),
        .init(diff.sender.escaped(limit: 40), .faint), .count(diff.inserted), .count(diff.updated),
        .count(diff.deleted), .count(diff.conflicts, .notable),
      ]
    }
  }

  /// The conflicts that a dry run would have recorded.
  private func dryRunConflictLines(style: Style) -> [String] {
    guard !dryRunConflicts.isEmpty else { return [] }
    let shown = Array(dryRunConflicts.prefix(style.conflictLimit))
    let all = dryRunConflictCounts
    var lines = ["", style("It would record \(all.total.counted("conflict")):", .notable), ""]
    lines += shown.lines(style: style)
    guard shown.count < all.total else { return lines }
    lines += ["", style.rest(all.total - shown.count, "conflict")]
    return lines + all.lines(style: style)
  }

  private func summaryLines(style: Style) -> [String] {
    // The known parts of a held file have been applied.
    let written = diffs.filter { $0.state == .applied || $0.state == .held }
    let rows = written.reduce(0) { $0 + $1.inserted + $1.updated + $1.deleted }
    if isDryRun {
      return ["This was a dry run: nothing was changed. It would be \(rows.counted("row"))."]
    }
    return ["\(rows.counted("row")) changed by \(written.count.counted("file")) in \(Elapsed(seconds))."]
  }

  private func ledgerLines(database: String, style: Style) -> [String] {
    guard !isDryRun, createdLedger else { return [] }
    return style.wrapped("The ledger tables (buckia_…) were made in \(database.escaped).", hanging: 2)
  }

  /// The copy that the next diff is made from.
  private func snapshotLines(database: String, style: Style) -> [String] {
    guard let snapshot else { return [] }
    let next =
      switch snapshot.unsentChanges {
      case nil: "it is the first one, so the changes made here before it are not in your next diff"
      case 0: "all changes made here have been sent"
      case let count?:
        "your next diff has \(count.counted("change")) made here and not sent yet"
      }
    var lines = style.wrapped(
      "\(snapshot.path.escaped) has the state of the database that your recipients have (\(ByteCount(Int(snapshot.bytes)))); \(next).",
      hanging: 2)
    if wasWrittenMeanwhile {
      let warning = "another program has written to the database meanwhile; its changes are not in your next diff"
      lines += style.note(warning)
    }
    return lines
      + style.suggestion("Your next diff", "buckia diff \(snapshot.path.shellQuoted) \(database.shellQuoted)")
  }

  /// How files are let through that bring too much.
  private func limitLines(database: String, style: Style) -> [String] {
    let files = diffs.filter { $0.code == .overLimit }
    guard !files.isEmpty else { return [] }
    let lines = style.wrapped(
      "\(files.count.counted("file")) \(files.count == 1 ? "brings" : "bring") more than is applied without being asked for. If the sender means it, let \(files.count == 1 ? "it" : "each") through:",
      hanging: 2)
    return lines
      + style.listed(files, "file", limit: style.fileLimit) {
        ["  buckia apply \(database.shellQuoted) \($0.path.shellQuoted)"]
      }
  }

  /// What of the folders was not taken.
  private func folderLines(database: String, style: Style) -> [String] {
    var lines: [String] = []
    if ignored > 0 {
      lines.append("\(ignored.counted("other file")) in the folder \(ignored == 1 ? "was" : "were") left alone.")
    }
    lines += removalLines.flatMap { style.wrapped($0, hanging: 2) }
    guard !misnamed.isEmpty else { return lines }
    let isOne = misnamed.count == 1
    lines += style.wrapped(
      style(
        isOne
          ? "One of them is a diff file or a changeset under another name than its id. To apply it, name it:"
          : "\(misnamed.count.grouped) of them are diff files or changesets under another name than their id. To apply them, "
            + "name them:", .notable),
      hanging: 2)
    return lines
      + style.listed(misnamed, "file", limit: style.fileLimit) {
        ["  buckia apply \(database.shellQuoted) \($0.shellQuoted)"]
      }
  }

  /// The results of the files themselves.
  private var removalLines: [String] {
    let folders = Dictionary(grouping: removed, by: \.path.folderOfPath)
    var lines = folders.sorted { $0.key < $1.key }.map { folder, files in
      "Removed \(files.count.counted("file"))\(folder.isEmpty ? "" : " from \(folder.escaped)"): "
        + "\(files.count == 1 ? "it was" : "they were") applied."
    }
    for folder in outgoingFolders {
      lines.append("Nothing was removed from \(folder.escaped): it holds files that were made from this database.")
    }
    return lines
  }
}

extension DiffOutcome {
  /// The file's name without its folder.
  fileprivate var name: String { path.fileName }

  fileprivate func noteLines(style: Style, isDryRun: Bool) -> [String] {
    var notes: [String] = []
    if let reason {
      notes += style.item("\(style(state.rawValue, state.role)): \(reason.escaped)")
    }
    // What changes nothing here is of interest beforehand only.
    notes += plan.filter {
      isDryRun || [.create, .add, .hold, .leaveOut, .drop, .rebuild, .replace].contains($0.action)
    }.lines(style: style)
    if omitted > 0 {
      notes.append("  \(omitted.counted("change")) not applied; see the conflicts")
    }
    // A failure in a known place has its reason above.
    if heldParts > 0, code == nil {
      notes += style.item(
        "\(heldParts.counted("part")) kept until an upgrade of the app has made a place; apply does it then")
    }
    notes += warnings.lines("note:", style: style, indent: 2)
    return notes
  }
}

extension [SchemaNote] {
  /// The results of tables and columns; equal ones are combined if there are many.
  fileprivate func lines(style: Style) -> [String] {
    guard count > style.warningLimit else {
      return flatMap { style.item("schema: \($0.description.escaped)") }
    }
    var list = GroupedList()
    for note in self {
      let verb = note.action == .leaveOut ? "leave out" : note.action.rawValue
      list.add(
        note.column.map { "\(note.table).\($0)" } ?? note.table,
        "schema: \(verb)\(note.detail.isEmpty ? "" : ": \(note.detail)")")
    }
    return list.lines("change", style: style)
  }
}

extension DiffState {
  /// The meaning of the state for the reader.
  var role: Style.Role? {
    switch self {
    case .applied: .good
    case .alreadyApplied: .faint
    case .waiting, .held, .quarantined: .notable
    case .rejected: .bad
    }
  }
}

extension TrustMode {
  /// The mode and its meaning, for people.
  var explanation: String {
    switch self {
    case .any: "any (diff files of any origin are applied; change it with --trust known)"
    case .known: "known (only diff files signed by a trusted contact are applied)"
    }
  }
}
