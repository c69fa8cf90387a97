import ArgumentParser
import Buckia

/// `buckia encrypt`
struct EncryptCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "encrypt",
    abstract: "Encrypts a file of any kind, for recipients or with a passphrase.",
    discussion: """
      The file is one of age's (https://age-encryption.org/v1): `age -d` opens it as `buckia decrypt` does. Recipients are your \
      contacts, and public keys that begin with age1, which `age-keygen` makes. Without --to and --passphrase-file, a passphrase is \
      asked for.

      Example:
        buckia encrypt notes.sqlite --to anna
      """)

  @OptionGroup var files: CipherFiles

  @Option(
    help: ArgumentHelp(
      "A contact, the file of a card, or a recipient age1…. May be given several times: each can open the file.",
      valueName: "who"))
  var to: [String] = []

  @Flag(help: "Write text, for places that take no other bytes.")
  var armor = false

  @OptionGroup var output: OutputOptions

  var printsResult: Bool { files.isStandardOutput }

  func validate() throws {
    guard to.isEmpty || files.passphraseFile == nil else {
      throw ValidationError("A file is encrypted for recipients or with a passphrase; give --to or --passphrase-file.")
    }
    try files.validate(output)
  }

  func perform(on console: Console) throws -> ExitStatus {
    var encryption = try makeEncryption()
    encryption.isArmored = armor
    return try files.write(to: files.encrypted, "Encrypt", on: console) { [encryption] in
      try encryption.encrypt($0, to: $1, progress: $2)
    }
  }

  private func makeEncryption() throws -> FileEncryption {
    if !to.isEmpty {
      let recipients = Recipients(in: home.folder)
      return try FileEncryption(to: to.map { try recipients.key($0) })
    }
    return try FileEncryption(passphrase: files.passphrase() ?? PassphrasePrompt.askForNew())
  }
}

/// `buckia decrypt`
struct DecryptCommand: Subcommand {
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

  @OptionGroup var files: CipherFiles

  @Option(help: ArgumentHelp("A file of identities. May be given several times.", valueName: "file"))
  var identity: [String] = []

  @OptionGroup var output: OutputOptions

  var printsResult: Bool { files.isStandardOutput }

  func validate() throws {
    try files.validate(output)
    guard files.decrypted != nil else {
      throw ValidationError("\(files.file) does not end in .age; name the decrypted file with -o.")
    }
  }

  func perform(on console: Console) throws -> ExitStatus {
    guard let written = files.decrypted else { return .usage }
    let decryption = try makeDecryption()
    return try files.write(to: written, "Decrypt", on: console) { try decryption.decrypt($0, to: $1, progress: $2) }
  }

  private func makeDecryption() throws -> FileDecryption {
    if identity.isEmpty, files.passphraseFile == nil, let own = try home.folder.identityIfAny() {
      return try FileDecryption(identities: AgeIdentity.identities(of: own))
    }
    let identities = try identity.flatMap { try AgeIdentity.identities(inFile: $0, passphrase: home.passphrase) }
    let passphrase = try files.passphrase() ?? (identity.isEmpty ? PassphrasePrompt.ask("Passphrase: ") : nil)
    return try FileDecryption(identities: identities, passphraseBytes: passphrase)
  }
}

/// What `encrypt` and `decrypt` read and write.
struct CipherFiles: ParsableArguments {
  private static let standardStream = "-"
  private static let suffix = ".age"

  @Argument(help: ArgumentHelp("The file, or - for standard input.", valueName: "file"))
  var file: String

  @Option(help: ArgumentHelp("A file with the passphrase, or - for standard input.", valueName: "file"))
  var passphraseFile: String?

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "The result, or - for standard output. By default the file's name, with .age if it is encrypted, in the current folder.",
      valueName: "path"))
  var path: String?

  @Flag(help: "Replace a file that is there already.")
  var force = false

  /// True if the result is written to standard output, which is the default for standard input.
  var isStandardOutput: Bool { path == Self.standardStream || (path == nil && file == Self.standardStream) }

  /// The path of the encrypted file.
  var encrypted: String { path ?? (isStandardOutput ? Self.standardStream : file.fileName + Self.suffix) }

  /// The path of the decrypted file; nil if it has to be given.
  var decrypted: String? {
    if let path { return path }
    if isStandardOutput { return Self.standardStream }
    let name = file.fileName
    guard name.hasSuffix(Self.suffix), name.utf8.count > Self.suffix.utf8.count else { return nil }
    return String(name.dropLast(Self.suffix.count))
  }

  /// The given passphrase; nil for none.
  func passphrase() throws -> [UInt8]? { try passphraseFile.map { try ArgumentFile.passphrase($0) } }

  /// Throws if two inputs or outputs would be the same.
  func validate(_ options: OutputOptions) throws {
    guard !options.json || !isStandardOutput else {
      throw ValidationError("--json and the file itself would both go to standard output; name a file with -o.")
    }
    guard file != Self.standardStream || passphraseFile != Self.standardStream else {
      throw ValidationError("The file and the passphrase cannot both come from standard input.")
    }
  }

  /// Writes the result, and reports it. The progress shows how much has been read, and stops the work when the person interrupts it.
  /// Before the first byte, while a passphrase becomes a key, an interruption ends the program at once.
  ///
  /// - Parameters:
  ///   - path: The path of the result.
  ///   - verb: The word for the work.
  ///   - body: Does the work, and returns the number of written bytes.
  func write(
    to path: String, _ verb: String, on console: Console,
    _ body: (CipherSource, DiffOutput.File, @escaping (Int64) throws -> Void) throws -> Int64
  ) throws -> ExitStatus {
    let target: DiffOutput.File =
      isStandardOutput ? .stream { try StandardStream.output.write($0) } : .path(path, replacing: force)
    let byteCount = try body(ArgumentFile.cipherSource(file), target) {
      try console.progress.update("\(verb)ing \(file.fileName.escaped(limit: 40)), \(ByteCount(Int($0)))")
    }
    guard path != Self.standardStream else { return .done }
    try console.say("\(verb)ed into \(path.escaped), \(byteCount.counted("byte")).")
    try console.document(["version": 1, "path": .text(path), "bytes": .integer(byteCount)])
    return .done
  }
}
