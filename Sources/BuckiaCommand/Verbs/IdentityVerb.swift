import ArgumentParser
import Buckia

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `buckia identity`: a person's own keys.
struct IdentityVerb: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "identity",
    abstract: "Makes your keys, and shows the card to give to others.",
    discussion: """
      The keys sign the diffs you make and open what is encrypted for you. They stay in the file identity of your home folder, \
      which nobody else can read. The card is public; whose it is tells only its fingerprint, read out loud.

      Example:
        buckia identity new --name Anna
        buckia identity show > anna.card
      """,
    subcommands: [IdentityNewVerb.self, IdentityShowVerb.self, IdentityRotateVerb.self])
}

/// `buckia identity new`
struct IdentityNewVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "new",
    abstract: "Makes your keys. Keys that are there are never replaced.",
    discussion: """
      Example:
        buckia identity new --name Anna
      """)

  @Option(help: ArgumentHelp("What others see as your name. Your user name by default.", valueName: "name"))
  var name: String?

  @OptionGroup var home: HomeOptions

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let identity = try home.folder.makeIdentity(named: name ?? ProcessInfo.processInfo.userName)
    try console.document(identity.json)
    try console.say("These are the keys of \(identity.name.escaped), in \(home.folder.path.escaped)/identity:")
    try console.say(["", "  \(identity.fingerprint)", ""])
    try console.say(
      console.style.wrapped(
        "Give your card to others, and read them this fingerprint. Keep a copy of the file in a safe place: nobody can make it "
          + "again."))
    try console.say(console.style.suggestion("Write your card", "buckia identity show > my.card"))
    return .done
  }
}

/// `buckia identity show`
struct IdentityShowVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Prints your card: one line to give to others.",
    discussion: """
      The card alone goes to standard output, your name and fingerprint to standard error.

      Example:
        buckia identity show > anna.card
      """)

  @Flag(help: "Print your last rotation instead: what tells those who have an older card of your present keys.")
  var rotation = false

  @Option(help: ArgumentHelp("Another identity than that of your home folder.", valueName: "file"))
  var identity: String?

  @OptionGroup var home: HomeOptions

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let shown = try identity.map { try Identity(contentsOf: $0) } ?? home.folder.identity()
    var text = shown.card.text
    if rotation {
      guard let newest = shown.rotations.last else {
        throw ValidationError("These keys are the first; `buckia identity rotate` makes new ones.")
      }
      text = newest.text
    }
    try console.document(shown.json)
    if console.showsText { console.remark("\(shown.name.escaped)  \(shown.fingerprint)") }
    try console.say(text)
    return .done
  }
}

/// `buckia identity rotate`
struct IdentityRotateVerb: Verb {
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

  @OptionGroup var home: HomeOptions

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let rotation = try home.folder.rotateIdentity()
    try console.document([
      "version": 1, "rotation": .string(rotation.text), "card": rotation.card.json,
    ])
    if console.showsText { console.remark("\(rotation.card.name.escaped)  \(rotation.card.fingerprint)") }
    try console.say(rotation.text)
    return .done
  }
}
