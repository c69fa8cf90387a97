import ArgumentParser
import Buckia

/// `buckia status`
struct StatusVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Shows where a database stands: what has arrived, what is open, what to do next.",
    discussion: """
      For each stream of diffs it says how far it has been received, and how old the newest of them is: what somebody has held back \
      on the way cannot be noticed in another way. With --words it reads all rows that are shared, and says them in six words for each \
      person: who has the same rows has the same words.

      Example:
        buckia status notes.sqlite
        buckia status notes.sqlite --words
      """)

  @OptionGroup var target: DatabaseOptions

  @Flag(help: "Say the rows that are shared, as they are now, in words that two people can compare.")
  var words = false

  @OptionGroup var home: HomeOptions

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let report = try target.manager(home: home.folder).status(includesWords: words)
    let next = report.nextSteps(database: target.database)
    try console.document(report.json(next: next))
    try console.say(report.lines(next: next, style: console.style))
    return .done
  }
}
