import ArgumentParser
import Buckia

/// What `merge` and `git` decide about what both sides have changed.
struct MergingOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "What to do where both have changed a row; for one table or column with its name in front. May be given several times.",
      valueName: "[table[.column]=]policy"))
  var onConflict: [PolicyChoice] = []

  @Option(
    help: ArgumentHelp(
      "A column that is never a conflict and stays as in OURS, but in new rows. May be given several times.",
      valueName: "table.column"))
  var ignore: [ColumnChoice] = []

  @Option(
    help: ArgumentHelp(
      "Columns by which rows are the same that both have added under different numbers. May be given several times.",
      valueName: "table(columns)"))
  var match: [MatchChoice] = []

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
    guard !onConflict.contains(where: { $0.policy == .latest }) else {
      throw ValidationError(
        "Which of two changes is the later one is told by the ids of diffs, and database files have none.")
    }
  }

  /// The options for the façade.
  var options: MergeOptions {
    var options = MergeOptions(conflicts: ConflictPolicies(onConflict))
    options.renames = rename
    options.remapsKeys = remap
    for choice in ignore { options.ignoredColumns[choice.table, default: []].append(choice.column) }
    for choice in match { options.matches[choice.table] = choice.columns }
    return options
  }

  /// The same as arguments.
  var arguments: [String] {
    var arguments = onConflict.flatMap { ["--on-conflict", $0.argument] }
    for choice in ignore { arguments += ["--ignore", "\(choice.table).\(choice.column)"] }
    for choice in match {
      let columns = choice.columns.joined(separator: ",")
      arguments += ["--match", "\(choice.table)(\(columns))"]
    }
    if !remap { arguments.append("--no-remap") }
    for choice in rename { arguments += ["--rename", "\(choice.table).\(choice.oldName)=\(choice.newName)"] }
    return arguments
  }
}

/// A policy for everything, for a table, or for a column: `POLICY`, `TABLE=POLICY`, `TABLE.COLUMN=POLICY`.
struct PolicyChoice: ExpressibleByArgument {
  let argument: String
  let subject: ConflictPolicies.Subject
  let policy: ConflictPolicy

  init?(argument: String) {
    let sign = argument.lastIndex(of: "=")
    guard
      let policy = ConflictPolicy(
        rawValue: String(argument[(sign.map(argument.index(after:)) ?? argument.startIndex)...]))
    else { return nil }
    self.argument = argument
    self.policy = policy
    guard let sign else {
      subject = .otherwise
      return
    }
    let name = String(argument[..<sign])
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
