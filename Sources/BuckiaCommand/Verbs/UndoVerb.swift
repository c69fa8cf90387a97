import ArgumentParser
import Buckia
import BuckiaReports

/// `buckia undo`
struct UndoVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "undo",
    abstract: "Takes back what diff files did to a database.",
    discussion: """
      Rows that a diff inserted go, those that it deleted or changed get their old values. What has been changed since stays \
      and is a conflict; --on-conflict take-incoming takes it back, too. Tables and columns that the diff made stay. An undo can be \
      taken back, too, by its own id. It happens here only: others keep what they have.

      What diffs did is kept for 30 days, up to 4 MiB: see --undo-days and --undo-size of init.

      Example:
        buckia undo notes.sqlite 0ujtsYcgvSTl8PAuAdqWYSMnLOv
      """)

  @OptionGroup var target: DatabaseOptions

  @Argument(
    help: ArgumentHelp("Ids of diffs, as log shows them; digests of raw changesets without one.", valueName: "id"))
  var ids: [String] = []

  @Option(
    help: ArgumentHelp(
      "Take back all that came from a sender: a contact's name, removed ones included, the key that log shows, or unsigned.",
      valueName: "sender"))
  var sender: [String] = []

  @Option(help: ArgumentHelp("What to do about rows that have been changed since.", valueName: "policy"))
  var onConflict = ConflictPolicy.keepLocal

  @Flag(help: "Say what would happen, and change nothing.")
  var dryRun = false

  @OptionGroup var home: HomeOptions

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if ids.isEmpty && sender.isEmpty { throw ValidationError("Say what to take back: ids, or --sender.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let report = try target.manager(home: home.folder).undo(
      ids.map { .diff($0) } + UndoSubject.senders(named: sender, in: home.folder),
      options: UndoOptions(conflicts: ConflictPolicies(onConflict), isDryRun: dryRun))
    try console.document(report.json)
    try console.say(report.lines(database: target.database, style: console.style))
    return report.skipped.isEmpty ? .done : .failed
  }
}
