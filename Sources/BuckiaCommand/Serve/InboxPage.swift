import Buckia

/// The page of the inbound folders: what lies in them, how each file has fared so far, and what can be done about it.
struct InboxPage {
  let database: ServedDatabase
  let addresses: SiteAddresses
  let site: PageSite

  /// Writes the page.
  func write(on page: PageWriter) throws {
    let listings = try database.folders.map { try $0.files() }
    let shown = listings.flatMap { $0.prefix(ServedDatabase.filesOnPage) }
    let entries = try database.manager.lastLogEntries(ofFiles: shown.map { ($0.name, $0.id) })
    var frame = PageFrame(
      title: "Inbound folders of \(database.name)", facts: [("database", database.name)], noun: "files", counts: [],
      tables: [])
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
    let remark = files.isEmpty ? "There is nothing in it to apply." : "\(files.count.counted("file"))\(rest)"
    let list = FileList(title: folder.path, id: "folder-\(place)", remark: remark, columns: ["Made", "Size", "Sender"])
    if !files.isEmpty, !database.isReadOnly { try page.write(formForAll(of: place, named: folder.path)) }
    let shown = files.prefix(ServedDatabase.filesOnPage)
    try list.write(shown.map { line(for: $0, of: place, entries[$0.name]) }, from: first, on: page)
  }

  private func formForAll(of place: Int, named name: String) -> Markup {
    """
    <form method="post" action="\(addresses.address("inbox", [("folder", "\(place)")]))">
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
        Markup(text: "\(Moment(unixSeconds: file.id.unixSeconds))"),
        Markup(text: "\(ByteCount(Int(file.identity.byteCount)))"), Markup(text: entry?.sender ?? sender(of: file)),
      ])
    if let reason = entry?.reason { line.notes.append(reason) }
    if entry?.state == .applied { line.notes.append("It stays here until everything in the folder is applied.") }
    if file.isAnswer { line.notes.append("The answer to an invitation, which is taken with the folder.") }
    var actions: Markup = ""
    if !file.isAnswer {
      actions += """
        <p><a href="\(addresses.address("file", fields))">Look at its changes\
        <span class="unseen">: \(file.name)</span></a></p>

        """
    }
    if !database.isReadOnly { actions += Self.form(addresses.address("inbox", fields), file) }
    line.actions = actions
    return line
  }

  /// Who has signed a file, which has not been applied yet.
  private func sender(of file: InboundFolder.File) -> String {
    guard !file.isAnswer else { return "–" }
    return DiffInspection.sender(
      of: file.path, home: database.manager.home, decryption: database.options.decryption) ?? "unknown"
  }

  /// What can be done about one file.
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
