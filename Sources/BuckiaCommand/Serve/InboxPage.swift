import Buckia
import BuckiaBytes
import BuckiaFormat

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The page of the inbound folders: their files, the state of each, and the possible actions.
struct InboxPage {
  let database: ServedDatabase
  let site: PageSite

  /// Writes the page.
  func write(on page: PageWriter) throws {
    let listings = try database.folders.map { try $0.files() }
    let shown = listings.flatMap { $0.prefix(ServedDatabase.filesOnPage) }
    let entries = try database.manager.lastLogEntries(ofFiles: shown.map { ($0.name, $0.id) })
    var frame = PageFrame(
      title: "Inbound folders of \(database.name)", facts: [("database", database.name)], noun: "files")
    frame.site = site
    try frame.write(on: page) {
      if database.folders.isEmpty {
        try page.write("<p>No inbound folder was named: buckia serve DB --inbound FOLDER</p>\n")
      }
      var first = 1
      for (place, files) in listings.enumerated() {
        try write(files, of: place, entries, from: first, on: page)
        first += min(files.count, ServedDatabase.filesOnPage)
      }
    }
  }

  private func write(
    _ files: [InboundFolder.File], of place: Int, _ entries: [String: LedgerEntry], from first: Int,
    on page: PageWriter
  ) throws {
    let folder = database.folders[place]
    let left = files.count - ServedDatabase.filesOnPage
    let rest = left > 0 ? "; the last \(left.grouped) of them are not on this page" : ""
    let note = files.isEmpty ? "There is nothing in it to apply." : "\(files.count.counted("file"))\(rest)"
    let list = FileList(title: folder.path, id: "folder-\(place)", note: note, columns: ["Made", "Size", "Sender"])
    if !files.isEmpty, !database.isReadOnly { try page.write(formForAll(of: place, named: folder.path)) }
    let shown = files.prefix(ServedDatabase.filesOnPage)
    try list.write(shown.map { line(for: $0, of: place, entries[$0.name]) }, from: first, on: page)
  }

  private func formForAll(of place: Int, named name: String) -> Markup {
    """
    <form method="post" action="\(database.address("inbox", [("folder", "\(place)")]))">
    <button type="submit" name="do" value="apply">Apply everything in \(name)</button>
    <button type="submit" name="do" value="try">Dry run of everything in \(name)</button>
    </form>

    """
  }

  private func line(
    for file: InboundFolder.File, of place: Int, _ entry: LedgerEntry?
  ) -> FileList.Line {
    let fields = [(name: "folder", value: "\(place)"), (name: "name", value: file.name)]
    var line = FileList.Line(
      tone: entry?.state.tone ?? .notable, label: file.isAnswer ? "answer" : entry?.state.rawValue ?? "new",
      name: file.name,
      cells: [
        Markup(text: "\(UTCTime(unixSeconds: file.id.unixSeconds))"),
        Markup(text: "\(ByteCount(Int(file.identity.byteCount)))"), Markup(text: entry?.sender ?? sender(of: file)),
      ])
    if let reason = entry?.reason { line.notes.append(reason) }
    if entry?.state == .applied { line.notes.append("It stays here until everything in the folder is applied.") }
    if file.isAnswer { line.notes.append("The answer to an invitation, which is taken with the folder.") }
    var actions: Markup = ""
    if !file.isAnswer {
      actions += """
        <p><a href="\(database.address("file", fields))">Look at its changes\
        <span class="unseen">: \(file.name)</span></a></p>

        """
    }
    if !database.isReadOnly { actions += Self.form(database.address("inbox", fields), file) }
    line.actions = actions
    return line
  }

  /// The signer of a file that has not been applied yet.
  private func sender(of file: InboundFolder.File) -> String {
    guard !file.isAnswer else { return "–" }
    return DiffInspection.sender(
      of: file.path, home: database.manager.home, decryption: database.options.decryption) ?? "unknown"
  }

  /// The possible actions on one file.
  static func form(_ address: String, _ file: InboundFolder.File) -> Markup {
    let name: Markup = "<span class=\"unseen\"> \(file.name)</span>"
    return """
      <form method="post" action="\(address)">
      <button type="submit" name="do" value="apply">Apply it\(name)</button>
      <button type="submit" name="do" value="try">Dry run\(name)</button>
      <button type="submit" name="do" value="set-aside">Set it aside\(name)</button>
      </form>

      """
  }
}

/// Applies or removes files of the inbound folders, as requested by a form.
extension ServedDatabase {
  /// Settles a file, or a folder.
  ///
  /// - Parameters:
  ///   - folder: The folder.
  ///   - name: The file's name; nil for all that are in the folder.
  ///   - action: The action.
  /// - Returns: The result.
  func settle(_ folder: InboundFolder?, _ name: String?, _ action: String?) -> PageMessage {
    // `try` only shows the outcome.
    guard let folder, let action, ["apply", "try", "set-aside"].contains(action) else {
      return PageMessage(.bad, [ValueForm.Refusal.unclear.description])
    }
    guard let name else {
      return action == "set-aside"
        ? PageMessage(.bad, ["Only single files can be set aside."])
        : apply(folder.path, isDryRun: action == "try")
    }
    guard let file = folder.file(named: name) else {
      return PageMessage(.bad, ["\(name) is not in \(folder.path) any more. Nothing was changed."])
    }
    // A file that was named by itself is not moved: its folder may be an outbox.
    guard action == "set-aside" else { return apply(file.path, isDryRun: action == "try") }
    do {
      let target = try folder.setAside(file)
      return PageMessage(.good, ["\(file.name) was set aside: it is \(target) now, and not applied with the folder."])
    } catch {
      return PageMessage(.bad, [ErrorReport(error).message])
    }
  }

  private func apply(_ path: String, isDryRun: Bool) -> PageMessage {
    var options = options
    options.isDryRun = isDryRun
    return .telling {
      do {
        return try manager.processInboundChanges([path], options: options).message(failure: nil, on: self)
      } catch let interruption as ApplyInterruption {
        return interruption.report.message(failure: ErrorReport(interruption.cause), on: self)
      }
    }
  }
}

extension ApplyReport {
  /// The results of the files, for the next page.
  ///
  /// - Parameters:
  ///   - failure: The error that stopped the work, if any.
  ///   - database: The database with the conflicts.
  func message(failure: ErrorReport?, on database: ServedDatabase) -> PageMessage {
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
      ? (name: "Look at the conflicts", path: database.address("conflicts")) : nil
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
