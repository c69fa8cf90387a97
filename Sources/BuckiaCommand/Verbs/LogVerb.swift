import ArgumentParser
import Buckia

/// `buckia log`
struct LogVerb: Verb {
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
      let diffs = try target.manager(home: home.folder).sentDiffs(
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
    try target.manager(home: home.folder).forEachLogEntry { try list.add($0.json) }
    try list.end()
  }

  /// How many entries stand in one table: the widths of its columns depend on all of them.
  private static let tableLimit = 1_000

  private func printText(on console: Console) throws {
    let style = console.style
    guard output.full else {
      let (entries, total) = try target.manager(home: home.folder).log(newest: style.listLimit)
      return try console.say(entries.lines(style: style, of: total))
    }
    var entries: [LedgerEntry] = []
    var isEmpty = true
    try target.manager(home: home.folder).forEachLogEntry { entry in
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
