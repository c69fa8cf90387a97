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

  @OptionGroup var target: DatabaseOptions

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let report = try target.manager(home: home.folder).examine()
    try console.document(report.json)
    try console.say(report.lines(style: console.style))
    return .done
  }
}
