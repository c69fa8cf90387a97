import ArgumentParser
import Buckia

/// `buckia changeset`: what can be done with changes without a database.
struct ChangesetVerb: ParsableCommand {
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
      ChangesetInvertVerb.self, ChangesetConcatVerb.self, ChangesetSortVerb.self, ChangesetRebaseVerb.self,
    ])
}

/// `buckia changeset invert`
struct ChangesetInvertVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "invert",
    abstract: "Writes the changes that undo those of a file.",
    discussion: """
      They undo what the author of the file did. Where applying it met a conflict, something else was done here, which \
      they do not undo: a local row that was replaced does not come back.

      Deletes come first, then updates and inserts, each by key. Changes that are in an order of their author's come \
      from the last to the first: those of joined files, and where one row is changed more than once.

      A patchset cannot be inverted: it does not hold what was there before.

      Example:
        buckia changeset invert today.changeset -o undo.changeset
      """)

  @Argument(help: "The file.")
  var file: String

  @OptionGroup var options: ChangesetOptions

  var output: OutputOptions { options.output }

  var printsResult: Bool { options.path == OutputPath.standardOutput }

  func perform(on console: Console) throws -> ExitStatus {
    let changes = try RewrittenChanges(
      inverting: ArgumentFile.source(file),
      progress: { console.progress.show($0.line("Inverting \(ArgumentFile.name(of: file))")) },
      poll: { try console.progress.check() })
    return try options.write(changes, on: console)
  }
}

/// `buckia changeset concat`
struct ChangesetConcatVerb: Verb {
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

  var output: OutputOptions { options.output }

  var printsResult: Bool { options.path == OutputPath.standardOutput }

  func perform(on console: Console) throws -> ExitStatus {
    let changes = try RewrittenChanges(
      concatenating: ArgumentFile.sources(files),
      progress: { console.progress.show($0.line("Joining \(files.count.counted("file"))")) },
      poll: { try console.progress.check() })
    return try options.write(changes, on: console)
  }
}

/// `buckia changeset sort`
struct ChangesetSortVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "sort",
    abstract: "Orders changes by table, then deletes, updates and inserts, each by key.",
    discussion: """
      That is the order in which they are applied fastest. A table in which one row is changed more than once stays \
      as it is.

      Example:
        buckia changeset sort today.changeset -o sorted.changeset
      """)

  @Argument(help: "The file.")
  var file: String

  @OptionGroup var options: ChangesetOptions

  var output: OutputOptions { options.output }

  var printsResult: Bool { options.path == OutputPath.standardOutput }

  func perform(on console: Console) throws -> ExitStatus {
    let changes = try RewrittenChanges(
      sorting: ArgumentFile.source(file),
      progress: { console.progress.show($0.line("Sorting \(ArgumentFile.name(of: file))")) },
      poll: { try console.progress.check() })
    return try options.write(changes, on: console)
  }
}

extension ChangesetOptions {
  /// Writes the changes where and as the options say, and reports it.
  func write(_ changes: RewrittenChanges, on console: Console) throws -> ExitStatus {
    let report = try changes.write(to: OutputPath.diffOutput(path, replacing: force), home: output.home.folder)
    try console.document(report.json)
    try console.say(report.lines(style: console.style))
    return .done
  }
}
