import ArgumentParser
import BuckiaDiffFiles
import SQLiteChangesets

/// `buckia show`
struct ShowVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Shows what is inside a diff file or a raw changeset.",
    discussion: """
      The file is checked completely first. With --json all changes are printed, otherwise the first ten of each \
      table. + is a new row, ~ a changed one, - a deleted one.

      Example:
        buckia show inbound/0ujtsYcgvSTl8PAuAdqWYSMnLOv.bdiff --limit 3
      """)

  @Argument(help: "The file, or - for standard input.")
  var file: String

  @Option(help: ArgumentHelp("Show so many changes of each table.", valueName: "count"))
  var limit: Int?

  @Flag(help: "Show all changes.")
  var all = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if let limit, limit < 0 { throw ValidationError("--limit must not be negative.") }
    if limit != nil && all { throw ValidationError("--limit and --all contradict each other.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let changes = try OpenedChanges(argument: file)
    if console.isJSON {
      try printDocument(of: changes, on: console)
    } else {
      try console.say(changes.headerLines(style: console.style))
      try printChanges(of: changes, on: console)
    }
    return .done
  }

  /// The document, written change by change: it need not fit in memory.
  private func printDocument(of changes: OpenedChanges, on console: Console) throws {
    let manifest = try changes.envelope.map { try JSONParser.parse($0.manifestBytes) } ?? .null
    try console.write("{\n  \"version\": 1,\n  \"manifest\": \(manifest.text()),\n  \"changes\": [")
    var separator = "\n"
    try forEachChange(of: changes, limit: limit ?? .max) { change in
      try console.write("\(separator)    \(change.json.text())")
      separator = ",\n"
    }
    try console.write("\n  ]\n}\n")
  }

  private func printChanges(of changes: OpenedChanges, on console: Console) throws {
    guard console.showsText else { return }
    let limit = all ? Int.max : limit ?? 10
    var table: String?
    var shown = 0
    func endTable() throws {
      guard let name = table, let counts = changes.tables.first(where: { $0.header.name == name }) else { return }
      let rest = Int(counts.inserted + counts.updated + counts.deleted) - shown
      if rest > 0 { try console.say(console.style("  … and \(rest.grouped) more (--all shows them)", .faint)) }
    }
    guard limit > 0 else { return }
    try forEachChange(of: changes, limit: limit) { change in
      if change.table != table {
        try endTable()
        table = change.table
        shown = 0
        try console.say(["", console.style(change.table.escaped(limit: 60), .strong)])
      }
      shown += 1
      try console.say("  \(change.line(style: console.style))")
    }
    try endTable()
  }

  /// Gives the first `limit` changes of each table to `body`, in the order of the file.
  private func forEachChange(of changes: OpenedChanges, limit: Int, _ body: (RowChange) throws -> Void) throws {
    try changes.changeset.withBytes { bytes in
      var reader = ChangesetReader()
      var columns: [String] = []
      var counts: [String: Int] = [:]
      while let change = try reader.next(in: bytes) {
        guard let table = reader.table else { continue }
        if change.startsTable { columns = changes.columns(of: table) }
        counts[table.name, default: 0] += 1
        guard counts[table.name, default: 0] <= limit else { continue }
        try body(RowChange(change, of: reader, table: table, columns: columns, in: bytes))
      }
    }
  }
}

extension OpenedChanges {
  /// What a person wants to know before the changes: where it comes from and how much it does.
  fileprivate func headerLines(style: Style) -> [String] {
    var facts = TextTable(["", ""])
    func add(_ name: String, _ value: String) { facts.add([.init(name, .faint), .init(value)]) }
    add("file", "\(path.escaped) (\(ByteCount(fileBytes)))")
    if let id { add("made", "\(Moment(unixSeconds: id.unixSeconds)), id \(id)") }
    if let envelope {
      add("sender", envelope.sender)
      add("kind", envelope.manifest.kind.rawValue)
    } else {
      let format = tables.first?.header.format == .patchset ? "patchset" : "changeset"
      add("kind", "raw \(format): nothing says who made it, and its columns have no names")
    }
    var table = TextTable(["table", .number("inserted"), .number("updated"), .number("deleted"), "key"])
    for entry in tables {
      let columns = columns(of: entry.header)
      let key = entry.header.keyFlags.indices.filter(entry.header.isKey).map { columns[$0].escaped(limit: 40) }
      table.add([
        .init(entry.header.name.escaped(limit: 60)), .count(Int(entry.inserted), .good),
        .count(Int(entry.updated), .notable), .count(Int(entry.deleted), .bad),
        .init(key.joined(separator: ", "), .faint),
      ])
    }
    return facts.lines(style: style, indent: 0) + [""] + (table.isEmpty ? ["No changes."] : table.lines(style: style))
  }
}

extension OpenedChanges.Envelope {
  /// The sender, for people: only a signature makes a claim true.
  var sender: String {
    switch signature {
    case .signed(let key): "key \(key)"
    case .unsigned: manifest.sender?.identity.map { "unsigned, claims to be key \($0)" } ?? "unsigned"
    }
  }
}
