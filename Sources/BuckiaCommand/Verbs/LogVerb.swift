import ArgumentParser
import Buckia

/// `buckia log`
struct LogVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "log",
    abstract: "Lists every diff file that reached a database, and what became of it.",
    discussion: """
      Example:
        buckia log notes.sqlite
      """)

  @OptionGroup var target: DatabaseOptions

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let entries = try target.manager.log()
    try console.document(entries.json)
    try console.say(entries.lines(style: console.style))
    return .done
  }
}
