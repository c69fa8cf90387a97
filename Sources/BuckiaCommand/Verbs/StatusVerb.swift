import ArgumentParser
import Buckia

/// `buckia status`
struct StatusVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Shows where a database stands: what has arrived, what is open, what to do next.",
    discussion: """
      It lists what you share with whom, and what others share with you: how many diffs have been applied, and how old the newest \
      is, since diffs that are held back on the way cannot be noticed otherwise. With --words it reads all shared rows and prints \
      six words for each person: the words are the same where the rows are.

      Example:
        buckia status notes.sqlite
        buckia status notes.sqlite --words
      """)

  @OptionGroup var target: DatabaseOptions

  @Flag(help: "Print a word fingerprint of the shared rows, which two people can compare.")
  var words = false

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let report = try target.manager(home: home.folder).status(includesWords: words)
    let next = report.nextSteps(database: target.database)
    try console.document(report.json(next: next.map { ($0.reason, $0.command) }))
    try console.say(report.lines(next: next, style: console.style))
    return .done
  }
}
