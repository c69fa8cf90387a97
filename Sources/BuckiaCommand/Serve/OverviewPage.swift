import Buckia

/// The first page: the state of the database, open decisions, and arrived files.
struct OverviewPage {
  let database: ServedDatabase
  let site: PageSite

  /// Writes the page.
  func write(on page: PageWriter) throws {
    let status = try database.manager.status()
    let (entries, total) = try database.manager.log(newest: ServedDatabase.entriesOnPage)
    let listings = try database.folders.map { try $0.files() }
    var frame = PageFrame(
      title: "Where \(database.name) stands", facts: facts(of: status), noun: "files")
    frame.site = site
    try frame.write(on: page) {
      try page.write(next(status, listings))
      try writeWarnings(status, on: page)
      try writeShares(status.shares, on: page)
      try writeStreams(status.streams, on: page)
      try writeLog(entries, of: total, listings, on: page)
    }
  }

  private func facts(of status: StatusReport) -> [(name: String, value: String)] {
    var facts = [(name: "database", value: database.name)]
    if let ledger = status.ledger { facts.append(("files", ledger.summary)) }
    if let time = status.recordedAt { facts.append(("last entry", "\(UTCTime(unixMilliseconds: time))")) }
    facts.append(("conflicts", "\(status.openConflicts.grouped) open, \(status.conflicts.grouped) in all"))
    if let trust = status.trust { facts.append(("trust", trust.rawValue)) }
    if let dataset = status.dataset { facts.append(("dataset", "\(dataset)")) }
    if let replica = status.replica { facts.append(("replica", replica.id)) }
    if database.isReadOnly { facts.append(("changes", "none can be made from these pages (--read-only)")) }
    return facts
  }

  // MARK: What waits for a person

  private func next(_ status: StatusReport, _ listings: [[InboundFolder.File]]) -> Markup {
    var steps: Markup = ""
    if status.openConflicts > 0 {
      steps += """
        <p><a href="\(database.address("conflicts"))">Decide \(status.openConflicts.counted("open conflict"))</a></p>

        """
    }
    for (place, files) in listings.enumerated() where !files.isEmpty {
      steps += """
        <p><a href="\(database.address("inbox"))#folder-\(place)">Look at \(files.count.counted("file")) \
        in \(database.folders[place].path)</a></p>

        """
    }
    if steps.utf8.isEmpty { steps = "<p>Nothing waits for you.</p>\n" }
    return "<section aria-labelledby=\"next\">\n<h2 id=\"next\">What waits for you</h2>\n\(steps)</section>\n"
  }

  private func writeWarnings(_ status: StatusReport, on page: PageWriter) throws {
    var warnings = status.warnings.map(\.shown)
    if let notice = status.replica?.standing.notice { warnings.append(notice) }
    if status.ledger == nil { warnings.append("The database has no ledger: nothing has been applied to it yet.") }
    guard !warnings.isEmpty else { return }
    try page.write("<section aria-labelledby=\"warnings\">\n<h2 id=\"warnings\">Worth knowing</h2>\n")
    for note in warnings { try page.write("<p>\(note)</p>\n") }
    try page.write("</section>\n")
  }

  // MARK: Tables

  private func writeShares(_ shares: [ShareState], on page: PageWriter) throws {
    try write(
      shares, "shares", "You share", "What is shared with whom", ["With", "What", "Sent", "Applied there"],
      "more share",
      on: page
    ) { share in
      """
      <tr><th scope="row">\(share.recipients.joined(separator: ", "))</th><td data-name="What">\(share.subject)</td>\
      <td data-name="Sent">\(share.sequence.grouped)</td><td data-name="Applied there">\(share.progress)</td></tr>

      """
    }
  }

  private func writeStreams(_ streams: [StreamState], on page: PageWriter) throws {
    try write(
      streams, "streams", "Others share with you", "Streams of diff files",
      ["Sender", "What", "Received", "Newest made", "Note"], "more stream", on: page
    ) { stream in
      let age = stream.age.map { "\(Age(seconds: $0)) ago" } ?? "–"
      return """
        <tr><th scope="row">\(stream.sender)</th><td data-name="What">\(stream.tables.summary)</td>\
        <td data-name="Received">\(stream.sequence.grouped)</td><td data-name="Newest made">\(age)</td>\
        <td>\(stream.note)</td></tr>

        """
    }
  }

