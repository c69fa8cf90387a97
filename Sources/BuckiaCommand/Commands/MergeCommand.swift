import ArgumentParser
import Buckia

/// `buckia merge`
struct MergeCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "merge",
    abstract: "Merges two databases that have been changed apart.",
    discussion: """
      OUT is OURS, with what THEIRS has changed since BASE. Rows and parts of the schema that both have changed are \
      conflicts: OURS stays, unless --on-conflict says otherwise, and `buckia conflicts OUT` shows all versions. Without \
      conflicts, OUT has no trace of the merge.

      Where BASE is an empty file, such as /dev/null, the two have no common base: equal rows are one, and other rows with \
      the same key are conflicts. OUT may be OURS, which is then changed in one transaction.

      Exit codes: 0 merged · 2 merged, with conflicts left, or stopped at one (abort) · 1 failed, OUT is as before.

      Example:
        buckia merge base.sqlite mine.sqlite yours.sqlite -o merged.sqlite
      """)

  @Argument(help: "The database that both began with; an empty file, such as /dev/null, where there is none.")
  var base: String

  @Argument(help: "The database that is merged into.")
  var ours: String

  @Argument(help: "The database whose changes are taken.")
  var theirs: String

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("The merged database: a new file, or OURS itself.", valueName: "path"))
  var path: String

  @OptionGroup var merging: MergingOptions

  @Flag(help: "Only report what would happen; change nothing.")
  var dryRun = false

  @Flag(help: "Replace OUT when it is there already, and merge databases that share no table.")
  var force = false

  @Option(
    help: ArgumentHelp("How long to wait for another program's lock, in milliseconds.", valueName: "milliseconds"))
  var busyTimeout: Int32 = 10_000

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard path != OutputPath.standardOutput else {
      throw ValidationError("A database cannot be written to standard output; name a file.")
    }
    guard busyTimeout >= 0 else { throw ValidationError("--busy-timeout must not be negative.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    var manager = DatabaseManager(ours, home: home.folder)
    manager.busyTimeout = busyTimeout
    var options = merging.options
    options.replacesOutput = force
    options.isDryRun = dryRun
    options.allowsUnrelated = force
    let report = try manager.merge(
      theirs, since: base, into: path, options: options,
      progress: { try console.progress.update($0.line) })
    console.progress.clear()
    try console.show(report.json, report.lines(database: path, style: console.style))
    return report.isClean ? .done : .needsPerson
  }
}

/// A policy for changes that have no id of a diff, which `latest` would compare.
struct PolicyWithoutIDs: ExpressibleByArgument {
  let policy: ConflictPolicy

  init(_ policy: ConflictPolicy) { self.policy = policy }

  init?(argument: String) {
    guard Self.allValueStrings.contains(argument), let policy = ConflictPolicy(rawValue: argument) else { return nil }
    self.policy = policy
  }

  static var allValueStrings: [String] { ConflictPolicy.allCases.filter { $0 != .latest }.map(\.rawValue) }

  var defaultValueDescription: String { policy.rawValue }
}

/// What `merge` and `git` decide about what both sides have changed.
struct MergingOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "What to do where both have changed a row; for one table or column with its name in front. May be given several times.",
      valueName: "[table[.column]=]policy"))
  var onConflict: [MergePolicyChoice] = []

  @OptionGroup var rows: RowOptions

  @Flag(
    inversion: .prefixedNo,
    help:
      "Keep both rows where both sides have added one under the same number: that of THEIRS gets another number, and what refers to it follows."
  )
  var remap = true

  @Option(
    help: ArgumentHelp(
      "A column that has another name in OURS or THEIRS than in BASE, where the definitions do not show it. May be given several times.",
      valueName: "table.old=new"))
  var rename: [ColumnRename] = []

  func validate() throws {
    guard !onConflict.contains(where: { $0.choice.policy == .latest }) else {
      throw ValidationError(
        "The ids of diffs show which of two changes is the later one, and database files have no ids.")
    }
  }

  /// The options for the façade.
  var options: MergeOptions {
    var options = MergeOptions(conflicts: ConflictPolicies(onConflict.map(\.choice)))
    options.renames = rename
    options.remapsKeys = remap
    options.ignoredColumns = rows.ignoredColumns
    options.matches = rows.matches
    return options
  }

  /// The same as arguments.
  var arguments: [String] {
    var arguments = onConflict.flatMap { ["--on-conflict", $0.choice.argument] }
    for choice in rows.ignore { arguments += ["--ignore", "\(choice.table).\(choice.column)"] }
    for choice in rows.match {
      let columns = choice.columns.joined(separator: ",")
      arguments += ["--match", "\(choice.table)(\(columns))"]
    }
    if !remap { arguments.append("--no-remap") }
    for choice in rename { arguments += ["--rename", "\(choice.table).\(choice.oldName)=\(choice.newName)"] }
    return arguments
  }
}

