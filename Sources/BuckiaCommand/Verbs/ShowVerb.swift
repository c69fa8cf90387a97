import ArgumentParser
import Buckia

/// `buckia show`
struct ShowVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Shows what is inside a diff file or a raw changeset.",
    discussion: """
      The file is checked completely first. With --json or --full all changes are printed, otherwise the first ten of \
      each table. + is a new row, ~ a changed one, - a deleted one. In changes of more than 8 MiB, long values are shown \
      in part, also with --full; --json prints them whole.

      Example:
        buckia show inbound/0ujtsYcgvSTl8PAuAdqWYSMnLOv.bdiff --limit 3
      """)

  @Argument(help: "The file, or - for standard input.")
  var file: String

  @Option(help: ArgumentHelp("Show so many changes of each table.", valueName: "count"))
  var limit: Int?

  @Flag(help: "Show all changes.")
  var all = false

  @OptionGroup var decryption: DecryptionOptions

  @OptionGroup var home: HomeOptions

  @OptionGroup var output: OutputOptions

  func validate() throws {
    try decryption.validate(besides: [file])
    if let limit, limit < 0 { throw ValidationError("--limit must not be negative.") }
    if limit != nil && all { throw ValidationError("--limit and --all contradict each other.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let name = ArgumentFile.name(of: file)
    let inspected = try DiffInspection.open(
      ArgumentFile.source(file), home: home.folder, decryption: decryption.decryption(in: home),
      progress: { console.progress.update($0.line) })
    if console.isJSON {
      try printDocument(of: inspected, on: console)
    } else if console.showsText {
      let header = ShownHeader(path: name, file: inspected)
      try console.say(header.lines(style: console.style))
      try printChanges(of: inspected, on: console)
    }
    return .done
  }

  /// The document, written change by change: it need not fit in memory.
  private func printDocument(of inspected: InspectedFile, on console: Console) throws {
    let manifest = inspected.manifest?.lineText() ?? "null"
    let statements = JSONValue.array((inspected.statements ?? []).map(\.json)).lineText()
    try console.write(
      "{\n  \"version\": 1,\n  \"manifest\": \(manifest),\n  \"statements\": \(statements),\n  \"changes\": [")
    var separator = "\n"
    let long = LongChangeWriter(inspected, on: console)
    try forEachChange(of: inspected, limit: limit ?? .max) { change in
      try console.write("\(separator)    ")
      separator = ",\n"
      if change.hasLongValues { try long.write(change) } else { try console.write(change.json.lineText()) }
    }
    try console.write("\n  ]\n}\n")
  }

  private func printChanges(of inspected: InspectedFile, on console: Console) throws {
    let limit = all ? Int.max : limit ?? (output.full ? .max : 10)
    guard limit > 0 else { return }
    let changeCounts = Dictionary(
      inspected.summary.tables.map { ($0.table.name, $0.changeCount) }, uniquingKeysWith: { first, _ in first }
    )
    var table: String?
    var shown = 0
    func endTable() throws {
      let count = table.flatMap { changeCounts[$0] } ?? 0
      guard count > shown else { return }
      try console.say(console.style("  … and \((count - shown).grouped) more (--all shows them)", .faint))
    }
    try forEachChange(of: inspected, limit: limit) { change in
      if change.table != table {
        try endTable()
        table = change.table
        shown = 0
        try console.say(["", console.style(change.table.escaped(limit: 60), .strong)])
      }
      shown += 1
      try console.say(change.lines(style: console.style))
    }
    try endTable()
  }

  /// Gives the first `limit` changes of each table to `body`, in the order of the file.
  private func forEachChange(
    of inspected: InspectedFile, limit: Int, _ body: (InspectedFile.ShownChange) throws -> Void
  ) throws {
    var counts: [String: Int] = [:]
    try inspected.forEachChange { change in
      counts[change.table, default: 0] += 1
      if counts[change.table, default: 0] <= limit { try body(change) }
    }
  }
}

extension InspectedFile.ShownStatement {
  /// The statement as `--json` has it.
  fileprivate var json: JSONValue { ["kind": .string(kind), "name": .string(name), "sql": .string(sql)] }
}

/// What a person wants to know before the changes: where a file comes from and how much it does.
private struct ShownHeader {
  let path: String
  let file: InspectedFile

  func lines(style: Style) -> [String] {
    var facts = TextTable(["", .prose("")])
    func add(_ name: String, _ value: String) { facts.add([.init(name, .faint), .init(value)]) }
    add("file", "\(path.escaped) (\(ByteCount(Int(file.byteCount))))")
    if let id = file.id { add("made", "\(Moment(unixSeconds: id.unixSeconds)), id \(id)") }
    if case .object(let manifest)? = file.manifest {
      add("sender", file.sender.escaped)
      if case .object(let sender)? = manifest["sender"], case .string(let replica)? = sender["replica"] {
        // Without a signature anybody can have written it.
        add("replica", "\(file.isSigned ? "" : "claims to be ")\(replica.escaped)")
        if case .string(let incarnation)? = sender["incarnation"] { add("incarnation", incarnation.escaped) }
      }
      if case .string(let dataset)? = manifest["dataset"] { add("dataset", dataset.escaped) }
      if case .string(let kind)? = manifest["kind"] { add("kind", kind.escaped) }
      if let statements = file.statements {
        add("schema", "\(statements.count.counted("statement")) for those who adopt it (--json lists them)")
      }
    } else {
      let format = file.summary.format == .patchset ? "patchset" : "changeset"
      add("kind", "raw \(format): nothing says who made it, and its columns have no names")
    }
    var table = TextTable([.text("table"), .number("inserted"), .number("updated"), .number("deleted")])
    for entry in file.summary.tables.prefix(style.listLimit) {
      table.add([
        .init(entry.table.name.escaped(limit: 60)), .count(entry.inserted, .good), .count(entry.updated, .notable),
        .count(entry.deleted, .bad),
      ])
    }
    let left = file.summary.tables.count - style.listLimit
    return facts.lines(style: style, indent: 0) + [""] + (table.isEmpty ? ["No changes."] : table.lines(style: style))
      + (left > 0 ? [style.rest(left, "table", indent: 2)] : [])
  }
}
