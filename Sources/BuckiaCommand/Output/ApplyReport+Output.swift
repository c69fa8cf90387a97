import Buckia

extension ApplyReport {
  /// The report as `--json` has it.
  ///
  /// - Parameter failure: What stopped the work, if anything did.
  func json(failure: ErrorReport?) -> JSONValue {
    var object = JSONObject([
      .init("version", 1),
      .init("trust", .string(trust.rawValue)),
      .init("diffs", .array(diffs.map(\.json))),
      .init("ignored", .number(ignored)),
      .init("createdLedger", .bool(createdLedger)),
      .init("dryRun", .bool(isDryRun)),
      .init("outgoingFolders", .array(outgoingFolders.map { .string($0) })),
      .init("seconds", .real(seconds)),
    ])
    if let failure { object.append("error", failure.details) }
    return .object(object)
  }

  /// How it went, as an exit code.
  ///
  /// What was refused weighs more than what waits for a person. A diff refused by the policy `abort` does wait for one:
  /// with another policy it can be applied.
  ///
  /// - Parameters:
  ///   - failure: What stopped the work, if anything did.
  ///   - failsOnConflict: Whether conflicts alone ask for a person.
  func status(failure: ErrorReport?, failsOnConflict: Bool) -> ExitStatus {
    if let failure { return failure.status }
    if diffs.contains(where: { $0.state == .rejected && $0.code != .conflict }) { return .failed }
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
  /// - Parameter database: The database's path as it was typed, for the commands that are suggested.
  func lines(database: String, style: Style) -> [String] {
    var lines: [String] = []
    if diffs.isEmpty { lines.append("There is nothing to apply.") }
    var table = TextTable([
      "state", "file", "sender", .number("inserted"), .number("updated"), .number("deleted"), .number("conflicts"),
    ])
    for diff in diffs {
      table.add([
        .init(diff.state.rawValue, diff.state.role), .init(diff.name.escaped(limit: 60)),
        .init(diff.sender.escaped(limit: 40), .faint), .count(diff.inserted), .count(diff.updated),
        .count(diff.deleted), .count(diff.conflicts, .notable),
      ])
    }
    lines += table.lines(style: style, indent: 0)
    for diff in diffs { lines += diff.noteLines(style: style, isDryRun: isDryRun) }

    lines.append("")
    let applied = applied
    let rows = applied.reduce(0) { $0 + $1.inserted + $1.updated + $1.deleted }
    if isDryRun {
      lines.append("This was a dry run: nothing was changed. It would be \(rows.counted("row")).")
    } else {
      lines.append("\(rows.counted("row")) changed by \(applied.count.counted("file")) in \(Elapsed(seconds)).")
    }
    if migratedLedger && !isDryRun {
      lines.append("The ledger tables (buckia_…) in \(database.escaped) were brought to the present format.")
    }
    if createdLedger && !isDryRun { lines.append("The ledger tables (buckia_…) were made in \(database.escaped).") }
    if ignored > 0 {
      lines.append("\(ignored.counted("other file")) in the folder \(ignored == 1 ? "was" : "were") left alone.")
    }
    lines += removalLines
    lines.append("Trust: \(trust.explanation)")
    let conflicts = diffs.reduce(0) { $0 + $1.conflicts }
    if conflicts > 0 && !isDryRun {
      lines.append(
        style("\(conflicts.counted("conflict")).", .notable)
          + " See \(conflicts == 1 ? "it" : "them") with: buckia conflicts \(database.shellQuoted)")
    }
    return lines
  }

  /// What became of the files themselves.
  private var removalLines: [String] {
    let folders = Dictionary(grouping: removed, by: \.folder)
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
  fileprivate var json: JSONValue {
    [
      "id": .text(id?.description),
      "path": .string(path),
      "sender": .string(sender),
      "state": .string(state.rawValue),
      "inserted": .number(inserted),
      "updated": .number(updated),
      "deleted": .number(deleted),
      "conflicts": .number(conflicts),
      "omitted": .number(omitted),
      "schemaChanges": .array(schemaChanges.map { .string($0) }),
      "plan": .array(plan.map(\.json)),
      "heldParts": .number(heldParts),
      "reason": .text(reason),
      "code": .text(code?.rawValue),
      "removed": .bool(isRemoved),
      "warnings": .array(warnings.map { .string($0.shown) }),
      "remarks": .array(warnings.map(\.json)),
      "changedTables": .array(changedTables.map { .string($0) }),
    ]
  }

  /// The file's name without its folder.
  fileprivate var name: String { path.split(separator: "/").last.map(String.init) ?? path }

  /// The folder that the file is in; empty where the path says none.
  fileprivate var folder: String {
    path.utf8.lastIndex(of: UInt8(ascii: "/")).map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? ""
  }

  fileprivate func noteLines(style: Style, isDryRun: Bool) -> [String] {
    var notes: [String] = []
    if let reason { notes.append("\(style(state.rawValue, state.role)): \(reason.escaped)") }
    // What changes nothing here is of interest beforehand only.
    let shown = plan.filter { isDryRun || [.create, .add, .hold, .leaveOut].contains($0.action) }
    notes += shown.map { "schema: \($0.description.escaped)" }
    if omitted > 0 { notes.append("\(omitted.counted("change")) left out; the conflicts tell which") }
    if heldParts > 0 {
      notes.append("\(heldParts.counted("part")) kept until an upgrade of the app has made a place; apply does it then")
    }
    notes += warnings.map { "\(style("note", .notable)): \($0.shown.escaped)" }
    return notes.isEmpty ? [] : ["", style(name.escaped, .strong)] + notes.map { "  \($0)" }
  }
}

extension SchemaNote {
  fileprivate var json: JSONValue {
    [
      "action": .string(action.rawValue),
      "table": .string(table),
      "column": .text(column),
      "detail": .string(detail),
    ]
  }
}

extension DiffState {
  /// What the state means to the reader.
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
  /// The mode and what it means, for people.
  var explanation: String {
    switch self {
    case .any: "any (diff files of any origin are applied; change it with --trust known)"
    case .known: "known (only diff files signed by a known contact are applied)"
    }
  }
}
