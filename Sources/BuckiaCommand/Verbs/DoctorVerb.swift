import ArgumentParser
import Buckia

/// `buckia doctor`
struct DoctorVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Explains what of a database replicates, and what does not and why.",
    discussion: """
      Example:
        buckia doctor notes.sqlite
      """)

  @Argument(help: "The database.")
  var database: String

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let report = try DatabaseManager(database).examine()
    try console.document(report.json)
    try console.say(report.lines(style: console.style))
    return .done
  }
}
