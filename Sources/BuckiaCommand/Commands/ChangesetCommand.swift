import ArgumentParser
import Buckia

/// `buckia changeset`: operations on changes without a database.
struct ChangesetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "changeset",
    abstract: "Inverts, joins, sorts and rebases changes, without a database.",
    discussion: """
      Raw changesets and diff files are taken alike, and - is standard input. A diff file is written when -o ends in \
      .bdiff or is a folder and only diff files went in; otherwise a raw changeset. The result is not signed.

      Example:
        buckia changeset concat monday.changeset tuesday.changeset -o both.changeset
      """,
    subcommands: [
      ChangesetInvertCommand.self, ChangesetConcatCommand.self, ChangesetSortCommand.self, ChangesetRebaseCommand.self,
    ])
}

/// `buckia changeset invert`
struct ChangesetInvertCommand: ChangesetRewriting {
  static let configuration = CommandConfiguration(
    commandName: "invert",
    abstract: "Writes the changes that undo those of a file.",
    discussion: """
      The result takes back the changes that are in the file. It cannot take back how a conflict was decided: a local row \
      that the file has replaced does not come back. `buckia undo` restores that, too.

      Deletes come first, then updates and inserts, each by key. Where a table has more than one change of a row, as in \
      joined files, its changes come in reverse order.

      A patchset cannot be inverted: it does not hold what was there before.

      Example:
        buckia changeset invert today.changeset -o undo.changeset
      """)

  @Argument(help: "The file.")
  var file: String

  @OptionGroup var options: ChangesetOptions

  func changes(watchedOn console: Console) throws -> RewrittenChanges {
    try RewrittenChanges(
      inverting: ArgumentFile.source(file),
      progress: { console.progress.show($0.line("Inverting \(ArgumentFile.name(of: file))")) },
      poll: { try console.progress.check() })
  }
}

/// `buckia changeset concat`
struct ChangesetConcatCommand: ChangesetRewriting {
  static let configuration = CommandConfiguration(
    commandName: "concat",
    abstract: "Joins the changes of files, oldest first, so that each row is changed once.",
    discussion: """
      Example:
        buckia changeset concat monday.changeset tuesday.changeset -o both.changeset
      """)

  @Argument(help: "The files, in the order in which they would be applied.")
  var files: [String]

  @OptionGroup var options: ChangesetOptions

  func changes(watchedOn console: Console) throws -> RewrittenChanges {
    try RewrittenChanges(
      concatenating: ArgumentFile.sources(files),
      progress: { console.progress.show($0.line("Joining \(files.count.counted("file"))")) },
      poll: { try console.progress.check() })
  }
}

/// `buckia changeset sort`
struct ChangesetSortCommand: ChangesetRewriting {
  static let configuration = CommandConfiguration(
    commandName: "sort",
    abstract: "Orders changes by table, then deletes, updates and inserts, each by key.",
    discussion: """
      Changes in this order are applied fastest. A table with more than one change of a row keeps its order.

      Example:
        buckia changeset sort today.changeset -o sorted.changeset
      """)

  @Argument(help: "The file.")
  var file: String

  @OptionGroup var options: ChangesetOptions

  func changes(watchedOn console: Console) throws -> RewrittenChanges {
    try RewrittenChanges(
      sorting: ArgumentFile.source(file),
      progress: { console.progress.show($0.line("Sorting \(ArgumentFile.name(of: file))")) },
      poll: { try console.progress.check() })
  }
}

/// A verb of `changeset`: computes new changes from those of files.
protocol ChangesetRewriting: Subcommand {
  var options: ChangesetOptions { get }

  /// The new changes, with progress on the console.
  func changes(watchedOn console: Console) throws -> RewrittenChanges
}

extension ChangesetRewriting {
  var output: OutputOptions { options.output }

  var printsResult: Bool { options.path == OutputPath.standardOutput }

  /// Writes the changes to the output of the options, and reports them.
  func perform(on console: Console) throws -> ExitStatus {
    let report = try changes(watchedOn: console).write(
      to: OutputPath.diffOutput(options.path, replacing: options.force), home: home.folder)
    try console.show(report.json, report.lines(style: console.style))
    return .done
  }
}

/// `buckia changeset rebase`
struct ChangesetRebaseCommand: ChangesetRewriting {
  static let configuration = CommandConfiguration(
    commandName: "rebase",
    abstract: "Writes what the changes of a file are on top of those of others.",
    discussion: """
      All files were made from the same state. Where the incoming ones are applied to it, and then the result, nothing is \
      in conflict any more: edits of different columns merge, equal ones are left out, and where the two contradict each other, \
      --on-conflict decides. Every such row is listed.

      With the definitions of the tables, UNIQUE values and foreign keys are looked at, too. Diff files bring them; for raw \
      changesets, --schema names a database that has the tables.

      Two copies of a database give the same integer key to different rows. With --remap, the local row gets a new \
      key, and the local rows that refer to it follow.

      Example:
        buckia changeset rebase mine.bdiff --onto theirs.bdiff -o rebased.bdiff
      """)

