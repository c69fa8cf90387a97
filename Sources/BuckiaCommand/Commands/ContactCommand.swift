import ArgumentParser
import Buckia

/// `buckia contact`: whom a person trusts.
struct ContactCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "contact",
    abstract: "Lists the people you exchange with, and whom of them you trust.",
    discussion: """
      A card that was added is not trusted yet. Compare the fingerprint with its owner, over the phone for instance, and trust it then.

      Example:
        buckia contact add anna.card
        buckia contact trust Anna --fingerprint mzxw-6ytb-oi5d-2qkr-7a3e
      """,
    subcommands: [
      ContactAddCommand.self, ContactListCommand.self, ContactTrustCommand.self, ContactRenameCommand.self,
      ContactRemoveCommand.self,
    ])
}

/// `buckia contact add`
struct ContactAddCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "add",
    abstract: "Adds a card, or the new keys of a contact. Neither is trusted yet.",
    discussion: """
      Example:
        buckia contact add anna.card --name "Anna from work"
      """)

  @Argument(help: "The file of a card or a rotation, the line itself, or - for standard input.")
  var card: String

  @Option(help: ArgumentHelp("The contact's name here. The name on the card by default.", valueName: "name"))
  var name: String?

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let addition = try ArgumentFile.signedLine(
      card, line: { try home.folder.addContact($0, named: name) },
      file: { try home.folder.addContact(contentsOf: $0, named: name) })
    try console.document(addition.json)
    try console.say(lines(addition, style: console.style))
    return .done
  }

  private func lines(_ addition: Contacts.Addition, style: Style) -> [String] {
    let contact = addition.contact
    let name = contact.name.escaped
    let trust = style.suggestion(
      "Compare it with what \(name) reads to you, then trust it", "buckia contact trust \(contact.name.shellQuoted)")
    return switch addition {
    case .added:
      ["\(name) is a contact now, and not trusted yet. The fingerprint of the card is", ""]
        + ["  \(contact.card.fingerprint)", ""] + trust
    case .known: ["\(name) is a contact already (\(contact.state.rawValue)): \(contact.card.fingerprint)"]
    case .proposed:
      [
        "Somebody who has the keys of \(name) proposes new ones. Until you confirm them the old ones count. The new fingerprint is",
        "", "  \(contact.fingerprintToConfirm)", "",
      ] + trust
    }
  }
}

/// `buckia contact list`
struct ContactListCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Lists all contacts, who of them is trusted, and the keys that were removed.",
    discussion: """
      Example:
        buckia contact list
      """)

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let contacts = try home.folder.contacts()
    try console.show(contacts.json, contacts.lines(style: console.style))
    return .done
  }
}

/// `buckia contact trust`
struct ContactTrustCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "trust",
    abstract: "Trusts a contact: shows the fingerprint of their keys, and confirms it.",
    discussion: """
      If the contact proposes new keys, these are confirmed, and the old ones are refused from then on. On a terminal you are asked whether the \
      fingerprint is right. Elsewhere, as in scripts, --fingerprint is required.

      Example:
        buckia contact trust Anna --fingerprint mzxw-6ytb-oi5d-2qkr-7a3e
      """)

  @Argument(help: "The contact.")
  var name: String

  @Option(help: ArgumentHelp("The fingerprint that its owner has given you.", valueName: "fingerprint"))
  var fingerprint: Fingerprint?

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let seen = try home.folder.contact(named: name)
    let compared = fingerprint ?? seen.fingerprintToConfirm
    if fingerprint == nil {
      guard Confirmation.isPossible else {
        throw ValidationError(
          "There is no terminal to ask on. Compare the fingerprint \(compared) with \(seen.name.escaped), then trust them with "
            + "--fingerprint.")
      }
      console.note(
        seen.proposal == nil
          ? "The fingerprint of \(seen.name.escaped) is \(compared)"
          : "\(seen.name.escaped) proposes new keys. Their fingerprint is \(compared)")
      guard Confirmation.ask("Is that what \(seen.name.escaped) reads to you? [y/N] ") else {
        return try console.sayNothingChanged()
      }
    }
    // If the contact was changed since it was shown, the fingerprint has changed, too: this then throws.
    let contact = try home.folder.trustContact(name, fingerprint: compared)
    try console.document(["version": 1, "contact": contact.json])
    try console.say("\(contact.name.escaped) is trusted: \(contact.card.fingerprint)")
    return .done
  }
}

/// `buckia contact rename`
struct ContactRenameCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "rename",
    abstract: "Gives a contact another name. What is shared with them goes on.",
    discussion: """
      Example:
        buckia contact rename Anna "Anna from work"
      """)

  @Argument(help: "The contact.")
  var name: String

  @Argument(help: "The new name.")
  var newName: String

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let contact = try home.folder.renameContact(name, to: newName)
    try console.document(["version": 1, "contact": contact.json])
    try console.say("\(name.escaped) is \(contact.name.escaped) now: \(contact.card.fingerprint)")
    return .done
  }
}

/// `buckia contact remove`
struct ContactRemoveCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Removes a contact for good: nothing signed with their key is applied any more.",
    discussion: """
      The card cannot be added again; the person needs new keys. What was applied stays; `buckia undo --sender` takes it back. \
      On a terminal you are asked whether you are sure. Elsewhere, as in scripts, --yes is required.

      Example:
        buckia contact remove Anna
        buckia contact remove Anna --yes
      """)

  @Argument(help: "The contact.")
  var name: String

  @Flag(help: "Remove the contact without being asked.")
  var yes = false

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let seen = try home.folder.contact(named: name)
    let question =
      "Remove \(seen.name.escaped) for good? Their card cannot be added again, and nothing signed with their key is applied any more."
    guard try yes || Confirmation.require(question) else {
      return try console.sayNothingChanged()
    }
    let contact = try home.folder.removeContact(name)
    try console.document(["version": 1, "removed": contact.json])
    try console.say(
      "\(contact.name.escaped) is removed. Nothing from the key \(contact.card.fingerprint) is taken any more.")
    return .done
  }
}

extension Fingerprint: ExpressibleByArgument {
  /// Reads the value of `--fingerprint`.
  public init?(argument: String) { self.init(argument) }
}

extension Contacts {
  /// The contacts for people.
  func lines(style: Style) -> [String] {
    guard !all.isEmpty || !ended.isEmpty else { return ["There are no contacts. `buckia contact add` takes a card."] }
    var table = TextTable([.text("name"), "state", "fingerprint", "since", .prose("")], of: all) { contact in
      let proposal = contact.proposal.map { "proposes new keys: \($0.rotation.card.fingerprint)" }
      let grounds = contact.grounds == .invitation ? "by an invitation" : ""
      return [
        .init(contact.name.escaped(limit: 40), .strong),
        .init(contact.state.rawValue, contact.state == .trusted ? .good : .notable),
        .init("\(contact.card.fingerprint)"),
        .init("\(UTCTime(unixMilliseconds: contact.trustedAt ?? contact.firstSeen))", .faint),
        .init(proposal ?? grounds, .notable),
      ]
    }
    for key in ended {
      table.add([
        .init(key.name.escaped(limit: 40), .faint), .init(key.reason.rawValue, .faint),
        .init("\(key.fingerprint)", .faint), .init("\(UTCTime(unixMilliseconds: key.endedAt))", .faint), .init(""),
      ])
    }
    return table.lines(style: style, indent: 0)
  }
}
