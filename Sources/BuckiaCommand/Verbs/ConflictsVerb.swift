import ArgumentParser
import Buckia

/// `buckia conflicts`
struct ConflictsVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "conflicts",
    abstract: "Shows the changes that met a row that was not as their author saw it.",
    discussion: """
      Each record keeps the row as its author saw it, as it was here, and as its author wants it. Of many, the newest \
      are shown, and how many there are of each kind.

      Example:
        buckia conflicts notes.sqlite --table notes --kind data --last 5
      """)

  @OptionGroup var target: DatabaseOptions

  @Option(help: ArgumentHelp("Show those of this table only.", valueName: "table"))
  var table: String?

  @Option(
    help: ArgumentHelp("Show those of this diff file only: its id, or the digest of a raw changeset.", valueName: "id"))
  var diff: String?

  @Option(help: ArgumentHelp("Show those of this kind only.", valueName: "kind"))
  var kind: ConflictKind?

  @Option(help: ArgumentHelp("Show the newest so many only.", valueName: "count"))
  var last: Int?

  @Flag(help: "Show how many there are of each kind, and no rows.")
  var summary = false

  @OptionGroup var output: OutputOptions

  /// How many are shown when nothing is said.
  private static let shownByDefault = 20

  func validate() throws {
    if let last, last < 1 { throw ValidationError("--last must be at least 1.") }
    if summary && last != nil { throw ValidationError("--summary and --last contradict each other.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    var filter = ConflictFilter()
    filter.table = table
    filter.diff = diff
    filter.kind = kind
    let found = try target.manager.conflicts(matching: filter)
    let limit = summary ? 0 : last ?? (console.isJSON || output.full ? found.count : Self.shownByDefault)
    try console.document(found.json(showing: limit))
    guard console.showsText else { return .done }
    if found.isEmpty {
      try console.say(filter == ConflictFilter() ? "There are no conflicts." : "There are no such conflicts.")
    }
    let shown = Array(found.suffix(limit))
    try console.say(shown.lines(style: console.style))
    guard shown.count < found.count else { return .done }
    if !shown.isEmpty { try console.say() }
    try console.say("\(found.count.counted("conflict")) in all:")
    try console.say(ConflictSummary(found).lines(style: console.style))
    if !summary {
      let left = found.count - shown.count
      try console.say("\n\(left.counted("older conflict")) not shown (--last COUNT or --full shows more).")
    }
    return .done
  }
}

extension ConflictKind: ExpressibleByArgument {}
