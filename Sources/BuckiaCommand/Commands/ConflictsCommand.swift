import ArgumentParser
import Buckia

/// `buckia conflicts`
struct ConflictsCommand: DatabaseSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "conflicts",
    abstract: "Lists the conflicts: incoming changes of rows that differ here from what their sender had.",
    discussion: """
      Each conflict has three versions of the row: the one that its sender changed (before), the local one (here), and the one \
      that the sender made of it (incoming). Of many conflicts the newest are shown, and the number of each kind. \
      `buckia resolve` decides them by their numbers.

      --html writes a page instead, with the three versions side by side and images shown: of the newest 500 conflicts, or with --full of all.

      Example:
        buckia conflicts notes.sqlite --table notes --kind data --last 5
        buckia conflicts notes.sqlite --open --html conflicts.html
      """)

  @OptionGroup var target: DatabaseOptions

  @OptionGroup var selection: ConflictFilterOptions

  @Option(help: ArgumentHelp("Show the newest so many only.", valueName: "count"))
  var last: Int?

  @Flag(help: "Show how many there are of each kind, and no rows.")
  var summary = false

  @Flag(help: "Show the answers that are kept as rules instead.")
  var rules = false

  @OptionGroup var page: PageOptions

  @OptionGroup var output: OutputOptions

  var printsResult: Bool { page.isStandardOutput }

  /// The default number of shown conflicts.
  private static let shownByDefault = 20

  func validate() throws {
    try page.validate(output)
    if page.isWanted && (rules || summary) {
      throw ValidationError("A page shows conflicts; --html cannot be combined with --rules or --summary.")
    }
    if let last, last < 1 { throw ValidationError("--last must be at least 1.") }
    if summary && last != nil { throw ValidationError("--summary and --last contradict each other.") }
    if rules && (summary || last != nil || selection.filter != ConflictFilter()) {
      throw ValidationError("--rules lists all rules; it cannot be combined with what selects conflicts.")
    }
  }

  func perform(on console: Console) throws -> ExitStatus {
    if rules { return try printRules(on: console) }
    if page.isWanted { return try writePage(on: console) }
    let filter = selection.filter
    let found = try manager.conflictCounts(matching: filter)
    let isWhole = console.isJSON || output.full
    let shown = min(found.total, summary ? 0 : last ?? (isWhole ? .max : Self.shownByDefault))
    if console.isJSON {
      try printDocument(of: filter, found, showing: shown, on: console)
    } else if console.showsText {
      try printText(of: filter, found, showing: shown, on: console)
    }
    return .done
  }

  private func printRules(on console: Console) throws -> ExitStatus {
    let rules = try manager.conflictRules()
    try console.document(["version": 1, "rules": .array(rules.map(\.json))])
    if rules.isEmpty { try console.say("There are no rules.") }
    for rule in rules { try console.say(rule.lines(style: console.style)) }
    return .done
  }

  private func writePage(on console: Console) throws -> ExitStatus {
    let filter = selection.filter
    let found = try manager.conflictCounts(matching: filter)
    var limits = output.full ? PageLimits.full : .standard
    if let last { limits.entries = last }
    try page.write(about: target.database, on: console) {
      try ConflictsPage(
        of: manager, name: target.database.fileName, filter: filter, found: found,
        limits: limits, on: $0
      ).write()
    }
    return .done
  }

  /// The document, written conflict by conflict: it need not fit in memory.
  private func printDocument(
    of filter: ConflictFilter, _ found: [ConflictCount], showing shown: Int, on console: Console
  ) throws {
    var list = JSONListWriter("conflicts", after: [("summary", found.json)], on: console)
    try manager.forEachConflict(matching: filter, newest: shown) { try list.add($0.json) }
    try list.end()
  }

  private func printText(
    of filter: ConflictFilter, _ found: [ConflictCount], showing shown: Int, on console: Console
  ) throws {
    if found.total == 0 {
      try console.say(filter == ConflictFilter() ? "There are no conflicts." : "There are no such conflicts.")
    }
    var isFirst = true
    var isOfMerge = true
    try manager.forEachConflict(matching: filter, newest: max(shown, 1)) { record in
      isOfMerge = isOfMerge && record.isOfMerge
      if shown == 0 { return }
      if !isFirst { try console.say() }
      try console.say(record.lines(style: console.style))
      isFirst = false
    }
    guard shown < found.total else { return }
    if shown > 0 { try console.say() }
    try console.say("\(found.total.counted("conflict")) in all:")
    try console.say(found.lines(ofMerge: isOfMerge, style: console.style))
    guard !summary else { return }
    let left = (found.total - shown).counted("older conflict")
    try console.say("\n\(left) not shown (--last COUNT or --full shows more).")
  }
}

/// The selection of recorded conflicts for a command.
struct ConflictFilterOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Only those of this table.", valueName: "table"))
  var table: String?

  @Option(
    help: ArgumentHelp("Only those of this diff file: its id, or the digest of a raw changeset.", valueName: "id"))
  var diff: String?

  @Option(help: ArgumentHelp("Only those of this kind.", valueName: "kind"))
  var kind: ConflictKind?

  @Flag(help: "Only undecided ones: by no person, no rule and no resolver of an app.")
  var open = false

  /// The filter that they make.
  var filter: ConflictFilter {
    var filter = ConflictFilter()
    filter.table = table
    filter.diff = diff
    filter.kind = kind
    filter.isOpen = open
    return filter
  }
}

extension ConflictKind: ExpressibleByArgument {}