  /// Writes a section with a table; nothing if it would be empty.
  private func write<Item>(
    _ items: [Item], _ id: String, _ title: String, _ caption: String, _ columns: [String], _ noun: String,
    on page: PageWriter, row: (Item) -> Markup
  ) throws {
    guard !items.isEmpty else { return }
    try page.write(
      """
      <section aria-labelledby="\(id)">
      <h2 id="\(id)">\(title)</h2>
      <table class="files"><caption class="unseen">\(caption)</caption>
      <thead><tr>\(Markup(columns) { "<th scope=\"col\">\($0)</th>" })</tr></thead>
      <tbody>

      """)
    for item in items.prefix(Self.streamLimit) { try page.write(row(item)) }
    try page.write("</tbody></table>\n")
    let left = items.count - Self.streamLimit
    if left > 0 { try page.write("<p class=\"rest\">\(left.counted(noun))</p>\n") }
    try page.write("</section>\n")
  }

  private static let streamLimit = 50

  private func writeLog(
    _ entries: [LedgerEntry], of total: Int, _ listings: [[InboundFolder.File]], on page: PageWriter
  ) throws {
    let left = total - entries.count
    let rest = left > 0 ? "; \(left.counted("older file")) not on this page" : ""
    let note =
      total == 0 ? "No diff file has arrived yet." : "\(total.counted("file")), the newest first\(rest)"
    let list = FileList(
      title: "The log", id: "log", note: note,
      columns: ["When", "Sender", "Inserted", "Updated", "Deleted", "Conflicts"])
    let files = addresses(of: listings)
    try list.write(entries.reversed().map { line(of: $0, files) }, on: page)
  }

  /// The pages with the changes of files that are still in an inbound folder.
  private func addresses(of listings: [[InboundFolder.File]]) -> [KSUID: String] {
    var found: [KSUID: String] = [:]
    for (place, files) in listings.enumerated() {
      for file in files where !file.isAnswer {
        found[file.id] = database.address("file", [("folder", "\(place)"), ("name", file.name)])
      }
    }
    return found
  }

  private func line(of entry: LedgerEntry, _ files: [KSUID: String]) -> FileList.Line {
    let name = entry.diff?.description ?? entry.file
    var conflicts: Markup = "–"
    if entry.conflicts > 0 {
      let address = database.address(
        "conflicts", [("diff", entry.diff?.description ?? entry.digest), ("state", "all")])
      conflicts = "<a href=\"\(address)\">\(entry.conflicts.counted("conflict"))</a>"
    }
    func number(_ count: Int) -> Markup { count == 0 ? "–" : "\(count.grouped)" }
    var line = FileList.Line(
      tone: entry.state.tone, label: entry.state.rawValue, name: name,
      cells: [
        Markup(text: "\(UTCTime(unixMilliseconds: entry.recordedAt))"), Markup(text: entry.sender),
        number(entry.inserted), number(entry.updated), number(entry.deleted), conflicts,
      ], notes: (entry.reason ?? entry.undoes.map { "undoes \($0)" }).map { [$0] } ?? [])
    var actions: Markup = ""
    if let address = entry.diff.flatMap({ files[$0] }) {
      actions += "<p><a href=\"\(address)\">Look at its changes<span class=\"unseen\">: \(name)</span></a></p>\n"
    }
    if !database.isReadOnly, entry.state == .applied, entry.reason == nil {
      actions += """
        <form method="post" action="\(database.address("undo", [("diff", entry.diff?.description ?? entry.digest)]))">
        <button type="submit">Undo it<span class="unseen"> \(name)</span></button>
        </form>

        """
    }
    if !actions.utf8.isEmpty { line.actions = actions }
    return line
  }
}

extension DiffState {
  /// The meaning of the state for the reader.
  var tone: FileList.Tone {
    switch self {
    case .applied, .alreadyApplied: .good
    case .waiting, .held, .quarantined: .notable
    case .rejected: .bad
    }
  }
}
