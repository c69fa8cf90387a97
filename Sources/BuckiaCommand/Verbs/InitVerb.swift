import ArgumentParser
import Buckia

/// `buckia init`
struct InitVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "init",
    abstract: "Makes the ledger tables in a database. (apply does it too.)",
    discussion: """
      The ledger records every diff file and what became of it. Its tables begin with buckia_ and never travel.

      Example:
        buckia init notes.sqlite --trust any
      """)

  @OptionGroup var target: DatabaseOptions

  @Option(help: "Whose files are applied: any sender's, or those of known contacts only.")
  var trust: TrustMode?

  @Option(
    help: ArgumentHelp(
      "How much is kept of what diffs do here, so that undo can take them back, in MiB, or with a unit: 64, 512M, 2G.",
      valueName: "size"))
  var undoSize: MemorySize?

  @Option(help: ArgumentHelp("For how many days it is kept; 0 keeps nothing.", valueName: "days"))
  var undoDays: Int?

  @Flag(
    help: ArgumentHelp(
      "Let all tables remember which diff has last set each of their columns, as apply --on-conflict latest and blame need it. Do it before you make the first diff."
    ))
  var clocks = false

  @Option(help: ArgumentHelp("The same for this table; may be given again.", valueName: "table"))
  var clock: [String] = []

  @OptionGroup var home: HomeOptions

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if let undoDays, undoDays < 0 { throw ValidationError("--undo-days must not be negative.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let report = try target.manager.initialize(trust: trust, home: home.folder)
    if undoSize != nil || undoDays != nil {
      try target.manager.setUndoRetention(bytes: undoSize?.bytes, days: undoDays)
    }
    let clocked = clocks || !clock.isEmpty ? try target.manager.keepClocks(of: clocks ? nil : clock) : nil
    try console.document([
      "version": 1,
      "created": .bool(report.created),
      "createdDatabase": .bool(report.createdDatabase),
      "trust": .string(report.trust.rawValue),
      "clocks": .array((clocked ?? []).map { .string($0) }),
      "warnings": .array(report.warnings.map { .string($0.shown) }),
      "remarks": .array(report.warnings.map(\.json)),
    ])
    if report.createdDatabase { try console.say("\(target.database.escaped) is a new, empty database.") }
    try console.say(report.created ? "The ledger tables were made." : "The ledger tables are there already.")
    if let clocked {
      try console.say(
        clocked.isEmpty
          ? "The tables have their clocks already."
          : "Clocks were made for \(clocked.map { $0.escaped(limit: 60) }.joined(separator: ", ")).")
    }
    try console.say("Trust: \(report.trust.explanation)")
    try console.say(report.warnings.lines(style: console.style))
    return .done
  }
}
