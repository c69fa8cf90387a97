import ArgumentParser
import Buckia

/// `buckia resolve`
struct ResolveCommand: DatabaseSubcommand {
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
        buckia resolve notes.sqlite --all --open --table tags --take local --remember
        buckia resolve notes.sqlite --forget 1
      """)

  @OptionGroup var target: DatabaseOptions

  @Argument(help: ArgumentHelp("The numbers of conflicts.", valueName: "id"))
  var ids: [Int64] = []

  @Option(
    help: ArgumentHelp(
      "The answer: local, incoming (of a merge also ours, theirs), both, same, or a JSON object of columns and their values, such as '{\"title\":\"Both\"}'.",
      valueName: "answer"),
    transform: ConflictAnswer.init(parsing:))
  var take: ConflictAnswer?

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
    return set.isEmpty ? take : try ConflictAnswer(setting: set)
  }

  func perform(on console: Console) throws -> ExitStatus {
    if let rule = forget { return try forget(rule, on: console) }
    guard let answer = try answer() else { return .usage }
    let options = ResolveOptions(decidedBy: by ?? Self.account, isForced: force, remembers: remember, isDryRun: dryRun)
    let manager = target.manager(home: home.folder, polling: console.progress)
    let report =
      all
      ? try manager.resolve(matching: filter.filter, taking: answer, options: options)
      : try manager.resolve(ids, taking: answer, options: options)
    try console.show(report.json, report.lines(remembers: remember, style: console.style))
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
      guard try manager.conflictRules().contains(where: { $0.id == rule }) else {
        throw ValidationError("There is no rule with the number \(rule).")
      }
    } else {
      try manager.forgetConflictRule(rule)
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

extension ConflictAnswer {
  /// The answer to a conflict as a person types it: `local`, `incoming` (or `ours`, `theirs`, as merges call them), `both`, `same`, or
  /// a JSON object of columns and their values.
  ///
  /// - Throws: `ValidationError` that says what is wrong with the argument.
  init(parsing argument: String) throws {
    let words: [String: ConflictAnswer] = [
      "local": .local, "incoming": .incoming, "both": .both, "same": .same, "ours": .local, "theirs": .incoming,
    ]
    if let answer = words[argument] {
      self = answer
      return
    }
    let document: JSONValue
    do {
      document = try JSONParser.parse(Array(argument.utf8), numbers: .all)
    } catch {
      throw ValidationError("It is none of local, incoming, both and same, nor JSON: \(error).")
    }
    guard case .object(let object) = document, !object.members.isEmpty else {
      throw ValidationError("It is JSON, but no object of columns and their values.")
    }
    var values: [String: ChangesetValue] = [:]
    for member in object.members {
      guard let value = ChangesetValue(json: member.value) else {
        throw ValidationError("The value of \(member.name.escaped) is none that a column can have.")
      }
      values[member.name] = value
    }
    self = .values(values)
  }

  /// The answer of `--set`: values of columns, each as `COLUMN=VALUE`, where the value is JSON or else text.
  ///
  /// - Throws: `ValidationError` that says what is wrong with an argument.
  init(setting arguments: [String]) throws {
    var values: [String: ChangesetValue] = [:]
    for argument in arguments {
      guard let (column, text) = argument.parts(beside: "="), !column.isEmpty else {
        throw ValidationError("--set needs a column and its value: \(argument.escaped) is not COLUMN=VALUE.")
      }
      guard values.updateValue(Self.value(text), forKey: column) == nil else {
        throw ValidationError("--set has two values for \(column.escaped).")
      }
    }
    self = .values(values)
  }

  /// A value as it was typed: what is no JSON is text.
  private static func value(_ text: String) -> ChangesetValue {
    do {
      return try ChangesetValue(json: JSONParser.parse(Array(text.utf8), numbers: .all)) ?? .text(text)
    } catch {
      return .text(text)
    }
  }
}

extension ResolveReport {
  /// How it went, as an exit code: a row that was changed since waits for a person.
  ///
  /// - Parameter remembers: True if the answers were to be kept as rules.
  func status(remembers: Bool) -> ExitStatus {
    if counts.refused > counts.changedSince { return .failed }
    if counts.refused > 0 { return .needsPerson }
    return remembers && counts.withoutRule > 0 ? .failed : .done
  }

  /// The report for people.
  ///
  /// - Parameter remembers: True if the answers were to be kept as rules.
  func lines(remembers: Bool, style: Style) -> [String] {
    guard !conflicts.isEmpty else { return ["There are no such conflicts."] }
    // Those that need attention come first, where not all are shown.
    let shown = (conflicts.count > style.listLimit ? refused + resolved : conflicts).prefix(style.listLimit)
    var lines = shown.enumerated().flatMap { index, conflict in
      (index > 0 ? [""] : []) + conflict.lines(isDryRun: isDryRun, style: style)
    }
    if shown.count < counts.total { lines += ["", style.rest(counts.total - shown.count, "conflict")] }
    lines += [""] + style.wrapped(summary, hanging: 2)
    if remembers { lines += ruleLines(style: style) }
    lines += style.listed(violations, "such row", indent: 0) {
      style.note("a row was left so that \($0.escaped)")
    }
    for warning in warnings {
      lines += style.note(warning.shown.escaped)
    }
    if refused.contains(where: \.canBeForced) {
      lines += style.wrapped("--force writes the row anyway.")
    }
    return lines
  }

  /// How many conflicts were resolved, in a sentence.
  var summary: String {
    let did = isDryRun ? "This was a dry run: nothing was changed. It would resolve" : "Resolved"
    let left =
      counts.refused == 0
      ? "" : "; \(counts.refused.counted("conflict")) \(counts.refused == 1 ? "was" : "were") not resolved"
    return "\(did) \(counts.resolved.counted("conflict")), \(counts.changed.counted("row")) changed\(left)."
  }

  /// What was remembered, and what could not be.
  func ruleLines(style: Style) -> [String] {
    var lines = rules.flatMap { style.wrapped("Remembered as rule \($0.id): \($0.sentence).", hanging: 2) }
    let without = counts.withoutRule
    if without > 0 {
      let reason =
        "no rule can decide \(without.counted("conflict")) of these: only where two versions of a row meet (data, conflict) is "
        + "there anything to choose"
      lines += style.note(reason)
    }
    return lines
  }
}

extension ResolvedConflict {
  /// What a person calls the row.
  var label: String? { (before ?? after).flatMap { RowLabel.text(of: $0) } }

  /// True if `--force` helps.
  var canBeForced: Bool {
    [.rowChanged, .brokenReference, .repointsRows].contains(refusal?.code)
  }

  /// The conflict for people: the row before and after, or why it was not resolved.
  fileprivate func lines(isDryRun: Bool, style: Style) -> [String] {
    let name =
      table.isEmpty
      ? "" : "  \(style(table.escaped(limit: 60), .strong)), \(ConflictRecord.shownKey(key, label: label))"
    var lines = style.wrapped("\(style("#\(id)", .strong))\(name)", hanging: 4)
    if let refusal {
      lines += style.item("\(style("Not resolved:", .bad)) \(refusal.reason.escaped).")
      return lines + differenceLines(refusal.differences, style: style)
    }
    lines += style.item("\(sentence(isDryRun: isDryRun)).")
    if !unknownColumns.isEmpty {
      let columns = unknownColumns.listed()
      lines += style.item("Not known, so left to their defaults: \(columns).")
    }
    if !lostColumns.isEmpty {
      let columns = lostColumns.listed()
      lines += style.item("Not in the table any more, so left out: \(columns).")
    }
    return hasChanged ? lines + changeLines(style: style) : lines
  }

  /// What has become of the row, without a full stop.
  func sentence(isDryRun: Bool) -> String {
    let would = isDryRun ? "would be" : "was"
    return switch (before != nil, after != nil) {
    case _ where !hasChanged: "The row has these values already"
    case (false, _): "The row \(would) inserted"
    case (true, false): "The row \(would) deleted"
    case (true, true): "The row \(would) changed"
    }
  }

  private func changeLines(style: Style) -> [String] {
    let changed = (before ?? after ?? []).enumerated().map { (column: $1.column, before?[$0].value, after?[$0].value) }
      .filter { $0.1 != $0.2 }
    return TextTable([.text("column"), "before", "after"], of: changed) { column, old, new in
      [.init(column.escaped(limit: 40))] + Self.cells([old, new], [before != nil, after != nil], style)
    }.lines(style: style)
  }

  private func differenceLines(_ differences: [Difference], style: Style) -> [String] {
    TextTable([.text("column"), "known", "now"], of: differences) { difference in
      [.init(difference.column.escaped(limit: 40))]
        + Self.cells([difference.known, difference.present], [true, before != nil], style)
    }.lines(style: style)
  }

  private static func cells(_ versions: [ChangesetValue?], _ exist: [Bool], _ style: Style) -> [TextTable.Cell] {
    var shown = ChangesetValue.shown(versions.compactMap { $0 }, limit: style.isFull ? .max : 30)
    return zip(versions, exist).map { value, exists in
      guard exists else { return .init("no row", .faint) }
      return value == nil ? .init("·", .faint) : .init(shown.removeFirst())
    }
  }
}
