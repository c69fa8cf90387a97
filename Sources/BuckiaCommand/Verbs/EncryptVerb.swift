import ArgumentParser
import Buckia

/// `buckia encrypt`
struct EncryptVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "encrypt",
    abstract: "Encrypts a file of any kind, for recipients or with a passphrase.",
    discussion: """
      The file is one of age's (https://age-encryption.org/v1): `age -d` opens it as `buckia decrypt` does. Recipients are your \
      contacts, and public keys that begin with age1, which `age-keygen` makes. Without --to and --passphrase-file, a passphrase is \
      asked for.

      Example:
        buckia encrypt notes.sqlite --to age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj
      """)

  @Argument(help: ArgumentHelp("The file, or - for standard input.", valueName: "file"))
  var file: String

  @Option(
    help: ArgumentHelp(
      "A contact, the file of a card, or a recipient age1…. May be given several times: each can open the file.",
      valueName: "who"))
  var to: [String] = []

  @Option(help: ArgumentHelp("A file with the passphrase, or - for standard input.", valueName: "file"))
  var passphraseFile: String?

  @Flag(help: "Write text, for places that take no other bytes.")
  var armor = false

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "The encrypted file, or - for standard output. By default the file's name and .age, in the current folder.",
      valueName: "path"))
  var path: String?

  @Flag(help: "Replace a file that is there already.")
  var force = false

  @OptionGroup var output: OutputOptions

  private var cipherPath: CipherPath { CipherPath(input: file, output: path) }

  var printsResult: Bool { cipherPath.isStandardOutput }

  func validate() throws {
    guard to.isEmpty || passphraseFile == nil else {
      throw ValidationError("A file is encrypted for recipients or with a passphrase; give --to or --passphrase-file.")
    }
    try cipherPath.validate(output, passphraseFile: passphraseFile)
  }

  func perform(on console: Console) throws -> ExitStatus {
    var encryption = try makeEncryption()
    encryption.isArmored = armor
    let written = cipherPath.encrypted
    let byteCount = try encryption.encrypt(cipherPath.source, to: cipherPath.target(written, replacing: force))
    try CipherPath.report(written, byteCount, "Encrypted", on: console)
    return .done
  }

  private func makeEncryption() throws -> FileEncryption {
    if !to.isEmpty {
      let recipients = Recipients(in: home.folder)
      return try FileEncryption(to: to.map { try recipients.key($0) })
    }
    if let passphraseFile {
      return try FileEncryption(passphrase: SecretFile.passphrase(in: ArgumentFile.cipherSource(passphraseFile)))
    }
    return try FileEncryption(passphrase: PassphrasePrompt.askForNew())
  }
}
