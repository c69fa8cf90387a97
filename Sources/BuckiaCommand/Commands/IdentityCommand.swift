import ArgumentParser
import Buckia

/// `buckia identity`: a person's own keys.
struct IdentityCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "identity",
    abstract: "Makes your keys, and shows the card to give to others.",
    discussion: """
      The keys sign the diffs you make and open what is encrypted for you. They stay in the file identity of your home folder, \
      which only you can read. The card is public; only its fingerprint, read out loud, proves whose it is.

      Example:
        buckia identity new --name Anna
        buckia identity show > anna.card
      """,
    subcommands: [
      IdentityNewCommand.self, IdentityShowCommand.self, IdentityRotateCommand.self, IdentityPassphraseCommand.self,
    ])
}

/// `buckia identity new`
struct IdentityNewCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "new",
    abstract: "Makes your keys. Keys that are there are never replaced.",
    discussion: """
      With a passphrase the file of the keys is encrypted in age's format, so `age -d` opens it, too. Every command that signs or decrypts \
      asks for it; the card is kept beside it.

      Example:
        buckia identity new --name Anna
        buckia identity new --name Anna --passphrase
      """)

  @Option(help: ArgumentHelp("What others see as your name. Your user name by default.", valueName: "name"))
  var name: String?

  @Flag(help: "Protect the keys with a passphrase, which is asked for twice.")
  var passphrase = false

  @Option(
    help: ArgumentHelp("Protect the keys with the passphrase in a file, or - for standard input.", valueName: "file"))
  var passphraseFile: String?

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if passphrase, passphraseFile != nil { throw ValidationError("Give --passphrase or --passphrase-file, not both.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    var folder = home.folder
    // A passphrase for opening an identity is no request to protect a new one.
    folder.passphrase = try IdentityPassphrase.new(inFile: passphraseFile, asking: passphrase)
    let identity = try folder.makeIdentity(named: name ?? ProcessInfo.processInfo.userName)
    try console.document(identity.json)
    try console.say("These are the keys of \(identity.name.escaped), in \(home.folder.path.escaped)/identity:")
    try console.say(["", "  \(identity.fingerprint)", ""])
    try console.say(
      console.style.wrapped(
        "Give your card to others, and read them this fingerprint. Keep a copy of the file in a safe place: it cannot be made "
          + "again\(folder.passphrase == nil ? "" : ", nor opened without the passphrase")."))
    try console.say(console.style.suggestion("Write your card", "buckia identity show > my.card"))
    return .done
  }
}

/// `buckia identity show`
struct IdentityShowCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Prints your card: one line to give to others.",
    discussion: """
      The card alone goes to standard output, your name and fingerprint to standard error.

      Example:
        buckia identity show > anna.card
      """)

  @Flag(help: "Print all your rotations instead: what tells those who have an older card of your present keys.")
  var rotation = false

  @Option(help: ArgumentHelp("Another identity than that of your home folder.", valueName: "file"))
  var identity: String?

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let shown =
      try identity.map { try Identity(contentsOf: $0, passphrase: home.passphrase).publicPart() }
      ?? home.folder.publicIdentity()
    var text = shown.card.text
    if rotation {
      guard !shown.rotations.isEmpty else {
        throw ValidationError("These keys are the first; `buckia identity rotate` makes new ones.")
      }
      text = shown.rotations.map(\.text).joined(separator: "\n")
    }
    try console.document(shown.json)
    if console.showsText { console.note("\(shown.card.name.escaped)  \(shown.card.fingerprint)") }
    try console.say(text)
    return .done
  }
}

/// `buckia identity rotate`
struct IdentityRotateCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate",
    abstract: "Makes new keys in place of yours, and prints what tells your contacts.",
    discussion: """
      The old key signs nothing any more; what is encrypted for it can still be opened. Send the line to everybody who has your card: \
      they add it, and confirm your new fingerprint.

      Example:
        buckia identity rotate > anna.rotation
        buckia contact add anna.rotation
        buckia contact trust Anna
      """)

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let rotation = try home.folder.rotateIdentity()
    try console.document(rotation.json)
    if console.showsText { console.note("\(rotation.card.name.escaped)  \(rotation.card.fingerprint)") }
    try console.say(rotation.text)
    return .done
  }
}

/// `buckia identity passphrase`
struct IdentityPassphraseCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "passphrase",
    abstract: "Protects your keys with a passphrase, changes it, or removes it.",
    discussion: """
      The new passphrase is asked for twice, or comes from --passphrase-file; the old one is asked for, or comes from \
      --identity-passphrase-file. Copies of the file, and what the disk has kept of it, still open as before.

      Example:
        buckia identity passphrase
        buckia identity passphrase --remove
      """)

  @Option(help: ArgumentHelp("A file with the new passphrase, or - for standard input.", valueName: "file"))
  var passphraseFile: String?

  @Flag(help: "Leave the keys without a passphrase.")
  var remove = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if remove, passphraseFile != nil { throw ValidationError("--remove needs no new passphrase.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let folder = home.folder
    // The old passphrase first: without it a new one is useless.
    _ = try folder.identity()
    let next = try IdentityPassphrase.new(inFile: passphraseFile, asking: !remove)
    try folder.changePassphrase(to: next)
    try console.document(["version": 1, "protected": .bool(next != nil)])
    try console.say(next == nil ? "Your keys have no passphrase now." : "Your keys have a new passphrase now.")
    return .done
  }
}

extension IdentityPassphrase {
  /// A new passphrase: that in a file, or one that is asked for twice; nil for none.
  fileprivate static func new(inFile file: String?, asking asks: Bool) throws -> IdentityPassphrase? {
    guard file != nil || asks else { return nil }
    return try IdentityPassphrase(file.map { try ArgumentFile.passphrase($0) } ?? PassphrasePrompt.askForNew())
  }
}
