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

      --html writes a page instead, with old and new side by side and images shown: the first 500 changes of each table, up to 32 MiB, \
      or with --full all of them, with whole texts.

      Example:
        buckia show inbound/0ujtsYcgvSTl8PAuAdqWYSMnLOv.bdiff --limit 3
        buckia show inbound/0ujtsYcgvSTl8PAuAdqWYSMnLOv.bdiff --html changes.html
      """)

  @Argument(help: "The file, or - for standard input.")
  var file: String

  @Option(help: ArgumentHelp("Show so many changes of each table.", valueName: "count"))
  var limit: Int?

  @Flag(help: "Show all changes.")
  var all = false

  @OptionGroup var page: PageOptions

  @OptionGroup var decryption: DecryptionOptions

  @OptionGroup var output: OutputOptions

  var printsResult: Bool { page.isStandardOutput }

  func validate() throws {
    try decryption.validate(besides: [file])
    try page.validate(output)
    if let limit, limit < 0 { throw ValidationError("--limit must not be negative.") }
    if limit != nil && all { throw ValidationError("--limit and --all contradict each other.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let name = ArgumentFile.name(of: file)
    let inspected = try DiffInspection.open(
      ArgumentFile.source(file), home: home.folder, decryption: decryption.decryption(in: home),
      progress: { console.progress.show($0.line) }, poll: { try console.progress.check() })
    if page.isWanted {
      try page.write(about: file, on: console) {
        // A page is passed on: it names no folder of this computer.
        try ChangesPage(of: inspected, name: name.fileName, limits: pageLimits, on: $0).write()
      }
    } else if console.isJSON {
      try printDocument(of: inspected, on: console)
    } else if console.showsText {
      let header = ShownHeader(path: name, file: inspected)
      try console.say(header.lines(style: console.style))
      try printChanges(of: inspected, on: console)
    }
    return .done
  }

  /// How much is drawn on a page.
  private var pageLimits: PageLimits {
    var limits = output.full ? PageLimits.full : .standard
    if all { (limits.entries, limits.pageBytes) = (.max, .max) }
    if let limit { limits.entries = limit }
    return limits
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
