import ArgumentParser
import Buckia

/// `buckia accept`
struct AcceptVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "accept",
    abstract: "Accepts an invitation: trusts its author, and writes the answer.",
    discussion: """
      It shows who invites, with their fingerprint, and what there is to get, and asks. Compare the fingerprint with the person, over the \
      phone for instance: anybody can make an invitation in any name. The answer is a small file that goes back to them; it does not \
      reveal the secret of the invitation.

      Example:
        buckia accept notes.db anna.invitation -o outbox
        buckia accept notes.db anna.invitation --yes
      """)

  @OptionGroup var target: DatabaseOptions

  @Argument(help: "The file of an invitation, the line itself, or - for standard input.")
  var invitation: String

  @Option(
    help: ArgumentHelp(
      "The contact name of the person who invites you. The name on their card by default.", valueName: "name"))
  var name: String?

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "A folder for the answer, a file that ends in .accept, or - for standard output. By default the folder that the invitation "
        + "names where it is one here, else the current one.",
      valueName: "path"))
  var path: String?

  @Flag(help: "Accept without being asked: you have compared the fingerprint.")
  var yes = false

  @Flag(help: "Replace the file named with -o when it is there already.")
  var force = false

  @OptionGroup var output: OutputOptions

  func validate() throws { try OutputPath.validate(path, output) }

  var printsResult: Bool { path == OutputPath.standardOutput }

  private var read: Invitation {
    get throws {
      switch SignedLine(invitation) {
      case .text(let text): try Invitation(text)
      case .file(let path): try Invitation(contentsOf: path)
      }
    }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let invitation = try read
    let identity = try home.folder.identity()
    let answer = path ?? invitation.localFolder ?? "."
    if !yes {
      guard Confirmation.isPossible, self.invitation != ArgumentFile.standardInput else {
        throw ValidationError(
          "There is no terminal to ask on. Compare the fingerprint \(invitation.card.fingerprint) with "
            + "\(invitation.card.name.escaped(limit: 64)), then accept with --yes.")
      }
      for line in invitation.lines(style: console.errorStyle) { console.remark(line) }
      guard
        Confirmation.ask(
          "Is that what \(invitation.card.name.escaped(limit: 64)) reads to you, and do you accept? [y/N] ")
      else {
        try console.say("Nothing was changed.")
        return .needsPerson
      }
    } else {
      try console.say(invitation.lines(style: console.style))
    }
    let report = try target.manager(home: home.folder).accept(
      invitation, named: name, answer: OutputPath.diffOutput(answer, replacing: force), as: identity)
    try console.document(report.json(of: invitation))
    try console.say(report.lines(of: invitation, database: target.database, style: console.style))
    return .done
  }
}
