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
    let byteCount = try encryption.encrypt(
      cipherPath.source, to: cipherPath.target(written, replacing: force),
      progress: cipherPath.progress("Encrypting", console))
    try CipherPath.report(written, byteCount, "Encrypted", on: console)
    return .done
  }

  private func makeEncryption() throws -> FileEncryption {
    if !to.isEmpty {
      let recipients = Recipients(in: home.folder)
      return try FileEncryption(to: to.map { try recipients.key($0) })
    }
    if let passphraseFile {
      return try FileEncryption(passphrase: ArgumentFile.passphrase(passphraseFile))
    }
    return try FileEncryption(passphrase: PassphrasePrompt.askForNew())
  }
}

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
    let byteCount = try decryption.decrypt(
      cipherPath.source, to: cipherPath.target(written, replacing: force),
      progress: cipherPath.progress("Decrypting", console))
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
    if let passphraseFile { return try ArgumentFile.passphrase(passphraseFile) }
    return identity.isEmpty ? try PassphrasePrompt.ask("Passphrase: ") : nil
  }
}

/// What `encrypt` and `decrypt` read and write.
struct CipherPath {
  private static let standardStream = "-"
  private static let suffix = ".age"

  let input: String
  let output: String?

  /// True if the result is written to standard output, which is the default for standard input.
  var isStandardOutput: Bool { output == Self.standardStream || (output == nil && input == Self.standardStream) }

  /// The input.
  var source: CipherSource { ArgumentFile.cipherSource(input) }

  /// The path of the encrypted file.
  var encrypted: String { output ?? (isStandardOutput ? Self.standardStream : name + Self.suffix) }

  /// The path of the decrypted file; nil if it has to be given.
  var decrypted: String? {
    if let output { return output }
    if isStandardOutput { return Self.standardStream }
    guard name.hasSuffix(Self.suffix), name.utf8.count > Self.suffix.utf8.count else { return nil }
    return String(name.dropLast(Self.suffix.count))
  }

  private var name: String { input.fileName }

  /// The output.
  func target(_ path: String, replacing isReplacing: Bool) -> DiffOutput.File {
    guard isStandardOutput else { return .path(path, replacing: isReplacing) }
    return .stream { try StandardStream.output.write($0) }
  }

  /// Shows how much has been read, and stops when the person interrupts it. Before the first byte, while a passphrase becomes a key, an
  /// interruption ends the program at once.
  func progress(_ activity: String, _ console: Console) -> (Int64) throws -> Void {
    { try console.progress.update("\(activity) \(name.escaped(limit: 40)), \(ByteCount(Int($0)))") }
  }

  /// Throws if two inputs or outputs would be the same.
  func validate(_ options: OutputOptions, passphraseFile: String?) throws {
    guard !options.json || !isStandardOutput else {
      throw ValidationError("--json and the file itself would both go to standard output; name a file with -o.")
    }
    guard input != Self.standardStream || passphraseFile != Self.standardStream else {
      throw ValidationError("The file and the passphrase cannot both come from standard input.")
    }
  }

  /// Prints the written file.
  static func report(_ path: String, _ byteCount: Int64, _ verb: String, on console: Console) throws {
    guard path != standardStream else { return }
    try console.say("\(verb) into \(path.escaped), \(byteCount.counted("byte")).")
    try console.document(["version": 1, "path": .text(path), "bytes": .integer(byteCount)])
  }
}