/// What `apply`, `serve`, `merge` and `git` do about columns and rows that differ on both sides without being in conflict.
struct RowOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A column that is never a conflict: rows that are here (in OURS) keep its value, and new rows bring theirs. May be given several times.",
      valueName: "table.column"))
  var ignore: [ColumnChoice] = []

  @Option(
    help: ArgumentHelp(
      "Columns by which rows are the same that both sides have added under different numbers. May be given several times.",
      valueName: "table(columns)"))
  var match: [MatchChoice] = []

  var ignoredColumns: [TableName: [String]] {
    ignore.reduce(into: [:]) { $0[$1.table, default: []].append($1.column) }
  }

  var matches: [TableName: [String]] { match.reduce(into: [:]) { $0[$1.table] = $1.columns } }
}

/// A policy for everything, for a table, or for a column: `POLICY`, `TABLE=POLICY`, `TABLE.COLUMN=POLICY`.
struct PolicyChoice: ExpressibleByArgument {
  let argument: String
  let subject: ConflictPolicies.Subject
  let policy: ConflictPolicy

  init?(argument: String) {
    let parts = argument.parts(beside: "=", last: true)
    guard let policy = ConflictPolicy(rawValue: parts?.behind ?? argument) else { return nil }
    self.argument = argument
    self.policy = policy
    guard let name = parts?.before else {
      subject = .otherwise
      return
    }
    guard !name.isEmpty else { return nil }
    if let column = ColumnChoice(argument: name) {
      subject = .column(column.column, of: column.table.text)
    } else {
      subject = .table(name)
    }
  }

  static var allValueStrings: [String] { ConflictPolicy.allCases.map(\.rawValue) }
  static var defaultCompletionKind: CompletionKind { .list(allValueStrings) }
}

/// A choice for changes that have no id of a diff, which `latest` would compare: that is understood, to say why, and not offered.
struct MergePolicyChoice: ExpressibleByArgument {
  let choice: PolicyChoice

  init?(argument: String) {
    guard let choice = PolicyChoice(argument: argument) else { return nil }
    self.choice = choice
  }

  static var allValueStrings: [String] { PolicyWithoutIDs.allValueStrings }
  static var defaultCompletionKind: CompletionKind { .list(allValueStrings) }
}

extension ConflictPolicies {
  /// What the choices of a command line come to; the last of a subject counts.
  init(_ choices: [PolicyChoice]) {
    self = .keepLocal
    for choice in choices { self[choice.subject] = choice.policy }
  }
}

/// The columns of `--match TABLE(COLUMN,COLUMN)`.
struct MatchChoice: ExpressibleByArgument {
  let table: TableName
  let columns: [String]

  init?(argument: String) {
    guard argument.hasSuffix(")"), let open = argument.firstIndex(of: "("), open > argument.startIndex else {
      return nil
    }
    table = TableName(String(argument[..<open]))
    columns = argument[argument.index(after: open)...].dropLast().split(
      separator: ",", omittingEmptySubsequences: false
    )
    .map { $0.split(separator: " ").joined(separator: " ") }
    guard columns.allSatisfy({ !$0.isEmpty }) else { return nil }
  }
}

extension MergeReport {
  /// The report for people.
  ///
  /// - Parameter database: The path of the result as it was typed, for the commands that are suggested.
  func lines(database: String, style: Style) -> [String] {
    let rows = "\(inserted.counted("row")) inserted, \(updated.grouped) updated, \(deleted.grouped) deleted"
    var lines = style.wrapped("\(style(database.escaped, .strong))  \(rows) in \(Elapsed(seconds))", hanging: 2)
    if !hasBase {
      lines += style.wrapped(
        "There is no base: rows that are equal are one, and others with the same key are conflicts.", hanging: 2)
    }
    lines += style.listed(schemaChanges, "change") {
      style.item("schema: \($0.escaped)")
    }
    lines += unmergedLines(database: database, style: style)
    if isDryRun { lines += ["", "This was a dry run: nothing was changed."] }
    return lines
  }

  /// What was not merged, and what a person has to know and to decide.
  func unmergedLines(database: String, style: Style) -> [String] {
    let warnings = warnings.isEmpty ? [] : [""] + warnings.lines(style: style)
    return skipped.lines(heading: "Not merged:", style: style) + warnings
      + conflictLines(database: database, style: style)
  }

  private func conflictLines(database: String, style: Style) -> [String] {
    var lines: [String] = []
    if !schemaConflicts.isEmpty {
      lines += ["", style("\(schemaConflicts.count.counted("conflict")) in the schema:", .notable)]
      lines += style.listed(schemaConflicts, "conflict") {
        style.item($0.description.escaped)
      }
    }
    guard conflicts > 0 else { return lines }
    lines +=
      ["", style("\(conflicts.counted("conflict")) of rows:", .notable)]
      + conflictCounts.lines(ofMerge: true, style: style)
    if isDryRun {
      let shown = Array(dryRunConflicts.prefix(style.conflictLimit))
      lines += [""] + shown.lines(style: style)
      return shown.count < conflicts ? lines + ["", style.rest(conflicts - shown.count, "conflict")] : lines
    }
    return lines
      + style.suggestion("See \(conflicts == 1 ? "it" : "them") with", "buckia conflicts \(database.shellQuoted)")
  }
}

extension MergeProgress {
  /// What happens, for the line of progress.
  var line: String {
    switch self {
    case .comparing(let progress): progress.line
    case .applying(let rows): "Merging \(rows.counted("change"))"
    }
  }
}
