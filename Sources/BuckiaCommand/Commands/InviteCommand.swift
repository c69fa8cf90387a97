import ArgumentParser
import Buckia

/// `buckia invite`
struct InviteCommand: DatabaseSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "invite",
    abstract: "Invites one person to get a part of a database.",
    discussion: """
      The invitation is one line of text, for a file, a message or a QR code. It holds a secret that is good for one answer: send it to \
      that person alone. They run `buckia accept`, and `buckia apply` takes their answer here: they are a trusted contact then, and \
      `buckia share --to` with their name makes what they get.

      Example:
        buckia invite photos.db --scope album.json --to ben -o ben.invitation
        buckia invite photos.db --scope album.json | qrencode -o ben.png
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
    let report = try manager.invite(
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
      // Only the line is written to standard output, for another program.
      if console.showsText {
        for line in report.nextLines(style: console.errorStyle) + report.warnings.lines(style: console.errorStyle) {
          console.note(line)
        }
      }
      try console.say(invitation.text)
    }
    return .done
  }
}

/// `buckia accept`
struct AcceptCommand: DatabaseSubcommand {
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

  func perform(on console: Console) throws -> ExitStatus {
    let invitation = try ArgumentFile.signedLine(
      invitation, line: { try Invitation($0) }, file: { try Invitation(contentsOf: $0) })
    let identity = try home.folder.identity()
    let answer = path ?? invitation.localFolder ?? "."
    if !yes {
      guard Confirmation.isPossible, self.invitation != ArgumentFile.standardInput else {
        throw ValidationError(
          "There is no terminal to ask on. Compare the fingerprint \(invitation.card.fingerprint) with "
            + "\(invitation.card.name.escaped(limit: 64)), then accept with --yes.")
      }
      for line in invitation.lines(style: console.errorStyle) { console.note(line) }
      guard
        Confirmation.ask(
          "Is that what \(invitation.card.name.escaped(limit: 64)) reads to you, and do you accept? [y/N] ")
      else {
        return try console.sayNothingChanged()
      }
    } else {
      try console.say(invitation.lines(style: console.style))
    }
    let report = try manager.accept(
      invitation, named: name, answer: OutputPath.diffOutput(answer, replacing: force), as: identity)
    try console.document(report.json(of: invitation))
    try console.say(report.lines(of: invitation, database: target.database, style: console.style))
    return .done
  }
}

extension Invitation {
  /// The inviter and the offer, for people.
  func lines(style: Style) -> [String] {
    let name = card.name.escaped(limit: 64)
    let whom = recipient.map { " to \($0.escaped(limit: 64))" } ?? ""
    var lines = style.wrapped(
      "Invitation from \(style(name, .strong))\(whom). The fingerprint of \(name)'s card is", hanging: 2)
    lines += ["", "  \(card.fingerprint)", ""]
    lines += scopeLines(heading: "You would get", style: style)
    if let folder { lines += style.wrapped("The folder: \(folder.escaped(limit: 200))", hanging: 2) }
    return lines + ["It expires on \(UTCTime(unixMilliseconds: expiresAt)).", ""]
  }

  /// What there is to get.
  func scopeLines(heading: String, style: Style) -> [String] {
    let named = scope.name.map { " \"\($0.escaped(limit: 100))\"" } ?? ""
    var lines = ["\(heading)\(named):"]
    lines += style.listed(scope.tables, "table") { table in
      var line = "\(table.name.escaped(limit: 60)): \(table.rows.escaped(limit: style.isFull ? .max : 300))"
      line +=
        Self.columns(", without ", table.omittedColumns)
        + Self.columns(", with other values in ", table.rewrittenColumns)
      return style.item(line)
    }
    return lines + [""]
  }

  private static func columns(_ heading: String, _ names: [String]) -> String {
    names.isEmpty ? "" : heading + names.listed()
  }
}

extension InvitationReport {
  /// The advice for the next step.
  func nextLines(style: Style) -> [String] {
    let whom = invitation.recipient?.escaped(limit: 64) ?? "the person you invite"
    return style.wrapped(
      "Send it to \(whom) alone, in a way that others cannot read: the first to answer it becomes that contact. It can be answered once, "
        + "until \(UTCTime(unixMilliseconds: invitation.expiresAt)). Your fingerprint, for them to compare, is "
        + "\(invitation.card.fingerprint).")
  }
}

extension AcceptanceReport {
  /// The report for people.
  func lines(of invitation: Invitation, database: String, style: Style) -> [String] {
    var lines: [String] = []
    if let inviter {
      lines.append("\(inviter.name.escaped) is a trusted contact now: \(inviter.card.fingerprint)")
    } else {
      lines += style.wrapped(
        "The invitation was accepted on \(UTCTime(unixMilliseconds: acceptedAt)); nothing has been changed.")
    }
    if let path {
      lines += style.wrapped(
        "Your answer is \(style(path.escaped, .strong)). Once \(invitation.card.name.escaped(limit: 64)) has applied it, what they "
          + "share with you arrives as diff files.")
      lines += style.suggestion("Apply them", "buckia apply \(database.shellQuoted) FOLDER")
    }
    return lines + warnings.lines(style: style)
  }
}

extension InvitationAnswer {
  /// The answer for people.
  ///
  /// - Parameter database: The typed path of the database, for the suggested command.
  func lines(database: String, style: Style, isDryRun: Bool) -> [String] {
    let file = style(path.escaped, .strong)
    switch state {
    case .accepted:
      guard let contact, let invitedAt else { return [] }
      let verb = isDryRun ? "would be" : "is"
      var lines = style.wrapped(
        "\(contact.name.escaped) has accepted your invitation of \(UTCTime(unixMilliseconds: invitedAt)), and \(verb) a contact now, "
          + "trusted because they had its secret: \(contact.card.fingerprint)", hanging: 2)
      if isRemoved { lines += style.wrapped("The answer \(path.escaped) was removed.", hanging: 2) }
      return lines
        + style.suggestion(
          "Make what they get", "buckia share \(database.shellQuoted) --to \(contact.name.shellQuoted)")
    case .alreadyAccepted:
      return style.wrapped("\(file): it was taken before; nothing has been changed.", hanging: 2)
    case .notOurs:
      return style.wrapped("\(file): it answers no invitation from this database, and was left alone.", hanging: 2)
    case .refused:
      return style.wrapped("\(file): \(style("refused", .bad)): \(reason?.escaped ?? "")", hanging: 2)
    }
  }
}
