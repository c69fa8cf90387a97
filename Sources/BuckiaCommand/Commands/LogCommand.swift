import ArgumentParser
import Buckia

/// `buckia log`
struct LogCommand: DatabaseSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "log",
    abstract: "Lists every diff file that reached a database, and what became of it.",
    discussion: """
      Example:
        buckia log notes.sqlite
        buckia log notes.sqlite --sent
      """)

  @OptionGroup var target: DatabaseOptions

  @Flag(help: "List the files that this database has shared, instead of those that reached it.")
  var sent = false

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    if sent {
      let diffs = try manager.sentDiffs(
        newest: console.isJSON ? nil : console.style.listLimit)
      try console.document(["version": 1, "sent": .array(diffs.map(\.json))])
      try console.say(diffs.lines(style: console.style))
    } else if console.isJSON {
      try printDocument(on: console)
    } else if console.showsText {
      try printText(on: console)
    }
    return .done
  }

  /// The document, written entry by entry: it need not fit in memory.
  private func printDocument(on console: Console) throws {
    var list = JSONListWriter("entries", on: console)
    try manager.forEachLogEntry { try list.add($0.json) }
    try list.end()
  }

  /// The number of entries in one table: the widths of its columns depend on all of them.
  private static let tableLimit = 1_000

  private func printText(on console: Console) throws {
    let style = console.style
    guard output.full else {
      let (entries, total) = try manager.log(newest: style.listLimit)
      return try console.say(entries.lines(style: style, of: total))
    }
    var entries: [LedgerEntry] = []
    var isEmpty = true
    try manager.forEachLogEntry { entry in
      if entries.count == Self.tableLimit {
        try console.say(entries.lines(style: style))
        try console.say()
        entries.removeAll()
      }
      entries.append(entry)
      isEmpty = false
    }
    if isEmpty || !entries.isEmpty { try console.say(entries.lines(style: style)) }
  }
}

extension [LedgerEntry] {
  /// Entries for people, the oldest first.
  ///
  /// - Parameter total: The number of the ledger's entries, if these are only the newest; nil for the same number.
  func lines(style: Style, of total: Int? = nil) -> [String] {
    guard !isEmpty else { return ["The ledger is empty: no diff file has arrived yet."] }
    let columns: [TextTable.Column] = .changes(
      after: ["when", "state", "diff", .text("sender")], before: [.number("conflicts")])
    let table = TextTable(columns, of: self) { entry in
      [
        .init("\(UTCTime(unixMilliseconds: entry.recordedAt))"), .init(entry.state.rawValue, entry.state.role),
        .init(entry.name), .init(entry.sender.escaped(limit: 24), .faint),
        .count(entry.inserted), .count(entry.updated), .count(entry.deleted), .count(entry.conflicts, .notable),
      ]
    }
    let left = (total ?? count) - count
    var lines = left > 0 ? [style.rest(left, "older file")] : []
    lines += table.lines(style: style, indent: 0)
    for entry in self {
      guard let reason = entry.reason ?? entry.undoes.map({ "undoes \($0)" }) else { continue }
      let state = style(entry.state.rawValue, entry.state.role)
      lines += [""] + style.wrapped("\(style(entry.name, .strong)) \(state): \(reason.escaped)", hanging: 2)
    }
    return lines
  }
}

extension LedgerEntry {
  /// What people call it: its id, else the file it came in.
  fileprivate var name: String { diff?.description ?? file.escaped(limit: 40) }
}

extension SentDiff {
  /// The diff as `--json` has it.
  var json: JSONValue {
    [
      "id": .string(id.description), "recipients": .strings(recipients),
      "sequence": .integer(sequence), "file": .string(file),
      "madeAt": .time(madeAt), "delivered": .bool(isDelivered),
    ]
  }
}

extension [SentDiff] {
  /// The diffs for people, the oldest first.
  func lines(style: Style) -> [String] {
    guard !isEmpty else { return ["Nothing was shared from this database yet."] }
    return TextTable(["when", .text("to"), .number("number"), "file", .prose("")], of: self) { diff in
      [
        .init("\(UTCTime(unixMilliseconds: diff.madeAt))"), .init(diff.recipients.listed()),
        .count(Int(clamping: diff.sequence)), .init(diff.file.escaped(limit: 60)),
        .init(diff.isDelivered ? "" : "not written yet; share again writes it", .notable),
      ]
    }.lines(style: style, indent: 0)
  }
}
