import ArgumentParser
import Buckia

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `buckia resolve`
struct ResolveVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "resolve",
    abstract: "Decides recorded conflicts, and changes the rows accordingly.",
    discussion: """
      An ID is the number that `buckia conflicts` shows. The row gets the version that was here (local), the one that came \
      (incoming), or values of your own as a JSON object of columns; --set gives single columns values, and --delete deletes \
      the row. Where two different rows have the same key, both keeps both: one gets a new key. Where an incoming row was \
      left out because a local row has its UNIQUE value, same treats the two as one. Incoming rows that were left out because \
      they refer to such a row are inserted then, too. A conflict can be resolved again with another answer. A row that was \
      changed since the conflict is left alone, unless --force is given.

      --remember keeps the answer for later conflicts with the same question: of the same table and kind, about the same columns. \
      `buckia conflicts DB --rules` lists these rules.

      Example:
        buckia resolve notes.sqlite 7 --take incoming
        buckia resolve notes.sqlite 7 8 --take '{"title":"Both"}'
        buckia resolve notes.sqlite 9 --set photo=12
        buckia resolve notes.sqlite 10 --take both
        buckia resolve notes.sqlite --all --open --kind foreign-key --delete
        buckia resolve notes.sqlite --all --open --table tags --take incoming --remember
        buckia resolve notes.sqlite --forget 1
      """)

  @OptionGroup var target: DatabaseOptions

  @Argument(help: ArgumentHelp("The numbers of conflicts.", valueName: "id"))
  var ids: [Int64] = []

  @Option(
    help: ArgumentHelp(
      "The answer: local, incoming (of a merge also ours, theirs), both, same, or a JSON object of columns and their values, such as '{\"title\":\"Both\"}'.",
      valueName: "answer"),
    transform: TypedAnswer.init(parsing:))
  var take: TypedAnswer?

  @Option(
    help: ArgumentHelp(
      "Give a column of the row a value, JSON or else text; may be repeated.", valueName: "column=value"))
  var set: [String] = []

  @Flag(help: "Delete the row.")
  var delete = false

  @Flag(help: "Resolve all conflicts, or all those that --table, --diff, --kind and --open leave.")
  var all = false

  @OptionGroup var filter: ConflictFilterOptions

  @Flag(help: "Keep the answer as a rule for later conflicts with the same question.")
  var remember = false

  @Option(help: ArgumentHelp("Forget a rule, by its number.", valueName: "rule"))
  var forget: Int64?

  @Flag(help: "Overwrite rows that were changed since, and let rows refer to others that are not there.")
  var force = false

  @Flag(help: "Only report what would happen; change nothing.")
  var dryRun = false

  @Option(
    help: ArgumentHelp("Who decides, for the record. Your account's name by default.", valueName: "name"))
  var by: String?

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if forget != nil {
      guard ids.isEmpty, take == nil, set.isEmpty, !delete, !all, !remember else {
        throw ValidationError("--forget stands alone: it takes no ids and no answer.")
      }
      return
    }
    guard [take != nil, !set.isEmpty, delete].count(where: { $0 }) <= 1 else {
      throw ValidationError("--take, --set and --delete contradict each other.")
    }
    guard let answer = try answer() else {
      throw ValidationError(
        "--take says which version counts: local, incoming, or a JSON object; or there is --set or --delete.")
    }
    guard !(ids.isEmpty && !all) else { throw ValidationError("Give the numbers of conflicts, or --all.") }
    guard ids.isEmpty || !all else { throw ValidationError("Numbers and --all contradict each other.") }
    guard all || filter.filter == ConflictFilter() else {
      throw ValidationError("--table, --diff, --kind and --open choose among --all conflicts.")
    }
    guard !remember || answer == .local || answer == .incoming else {
      throw ValidationError("Only local and incoming can be kept as a rule: other answers are about one row.")
    }
  }

  private func answer() throws -> ConflictAnswer? {
    if delete { return .deletion }
    return set.isEmpty ? take?.answer : try TypedAnswer(setting: set).answer
  }

  func perform(on console: Console) throws -> ExitStatus {
    if let rule = forget { return try forget(rule, on: console) }
    guard let answer = try answer() else { return .usage }
    let options = ResolveOptions(decidedBy: by ?? Self.account, isForced: force, remembers: remember, isDryRun: dryRun)
    let manager = target.manager(home: home.folder)
    let report =
      all
      ? try manager.resolve(matching: filter.filter, taking: answer, options: options)
      : try manager.resolve(ids, taking: answer, options: options)
    try console.document(report.json)
    try console.say(report.lines(remembers: remember, style: console.style))
    let referredTo = report.refused.filter { $0.refusal?.code == .repointsRows }.map(\.id)
    guard !referredTo.isEmpty, !dryRun, console.showsText, Confirmation.isPossible else {
      return report.status(remembers: remember)
    }
    try console.flush()
    let numbers = referredTo.map { "#\($0)" }.joined(separator: ", ")
    guard Confirmation.ask("Take the incoming rows of \(numbers), and let those rows refer to them? [y/N] ") else {
      return report.status(remembers: remember)
    }
    let forced = try manager.resolve(
      referredTo, taking: answer,
      options: ResolveOptions(decidedBy: options.decidedBy, isForced: true, remembers: remember))
    try console.say(forced.lines(remembers: remember, style: console.style))
    let isAll = forced.refused.isEmpty && report.refused.count == referredTo.count
    return isAll ? .done : report.status(remembers: remember)
  }

  private func forget(_ rule: Int64, on console: Console) throws -> ExitStatus {
    if dryRun {
      guard try target.manager(home: home.folder).conflictRules().contains(where: { $0.id == rule }) else {
        throw ValidationError("There is no rule with the number \(rule).")
      }
    } else {
      try target.manager(home: home.folder).forgetConflictRule(rule)
    }
    try console.document(["version": 1, "forgotten": .array([.integer(rule)])])
    try console.say(
      dryRun ? "Rule \(rule) would be forgotten." : "Rule \(rule) is forgotten; what it has decided stays.")
    return .done
  }

  /// The name of the account that runs the command.
  static var account: String {
    let environment = ProcessInfo.processInfo.environment
    return environment["LOGNAME"] ?? environment["USER"] ?? ""
  }
}
