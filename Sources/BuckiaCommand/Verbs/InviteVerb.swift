import ArgumentParser
import Buckia

/// `buckia invite`
struct InviteVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "invite",
    abstract: "Invites one person to get a part of a database.",
    discussion: """
      The invitation is one line of text, for a file, a message or a QR code. It holds a secret that is good for one answer: send it to \
      that person alone. They run `buckia accept`, and `buckia apply` takes their answer here: they are a trusted contact then, and \
      `buckia share --to` with their name makes what they get.

      Example:
        buckia invite photos.db --scope album.json --to ben -o ben.invitation
        buckia invite photos.db --scope album.json --folder /mnt/shared | qrencode -o ben.png
      """)

  @OptionGroup var target: DatabaseOptions

  @Option(help: ArgumentHelp("A file that says what is shared, or - for standard input.", valueName: "file"))
  var scope: String

  @Option(help: ArgumentHelp("The contact name of the person. The name on their card by default.", valueName: "name"))
  var to: String?

  @Option(
    help: ArgumentHelp("Where the files of both are going to be: a folder or a URL.", valueName: "folder"))
  var folder: String?

  @Option(help: ArgumentHelp("How many days the invitation is taken, 1 to 365.", valueName: "days"))
  var expires = 7

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("A file for the invitation. Standard output by default.", valueName: "file"))
  var path: String?

  @Flag(help: "Replace the file named with -o when it is there already.")
  var force = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (1...365).contains(expires) else { throw ValidationError("--expires is from 1 to 365 days.") }
    try OutputPath.validate(path, output)
  }

  func perform(on console: Console) throws -> ExitStatus {
    var options = InvitationOptions()
    options.recipient = to
    options.folder = folder
    options.days = expires
    let file = path == OutputPath.standardOutput ? nil : path
    if let file, ArgumentFile.isThere(file), !force {
      throw ValidationError("\(file.escaped) is there already; --force replaces it.")
    }
    let report = try target.manager(home: home.folder).invite(
      scope == ArgumentFile.standardInput ? .standardInput() : ShareScope(contentsOf: scope), options: options,
      as: home.folder.identity())
    let invitation = report.invitation
    try console.document(report.json(path: file))
    if let file {
      try invitation.write(to: file, replacing: force)
      try console.say("\(console.style(file.escaped, .strong))  \(invitation.text.utf8.count.counted("byte"))")
      try console.say("")
      try console.say(invitation.scopeLines(heading: "It offers", style: console.style))
      try console.say(report.nextLines(style: console.style))
      try console.say(report.warnings.lines(style: console.style))
    } else {
      // The line alone goes to standard output, for another program.
      if console.showsText {
        for line in report.nextLines(style: console.errorStyle) + report.warnings.lines(style: console.errorStyle) {
          console.remark(line)
        }
      }
      try console.say(invitation.text)
    }
    return .done
  }
}
