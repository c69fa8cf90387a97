import ArgumentParser
import Buckia

/// `buckia decrypt`
struct DecryptVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "decrypt",
    abstract: "Decrypts a file that buckia or age has encrypted.",
    discussion: """
      Identity files are those of `age-keygen`, with lines that begin with AGE-SECRET-KEY-1, and those of `buckia identity new`. Without \
      --identity and --passphrase-file, your own identity is used; if you have none, the passphrase is asked for.

      The file appears when all of it has been found to be authentic. Standard output gets each part as soon as that holds for \
      the part: when the command fails, something is missing.

      Example:
        buckia decrypt notes.sqlite.age --identity key.txt
      """)

  @Argument(help: ArgumentHelp("The encrypted file, or - for standard input.", valueName: "file"))
  var file: String

  @Option(help: ArgumentHelp("A file of identities. May be given several times.", valueName: "file"))
  var identity: [String] = []

  @Option(help: ArgumentHelp("A file with the passphrase, or - for standard input.", valueName: "file"))
  var passphraseFile: String?

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "The decrypted file, or - for standard output. By default the file's name without .age, in the current folder.",
      valueName: "path"))
  var path: String?

  @Flag(help: "Replace a file that is there already.")
  var force = false

  @OptionGroup var output: OutputOptions

  private var cipherPath: CipherPath { CipherPath(input: file, output: path) }

  var printsResult: Bool { cipherPath.isStandardOutput }

  func validate() throws {
    try cipherPath.validate(output, passphraseFile: passphraseFile)
    guard cipherPath.decrypted != nil else {
      throw ValidationError("\(file) does not end in .age; name the decrypted file with -o.")
    }
  }

  func perform(on console: Console) throws -> ExitStatus {
    guard let written = cipherPath.decrypted else { return .usage }
    let decryption = try makeDecryption()
    let byteCount = try decryption.decrypt(cipherPath.source, to: cipherPath.target(written, replacing: force))
    try CipherPath.report(written, byteCount, "Decrypted", on: console)
    return .done
  }

  private func makeDecryption() throws -> FileDecryption {
    if identity.isEmpty, passphraseFile == nil, let own = try home.folder.identityIfAny() {
      return try FileDecryption(identities: AgeIdentity.identities(of: own))
    }
    let identities = try identity.flatMap { try AgeIdentity.identities(inFile: $0, passphrase: home.passphrase) }
    return try FileDecryption(identities: identities, passphraseBytes: passphrase())
  }

  private func passphrase() throws -> [UInt8]? {
    if let passphraseFile { return try SecretFile.passphrase(in: ArgumentFile.cipherSource(passphraseFile)) }
    return identity.isEmpty ? try PassphrasePrompt.ask("Passphrase: ") : nil
  }
}
