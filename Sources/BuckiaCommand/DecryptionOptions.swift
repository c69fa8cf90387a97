import ArgumentParser
import Buckia

/// What opens encrypted files beside the person's own identity, for verbs that read diff files.
struct DecryptionOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A file of identities, yours or age-keygen's, to open encrypted files with; your own identity is used in any case. May be given "
        + "several times.", valueName: "file"))
  var identity: [String] = []

  @Option(
    help: ArgumentHelp("A file with the passphrase of encrypted files, or - for standard input.", valueName: "file"))
  var passphraseFile: String?

  /// Refuses what would read two things from standard input.
  func validate(besides files: [String]) throws {
    guard passphraseFile != ArgumentFile.standardInput || !files.contains(ArgumentFile.standardInput) else {
      throw ValidationError("A file and the passphrase cannot both come from standard input.")
    }
  }

  /// What was given; nil for nothing.
  ///
  /// - Parameter home: Has the passphrase of identities that are protected.
  func decryption(in home: HomeOptions) throws -> FileDecryption? {
    guard !identity.isEmpty || passphraseFile != nil else { return nil }
    return try FileDecryption(
      identities: identity.flatMap { try AgeIdentity.identities(inFile: $0, passphrase: home.passphrase) },
      passphraseBytes: passphraseFile.map { try SecretFile.passphrase(in: ArgumentFile.cipherSource($0)) })
  }
}
