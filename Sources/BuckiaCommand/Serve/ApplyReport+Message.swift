import Buckia

extension ApplyReport {
  /// What has become of the files, for the page that comes next.
  ///
  /// - Parameters:
  ///   - failure: What stopped the work, if anything did.
  ///   - addresses: Where the conflicts are.
  func message(failure: ErrorReport?, _ addresses: SiteAddresses) -> PageMessage {
    var lines: [String] = []
    if isDryRun { lines.append("This was a dry run: nothing was changed.") }
    if diffs.isEmpty, answers.isEmpty { lines.append("There is nothing to apply.") }
    let news = diffs.filter { $0.state != .alreadyApplied }
    lines += news.prefix(Self.limit).flatMap { Self.lines(of: $0, isDryRun) }
    if news.count > Self.limit {
      lines.append("\((news.count - Self.limit).counted("more file")); the log has all of them.")
    }
    let known = diffs.count - news.count
    if known > 0 { lines.append("\(known.counted("file")) had been applied before.") }
    for answer in answers.prefix(Self.limit) {
      lines.append("\(answer.path): \(answer.state.rawValue)\(answer.reason.map { ": \($0)" } ?? "").")
    }
    lines += outgoingFolders.map {
      "Nothing was removed from \($0): it holds files that were made from this database."
    }
    lines += misnamed.prefix(Self.limit).map { "\($0) goes by another name than its id, and was left alone." }
    lines += warnings.prefix(Self.limit).map { "Note: \($0.shown)" }
    if let failure { lines.append("The work has stopped: \(failure.message)") }
    let conflicts = diffs.reduce(0) { $0 + $1.conflicts }
    let link =
      conflicts > 0 && !isDryRun
      ? (name: "Look at the conflicts", path: addresses.address("conflicts")) : nil
    return PageMessage(status(failure: failure, failsOnConflict: false) == .done ? .good : .bad, lines, link: link)
  }

  private static let limit = 20

  private static func lines(of diff: DiffOutcome, _ isDryRun: Bool) -> [String] {
    let name = diff.path.fileName
    let verb = isDryRun ? "would be \(diff.state.rawValue)" : diff.state.rawValue
    var line = "\(name): \(verb)"
    if diff.state == .applied || diff.state == .held {
      let rows = [(diff.inserted, "inserted"), (diff.updated, "updated"), (diff.deleted, "deleted")]
      let shown = rows.filter { $0.0 > 0 }.map { "\($0.0.grouped) \($0.1)" }
      line += shown.isEmpty ? ", no row changed" : ", rows: \(shown.joined(separator: ", "))"
      if diff.conflicts > 0 { line += "; \(diff.conflicts.counted("conflict"))" }
      if diff.decidedByRule > 0 { line += ", \(diff.decidedByRule.grouped) decided by rules" }
    }
    return ["\(line).\(diff.reason.map { " \($0)" } ?? "")"] + diff.warnings.map { "Note: \($0.shown)" }
  }
}
