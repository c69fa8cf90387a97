import ArgumentParser
import Buckia

/// `buckia conflicts`
struct ConflictsVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "conflicts",
    abstract: "Shows the changes that met a row that was not as their author saw it.",
    discussion: """
      Each record keeps the row as its author saw it, as it was here, and as its author wants it.

      Example:
        buckia conflicts notes.sqlite --last 5
      """)

  @OptionGroup var target: DatabaseOptions

  @Option(help: ArgumentHelp("Show the newest so many only.", valueName: "count"))
  var last: Int?

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if let last, last < 1 { throw ValidationError("--last must be at least 1.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let all = try target.manager.conflicts()
    let shown = Array(all.suffix(last ?? all.count))
    try console.document(shown.json)
    if all.isEmpty { try console.say("There are no conflicts.") }
    for (index, record) in shown.enumerated() {
      if index > 0 { try console.say() }
      try console.say(record.lines(style: console.style))
    }
    if shown.count < all.count {
      try console.say("\n\((all.count - shown.count).counted("older conflict")) not shown.")
    }
    return .done
  }
}
