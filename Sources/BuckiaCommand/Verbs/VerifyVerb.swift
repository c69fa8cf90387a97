import ArgumentParser
import Buckia

/// `buckia verify`
struct VerifyVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Opens and checks diff files completely, and changes nothing.",
    discussion: """
      Exits with 1 when any file is not in order.

      Example:
        buckia verify inbound
      """)

  @Argument(help: "Diff files, raw changesets and inbound folders, or - for standard input.")
  var paths: [String]

  @OptionGroup var decryption: DecryptionOptions

  @OptionGroup var output: OutputOptions

  func validate() throws { try decryption.validate(besides: paths) }

  func perform(on console: Console) throws -> ExitStatus {
    let report = try DiffInspection.verify(
      ArgumentFile.sources(paths), home: home.folder, decryption: decryption.decryption(in: home),
      progress: { console.progress.show($0.line) }, poll: { try console.progress.check() })
    try console.document(report.json)
    try console.say(report.lines(style: console.style))
    return report.files.allSatisfy(\.isGood) ? .done : .failed
  }
}
