import ArgumentParser
import Buckia

/// `buckia show`
struct ShowCommand: Subcommand {
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
    try console.progress.end()
    if page.isWanted {
      try page.write(about: file, on: console) {
        // A page is passed on: it names no folder of this computer.
        try ChangesPage(of: inspected, name: name.fileName, limits: pageLimits, on: $0).write()
      }
    } else if console.isJSON {
      try printDocument(of: inspected, on: console)
    } else if console.showsText {
      try console.say(inspected.headerLines(path: name, style: console.style))
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
    try forEachChange(of: inspected, limit: limit ?? .max) { change in
      try console.write("\(separator)    ")
      separator = ",\n"
      if change.hasLongValues {
        try inspected.writeLong(change, on: console)
      } else {
        try console.write(change.json.lineText())
      }
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

// What a person wants to know before the changes: where a file comes from and how much it does.
extension InspectedFile {
  /// What is known of the file, by name.
  ///
  /// - Parameters:
  ///   - path: Where it is.
  ///   - place: Where the statements of the author's schema are.
  func facts(path: String, statementsAt place: String) -> [(name: String, value: String)] {
    var facts: [(name: String, value: String)] = []
    func add(_ name: String, _ value: String) { facts.append((name, value)) }
    add("file", "\(path.escaped) (\(ByteCount(Int(byteCount))))")
    if let id { add("made", "\(UTCTime(unixSeconds: id.unixSeconds)), id \(id)") }
    if case .object(let manifest)? = manifest {
      add("sender", sender.escaped)
      if case .object(let author)? = manifest["sender"], case .string(let replica)? = author["replica"] {
        // Without a signature anybody can have written it.
        add("replica", "\(isSigned ? "" : "claims to be ")\(replica.escaped)")
        if case .string(let incarnation)? = author["incarnation"] { add("incarnation", incarnation.escaped) }
      }
      if case .string(let dataset)? = manifest["dataset"] { add("dataset", dataset.escaped) }
      if case .string(let kind)? = manifest["kind"] { add("kind", kind.escaped) }
      if let statements {
        add("schema", "\(statements.count.counted("statement")) for those who adopt it (\(place))")
      }
    } else {
      let format = summary.format == .patchset ? "patchset" : "changeset"
      add("kind", "raw \(format): nothing says who made it, and its columns have no names")
    }
    return facts
  }

  /// The same for people, and how much changes in each table.
  fileprivate func headerLines(path: String, style: Style) -> [String] {
    let facts = TextTable(facts: facts(path: path, statementsAt: "--json lists them"))
    let table = TextTable.lines(.changes(after: [.text("table")]), of: summary.tables, "table", style: style) {
      .changes(after: [.init($0.table.name.escaped(limit: 60))], $0.inserted, $0.updated, $0.deleted)
    }
    return facts.lines(style: style, indent: 0) + [""] + (table.isEmpty ? ["No changes."] : table)
  }
}

extension InspectedFile.ShownChange {
  /// True if the change has values that are too long to be part of ``json``.
  var hasLongValues: Bool { (key + (old ?? []) + (new ?? [])).contains { $0.whole != nil } }

  /// The change as `--json` has it.
  var json: JSONValue {
    [
      "table": .string(table), "op": .string(operation.word), "key": Self.json(key),
      "old": old.map(Self.json) ?? .null, "new": new.map(Self.json) ?? .null,
    ]
  }

  /// Cells the change says nothing of are left out: null would be a value.
  private static func json(_ cells: [Cell]) -> JSONValue {
    .object(JSONObject(cells.compactMap { cell in cell.value.map { JSONObject.Member(cell.column, $0.json) } }))
  }

  /// The change: in one line, or in several where there is no room for it.
  func lines(style: Style) -> [String] {
    let (sign, pieces): (String, [String]) =
      switch operation {
      case .insert: (style("+", .good), list(new ?? [], style))
      case .delete: (style("-", .bad), list(key, style))
      case .update: (style("~", .notable), updatePieces(style))
      }
    var lines = style.wrapped(pieces: pieces, indent: 4, hanging: 6)
    lines[0] = "  \(sign) \(lines[0].dropFirst(4))"
    return lines
  }

  /// How many characters of a text are shown.
  private func limit(_ style: Style) -> Int { style.isFull ? .max : 40 }

  private func list(_ cells: [Cell], _ style: Style) -> [String] {
    cells.compactMap { cell in
      cell.value.map { "\(cell.column.escaped(limit: 40)) \($0.shown(limit: limit(style), partOf: cell.whole))" }
    }
  }

  /// The key of an UPDATE and what it sets, with the value before where it is known: a patchset does not tell.
  private func updatePieces(_ style: Style) -> [String] {
    var edits = zip(new ?? [], old ?? []).compactMap { after, before -> String? in
      guard let value = after.value else { return nil }
      let room = before.value == nil ? limit(style) : min(limit(style), max(12, (style.width - 20) / 2))
      let versions = before.value.map { [($0, before.whole), (value, after.whole)] } ?? [(value, after.whole)]
      let shown = ChangesetValue.shown(versions, limit: style.isFull ? .max : room)
      return "\(after.column.escaped(limit: 40)) \(shown.joined(separator: " → "))"
    }
    if edits.isEmpty { edits = ["nothing"] }
    var pieces = list(key, style)
    pieces.append("\(pieces.popLast() ?? ""): \(edits[0])")
    return pieces + edits.dropFirst()
  }
}

extension InspectedFile {
  /// Prints a change with long values on one line, as its `json` would be, but piece by piece: the values need not fit in memory.
  fileprivate func writeLong(_ change: ShownChange, on console: Console) throws {
    let (table, operation) = (JSONValue.string(change.table), JSONValue.string(change.operation.word))
    try console.write("{\"table\":\(table.lineText()),\"op\":\(operation.lineText())")
    for (name, cells) in [("key", change.key), ("old", change.old), ("new", change.new)] {
      try console.write(",\"\(name)\":")
      if let cells { try write(cells, on: console) } else { try console.write("null") }
    }
    try console.write("}")
  }

  private func write(_ cells: [ShownChange.Cell], on console: Console) throws {
    var separator = "{"
    for cell in cells {
      guard let value = cell.value else { continue }
      try console.write("\(separator)\(JSONValue.string(cell.column).lineText()):")
      separator = ","
      switch (value, cell.whole) {
      case (.text, let whole?): try writeText(whole, on: console)
      case (_, let whole?): try writeBlob(whole, on: console)
      case (_, nil): try console.write(value.json.lineText())
      }
    }
    try console.write(separator == "{" ? "{}" : "}")
  }

  private func writeBlob(_ value: LongValue, on console: Console) throws {
    try console.write("{\"blob\":\"")
    try forEachPiece(of: value) { try console.write(HexText.lowercase($0)) }
    try console.write("\"}")
  }

  private func writeText(_ value: LongValue, on console: Console) throws {
    try console.write("\"")
    var rest: [UInt8] = []
    try forEachPiece(of: value) { piece in
      rest.append(contentsOf: piece)
      let end = rest.count - Self.openCharacter(in: rest)
      try writeText(rest[..<end], on: console)
      rest.removeSubrange(..<end)
    }
    try writeText(rest[...], on: console)
    try console.write("\"")
  }

  private func writeText(_ bytes: ArraySlice<UInt8>, on console: Console) throws {
    try console.write(
      String(JSONValue.string(String(decoding: bytes, as: UTF8.self)).lineText().dropFirst().dropLast()))
  }

  /// How many bytes at the end of a piece are the beginning of a character that goes on in the next one.
  private static func openCharacter(in bytes: [UInt8]) -> Int {
    for count in 1...3 where count <= bytes.count {
      let byte = bytes[bytes.count - count]
      if byte & 0xc0 == 0x80 { continue }
      let length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
      return length > count ? count : 0
    }
    return 0
  }
}
