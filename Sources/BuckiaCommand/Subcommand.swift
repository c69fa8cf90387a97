import ArgumentParser
import Buckia
import SQLiteConnections

/// One command of the command line.
protocol Subcommand: ParsableCommand {
  /// How to print.
  var output: OutputOptions { get }

  /// True if the result itself is written to standard output (`-o -`): all text is then written to standard error.
  var printsResult: Bool { get }

  /// Does the work, prints the result, and returns the exit status.
  ///
  /// - Throws: `ValidationError` for arguments that do not fit each other, or an answer that is missing; anything else is
  ///   reported and exits as its kind demands.
  func perform(on console: Console) throws -> ExitStatus
}

extension Subcommand {
  var printsResult: Bool { false }

  /// The folder with the person's own files.
  var home: HomeOptions { output.home }

  /// Runs the command, and converts errors to a message and an exit code.
  func run() throws {
    let console = Console(output, printsResult: printsResult)
    output.extendConnections()
    var status: ExitStatus
    do {
      status = try perform(on: console)
      try console.flush()
    } catch let error where error is ExitCode || error is CleanExit {
      throw error
    } catch let error as ValidationError {
      // Thrown from here, it would be shown with the usage of the whole program and not of this command.
      status = console.report(ErrorReport(usage: error.message))
    } catch {
      status = console.report(ErrorReport(error))
    }
    guard status == .done else { throw ExitCode(status.rawValue) }
  }
}

/// A command that works on one database.
protocol DatabaseSubcommand: Subcommand {
  var target: DatabaseOptions { get }
}

extension DatabaseSubcommand {
  /// The way in to the database.
  var manager: DatabaseManager { target.manager(home: home.folder) }
}

/// How a command went: the exit codes that scripts rely on.
enum ExitStatus: Int32 {
  /// All done.
  case done = 0
  /// Something was refused or failed; the rest was done.
  case failed = 1
  /// A person has to decide.
  case needsPerson = 2
  /// The database is in use; trying again can help.
  case busy = 3
  /// The command was not understood.
  case usage = 64
  /// A person has stopped the command: 128 plus the number of the signal, as in shells.
  case interrupted = 130
}

/// The options of every command.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Print one JSON document instead of text.")
  var json = false

  @Flag(help: "Show whole texts, and lists to their end.")
  var full = false

  @Flag(help: "Print nothing but errors.")
  var quiet = false

  @OptionGroup var home: HomeOptions

  @Option(
    help: ArgumentHelp(
      "A loadable extension of SQLite with functions or collating sequences of the app that made the database. May be given several times.",
      valueName: "file"))
  var load: [String] = []

  @Option(
    help: ArgumentHelp(
      "Compare by BINARY, NOCASE or RTRIM in the place of an app's own collating sequence that sorts alike: `buckia doctor` checks that. May be given several times.",
      valueName: "name=built-in"))
  var collation: [CollationChoice] = []

  /// The app's functions and collating sequences as arguments, for a command that runs later.
  var extensionArguments: [String] {
    load.flatMap { ["--load", $0] } + collation.flatMap { ["--collation", "\($0.name)=\($0.standIn)"] }
  }

  /// Lets every connection that is opened from now on have the app's functions and collating sequences.
  func extendConnections() {
    // A name without a slash is looked for in the folders of the system's libraries.
    ConnectionExtensions.ofProcess.files = load.map { $0.contains("/") ? $0 : "./\($0)" }
    for choice in collation { ConnectionExtensions.ofProcess.collations[choice.name] = choice.standIn }
  }
}

/// `--collation NAME=BUILT-IN`. The name must not be a built-in one, whose indexes would be out of order.
struct CollationChoice: ExpressibleByArgument {
  let name: String
  let standIn: BuiltInCollation

  init?(argument: String) {
    guard let (name, other) = argument.parts(beside: "=", last: true), !name.isEmpty,
      BuiltInCollation(named: name[...]) == nil, let standIn = BuiltInCollation(named: other[...])
    else { return nil }
    self.name = name
    self.standIn = standIn
  }
}

/// The folder with the person's own files.
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
      if let file { return try ArgumentFile.passphrase(file) }
      return try PassphrasePrompt.ask("Passphrase of your identity: ", elsewhere: "--identity-passphrase-file")
    }
  }

  /// True if the secret keys can be used without asking for a passphrase.
  var isOpen: Bool {
    get throws {
      try identityPassphraseFile != nil || Self.variable != nil || folder.isIdentityProtected() != true
    }
  }

  private static var variable: String? {
    ProcessInfo.processInfo.environment["BUCKIA_PASSPHRASE_FILE"].flatMap { $0.isEmpty ? nil : $0 }
  }
}

/// The database a command works on, and how long it waits for it.
struct DatabaseOptions: ParsableArguments {
  @Argument(help: "The database.")
  var database: String

  @Option(
    help: ArgumentHelp("How long to wait for another program's lock, in milliseconds.", valueName: "milliseconds"))
  var busyTimeout: Int32 = 10_000

  func validate() throws {
    guard busyTimeout >= 0 else { throw ValidationError("--busy-timeout must not be negative.") }
  }

  /// The way in to the database.
  ///
  /// - Parameters:
  ///   - home: What belongs to the person.
  ///   - progress: Stops calls that show no progress when the person interrupts them.
  func manager(home: BuckiaHome, polling progress: ProgressLine? = nil) -> DatabaseManager {
    var manager = DatabaseManager(database, home: home)
    manager.busyTimeout = busyTimeout
    if let progress {
      progress.begin()
      // Sound: the manager is used on this thread only.
      nonisolated(unsafe) let progress = progress
      manager.poll = { try progress.check() }
    }
    return manager
  }
}

/// What opens encrypted files beside the person's own identity, for commands that read diff files.
struct DecryptionOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A file of identities, yours or age-keygen's, to open encrypted files with; your own identity is used in any case. May be given "
        + "several times.", valueName: "file"))
  var identity: [String] = []

  @Option(
    help: ArgumentHelp("A file with the passphrase of encrypted files, or - for standard input.", valueName: "file"))
  var passphraseFile: String?

  /// Refuses options that would read standard input twice.
  func validate(besides files: [String]) throws {
    guard passphraseFile != ArgumentFile.standardInput || !files.contains(ArgumentFile.standardInput) else {
      throw ValidationError("A file and the passphrase cannot both come from standard input.")
    }
  }

  /// The given decryption keys; nil for none.
  ///
  /// - Parameter home: Has the passphrase of identities that are protected.
  func decryption(in home: HomeOptions) throws -> FileDecryption? {
    guard !identity.isEmpty || passphraseFile != nil else { return nil }
    return try FileDecryption(
      identities: identity.flatMap { try AgeIdentity.identities(inFile: $0, passphrase: home.passphrase) },
      passphraseBytes: passphraseFile.map { try ArgumentFile.passphrase($0) })
  }
}
