import ArgumentParser
import Buckia

/// `buckia changeset rebase`
struct ChangesetRebaseVerb: Verb {
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
        buckia changeset rebase mine.bdiff --onto theirs.bdiff --remap -o rebased.bdiff
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

  var output: OutputOptions { options.output }

  var printsResult: Bool { options.path == OutputPath.standardOutput }

  func validate() throws {
    guard !onto.isEmpty else { throw ValidationError("Name the changes to rebase onto with --onto.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let sources = try ArgumentFile.sources([file] + onto)
    let changes = try RewrittenChanges(
      rebasing: sources[0], onto: Array(sources.dropFirst()),
      options: RebaseOptions(policy: onConflict, remapsKeys: remap, schema: schema),
      progress: { console.progress.show($0.line("Rebasing \(ArgumentFile.name(of: file))")) },
      poll: { try console.progress.check() })
    return try options.write(changes, on: console)
  }
}

extension RebasePolicy: ExpressibleByArgument {}