  @Argument(help: "The file with the changes to rebase.")
  var file: String

  @Option(
    help: ArgumentHelp("A file that is applied before it; may be given more than once, in order.", valueName: "file"))
  var onto: [String]

  @Option(help: ArgumentHelp("Who wins where the changes of a row contradict each other.", valueName: "policy"))
  var onConflict = RebasePolicy.keepLocal

  @Flag(help: "Give local rows new keys where the incoming changes insert other rows with the keys they have.")
  var remap = false

  @Option(
    help: ArgumentHelp("A database that has the tables, for their definitions and the keys in use.", valueName: "db"))
  var schema: String?

  @OptionGroup var options: ChangesetOptions

  func validate() throws {
    guard !onto.isEmpty else { throw ValidationError("Name the changes to rebase onto with --onto.") }
  }

  func changes(watchedOn console: Console) throws -> RewrittenChanges {
    let sources = try ArgumentFile.sources([file] + onto)
    return try RewrittenChanges(
      rebasing: sources[0], onto: Array(sources.dropFirst()),
      options: RebaseOptions(policy: onConflict, remapsKeys: remap, schema: schema),
      progress: { console.progress.show($0.line("Rebasing \(ArgumentFile.name(of: file))")) },
      poll: { try console.progress.check() })
  }
}

extension RebasePolicy: ExpressibleByArgument {}

/// The options of the verbs of `changeset`.
struct ChangesetOptions: ParsableArguments {
  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      OutputPath.help,
      valueName: "path"))
  var path: String?

  @Flag(help: "Replace the file named with -o when it is there already.")
  var force = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    try OutputPath.validate(path, output)
  }
}

extension ChangesetReport {
  /// The report for people.
  func lines(style: Style) -> [String] {
    let first =
      if id != nil {
        "\(style(path.map(\.escaped) ?? "standard output", .strong))  \(ByteCount(bytes)) in \(Elapsed(seconds))"
      } else {
        "Nothing remains to be changed, so no file was written."
      }
    let table = TextTable.lines(.changes(after: [.text("table")]), of: tables, "table", style: style) {
      .changes(after: [.init($0.name.escaped(limit: 60))], $0.inserted, $0.updated, $0.deleted)
    }
    return style.wrapped(first, hanging: 2) + (table.isEmpty ? [] : [""] + table)
      + (rebase?.lines(style: style) ?? [])
      + warnings.map(\.shown).warningLines(style: style)
  }
}

extension RebaseReport {
  /// The conflicts and new keys, for people.
  func lines(style: Style) -> [String] {
    var lines: [String] = []
    if conflictCount > 0 {
      let verb = policy == .keepLocal ? "the local changes are kept" : "the incoming changes are taken"
      lines += [""] + style.wrapped("\(conflictCount.counted("conflict")), \(verb):")
      for conflict in conflicts.prefix(style.listLimit) {
        lines += style.item(conflict.line(style))
      }
      let left = conflictCount - min(conflicts.count, style.listLimit)
      if left > 0 { lines.append(style.rest(left, "conflict", indent: 2)) }
    }
    if !remappedKeys.isEmpty {
      lines += [""] + style.wrapped("\(remappedKeys.count.counted("row")) with a new key:")
      lines += style.listed(remappedKeys, "row") {
        style.item("\($0.table.escaped(limit: 60)) \($0.key) → \($0.newKey)")
      }
    }
    if !remapsKeys, conflicts.contains(where: { $0.kind == .insertedByBoth }) {
      let advice =
        "rows that refer to one which both have inserted mean different rows; --remap gives the local rows keys of their own"
      lines += [advice].warningLines(style: style)
    }
    return lines
  }
}

extension RebaseReport.Conflict {
  fileprivate func line(_ style: Style) -> String {
    let limit = style.isFull ? Int.max : 40
    let name = key.map { "\($0.column.escaped(limit: 40)) \(($0.value ?? .null).shown(limit: limit))" }
      .joined(separator: ", ")
    return "\(table.escaped(limit: 60)) \(name): \(sentence)"
  }

  private var sentence: String {
    let names = columns.listed()
    return switch kind {
    case .updatedByBoth: "both set \(names)"
    case .insertedByBoth: "both insert a row with this key"
    case .deletedByLocal: "the local changes delete it, the incoming ones change it"
    case .deletedByIncoming: "the incoming changes delete it, the local ones change it"
    case .unique: "another row has its \(names)"
    case .undecidedUnique: "whether its \(names) are unique, only the database can tell"
    case .differentBase: "the changes were not made from the same state"
    case .parentLeftOut: "the row that its \(names) refers to is left out"
    }
  }
}
