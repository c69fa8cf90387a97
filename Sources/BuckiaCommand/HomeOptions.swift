import ArgumentParser
import Buckia

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Where the person's own files are.
struct HomeOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The folder of what belongs to you and not to a database. $BUCKIA_HOME by default, else one of the system's.",
      valueName: "folder"))
  var home: String?

  @Option(
    help: ArgumentHelp(
      "A file with the passphrase of your identity, where it has one. $BUCKIA_PASSPHRASE_FILE by default, else you are asked.",
      valueName: "file"))
  var identityPassphraseFile: String?

  /// The folder that counts.
  var folder: BuckiaHome {
    var folder = home.map { BuckiaHome(path: $0) } ?? .standard
    folder.passphrase = passphrase
    return folder
  }

  /// The passphrase of the identity, read or asked for when it is needed.
  var passphrase: IdentityPassphrase {
    let file = identityPassphraseFile ?? Self.variable
    return IdentityPassphrase {
      if let file { return try SecretFile.passphrase(in: ArgumentFile.cipherSource(file)) }
      return try PassphrasePrompt.ask("Passphrase of your identity: ", elsewhere: "--identity-passphrase-file")
    }
  }

  private static var variable: String? {
    ProcessInfo.processInfo.environment["BUCKIA_PASSPHRASE_FILE"].flatMap { $0.isEmpty ? nil : $0 }
  }
}
