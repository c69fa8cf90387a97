import ArgumentParser
import Buckia

/// `buckia undo`
struct UndoCommand: DatabaseSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "undo",
    abstract: "Undoes what diff files did to a database.",
    discussion: """
      Rows that the diff inserted are deleted; rows that it deleted or changed get their old values. Rows changed since then \
      keep their values and are recorded as conflicts; --on-conflict take-incoming overwrites these, too. Tables and columns \
      that the diff created stay. An undo has an id and can be undone. It changes this database only.

      What diffs did is kept for 30 days and up to 4 MiB; `buckia init --undo-days` and `--undo-size` change that. A larger \
      diff cannot be undone, which apply says.

      Example:
        buckia undo notes.sqlite 0ujtsYcgvSTl8PAuAdqWYSMnLOv
      """)

  @OptionGroup var target: DatabaseOptions

  @Argument(
    help: ArgumentHelp("Ids of diffs, as log shows them; digests of raw changesets without one.", valueName: "id"))
  var ids: [String] = []

  @Option(
    help: ArgumentHelp(
      "Take back all diffs of a sender: the name of a contact, also of a removed one, a key or its beginning as log shows it, or unsigned.",
      valueName: "sender"))
  var sender: [String] = []

  @Option(help: ArgumentHelp("What to do about rows that have been changed since.", valueName: "policy"))
  var onConflict = PolicyWithoutIDs(.keepLocal)

  @Flag(help: "Only report what would happen; change nothing.")
  var dryRun = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if ids.isEmpty && sender.isEmpty { throw ValidationError("Say what to undo: ids, or --sender.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let report = try target.manager(home: home.folder, polling: console.progress).undo(
      ids.map { .diff($0) } + UndoSubject.senders(named: sender, in: home.folder),
      options: UndoOptions(conflicts: ConflictPolicies(onConflict.policy), isDryRun: dryRun))
    try console.show(report.json, report.lines(database: target.database, style: console.style))
    return report.skipped.isEmpty ? .done : .failed
  }
}

extension UndoReport {
  /// The report for people.
  ///
  /// - Parameter database: The database's path as it was typed, for the commands that are suggested.
  func lines(database: String, style: Style) -> [String] {
    var lines: [String] = []
    if undone.isEmpty {
      lines.append("There is nothing to undo.")
    } else {
      let heading: TextTable.Column = isDryRun ? "would be undone" : "undone"
      lines += TextTable.lines(
        .changes(after: [heading, .text("by")], before: [.number("conflicts")]), of: undone, "diff", style: style,
        indent: 0
      ) { diff in
        [
          .init(diff.diff), .init("\(diff.id)", .faint), .count(diff.inserted), .count(diff.updated),
          .count(diff.deleted), .count(diff.conflicts, .notable),
        ]
      }
      lines += undone.flatMap(\.warnings).lines(style: style)
    }
    lines += style.listed(skipped, "diff", indent: 0) {
      style.wrapped("\(style($0.diff, .strong)) was not undone: \($0.reason.escaped)", hanging: 2)
    }
    let conflicts = undone.reduce(0) { $0 + $1.conflicts }
    lines += warnings.lines(style: style)
    return lines + (isDryRun ? [] : style.advice(onConflicts: conflicts, in: database))
  }
}
