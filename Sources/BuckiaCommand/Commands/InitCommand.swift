import ArgumentParser
import Buckia

/// `buckia init`
struct InitCommand: DatabaseSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "init",
    abstract: "Makes the ledger tables in a database. (apply does it too.)",
    discussion: """
      The ledger records every diff file and what became of it. Its tables begin with buckia_ and never travel.

      Example:
        buckia init notes.sqlite --trust any
        buckia init notes.sqlite --remove
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

  @Option(
    help: ArgumentHelp(
      "After how many days without an acknowledgement from a recipient deletions are forgotten that only they have not applied; 0 for never.",
      valueName: "days"))
  var silentDays: Int?

  @Flag(
    help: ArgumentHelp(
      "Let all tables remember which diff has last set each of their columns, as apply --on-conflict latest and blame need it. Do it before you make the first diff."
    ))
  var clocks = false

  @Option(help: ArgumentHelp("The same for this table only. May be given several times.", valueName: "table"))
  var clock: [String] = []

  @Flag(
    inversion: .prefixedNo,
    help: ArgumentHelp(
      "Give out the keys of AUTOINCREMENT tables from ranges that no other copy of the database uses. Do it in each copy."
    ))
  var keyRanges: Bool?

  @Option(
    help: ArgumentHelp(
      "Make the database part of a shared one, so that it refuses the diffs of others: a new one, or that with an id.",
      valueName: "new|id"))
  var dataset: DatasetChoice?

  @Flag(
    help:
      "Remove the ledger tables, with all records of diffs, conflicts, shares and clocks. The rows of the app stay. On a terminal you are asked."
  )
  var remove = false

  @Flag(help: "Remove them without being asked.")
  var yes = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    let sets = trust != nil || undoSize != nil || undoDays != nil || silentDays != nil || clocks || !clock.isEmpty
    if remove, sets || keyRanges != nil || dataset != nil {
      throw ValidationError("--remove takes the ledger out, and goes with no option that sets something in it.")
    }
    if let undoDays, undoDays < 0 { throw ValidationError("--undo-days must not be negative.") }
    if let silentDays, silentDays < 0 { throw ValidationError("--silent-days must not be negative.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    if remove { return try removeLedger(on: console) }
    let report = try manager.initialize(trust: trust)
    if undoSize != nil || undoDays != nil {
      try manager.setUndoRetention(bytes: undoSize?.bytes, days: undoDays)
    }
    if let silentDays { try manager.setSilenceLimit(days: silentDays) }
    let clocked = clocks || !clock.isEmpty ? try manager.keepClocks(of: clocks ? nil : clock) : nil
    let ranges = try keyRanges.map { try manager.useKeyRanges($0) }
    let joined = try dataset.map { choice in
      switch choice {
      case .new: try manager.beginDataset()
      case .known(let dataset): try manager.joinDataset(dataset)
      }
    }
    let belongsTo = try manager.dataset()
    let warnings = report.warnings + (ranges?.warnings ?? []).filter { !report.warnings.contains($0) }
    try console.document(
      report.json(
        clocked: clocked ?? [], keyRanges: ranges?.tables ?? [], dataset: belongsTo, adding: ranges?.warnings ?? []))
    if report.createdDatabase { try console.say("\(target.database.escaped) is a new, empty database.") }
    try console.say(report.created ? "The ledger tables were made." : "The ledger tables are there already.")
    if let clocked {
      try console.say(
        clocked.isEmpty
          ? "The tables have their clocks already."
          : "Clocks were made for \(clocked.listed(limit: 60)).")
    }
    if let ranges, let keyRanges {
      let tables = ranges.tables.listed(limit: 60)
      try console.say(
        !keyRanges
          ? "New rows get the keys behind the greatest ones."
          : tables.isEmpty
            ? "No table gives out keys from a range of its own." : "Keys from a range of their own: \(tables).")
    }
    if let joined { try console.say("The database belongs to the dataset \(joined).") }
    try console.say("Trust: \(report.trust.explanation)")
    try console.say(warnings.lines(style: console.style))
    return .done
  }

  private func removeLedger(on console: Console) throws -> ExitStatus {
    let question =
      "Remove the ledger of \(target.database.escaped)? Its conflicts, undo, shares and clocks are lost, and files applied before would be applied again."
    guard try yes || Confirmation.require(question) else {
      return try console.sayNothingChanged()
    }
    let count = try manager.removeLedger()
    try console.document(["version": 1, "removedTables": .number(count)])
    try console.say(
      count == 0 ? "There are no ledger tables in it." : "The ledger tables were removed; the rows of the app stay.")
    return .done
  }
}

/// `new`, or the id of a dataset.
enum DatasetChoice: ExpressibleByArgument {
  case new
  case known(Dataset)

  init?(argument: String) {
    if argument == "new" {
      self = .new
    } else if let dataset = Dataset(argument) {
      self = .known(dataset)
    } else {
      return nil
    }
  }
}
