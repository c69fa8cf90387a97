import ArgumentParser
import Buckia

/// `buckia`: the list of commands.
struct RootCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "buckia",
    abstract: "Sends changes of one SQLite database to another person's, and applies what they send back.",
    discussion: """
      Anna sends what changed since she and Ben had the same rows:
        buckia diff before.sqlite now.sqlite -o outbox

      Ben puts the file into his inbound folder and applies it, once, whatever happens. His own diff is made from what the \
      snapshot keeps, so that nothing goes back to her that came from her. He makes that before he changes anything:
        buckia snapshot ben.sqlite -o shared.sqlite
        buckia apply ben.sqlite inbound --snapshot shared.sqlite
        buckia conflicts ben.sqlite
        buckia diff shared.sqlite ben.sqlite -o outbox

      Exit codes: 0 all done · 1 something was refused or failed, the rest was done · 2 needs a person · \
      3 busy, try again · 64 the command was not understood.
      """,
    version: Version.text,
    subcommands: [
      InitCommand.self, SnapshotCommand.self, DiffCommand.self, ShareCommand.self, InviteCommand.self,
      AcceptCommand.self, ApplyCommand.self,
      ShowCommand.self,
      VerifyCommand.self, LogCommand.self,
      ConflictsCommand.self, ResolveCommand.self, ServeCommand.self, UndoCommand.self, StatusCommand.self,
      BlameCommand.self,
      DoctorCommand.self,
      ChangesetCommand.self, MergeCommand.self, EncryptCommand.self, DecryptCommand.self, IdentityCommand.self,
      ContactCommand.self,
      BackupCommand.self, HistoryCommand.self, RestoreCommand.self, PruneCommand.self, SyncCommand.self,
      GitCommand.self,
      KSUIDCommand.self, BenchCommand.self, CompletionsCommand.self,
    ])
}

// Recognizes unknown commands.
extension RootCommand {
  /// Requires that the arguments begin with a command, and with a subcommand if it has any.
  ///
  /// - Throws: `ValidationError` with the command that was meant, where one is written much like it.
  static func refuseUnknownCommand(in arguments: [String]) throws {
    var commands = configuration.subcommands
    for argument in arguments {
      guard !commands.isEmpty, !argument.hasPrefix("-"), argument != "help" else { return }
      let names = commands.map { command in command.configuration.commandName ?? "" }
      guard let place = names.firstIndex(of: argument) else {
        throw ValidationError(message(for: argument, among: names))
      }
      commands = commands[place].configuration.subcommands
    }
  }

  private static func message(for word: String, among commands: [String]) -> String {
    let nearest = commands.map { (command: $0, distance: distance(from: word, to: $0)) }.min {
      $0.distance < $1.distance
    }
    let refusal = "There is no command '\(word.escaped(limit: 40))'."
    guard let nearest, nearest.distance <= max(1, nearest.command.count / 3) else {
      return "\(refusal) These are: \(commands.joined(separator: ", "))."
    }
    return "\(refusal) Did you mean '\(nearest.command)'?"
  }

  /// The number of letters to insert, delete, change or swap with the next one; 0 for a missing end after a beginning
  /// of three letters or more.
  static func distance(from word: String, to command: String) -> Int {
    let word = Array(word.prefix(40).lowercased())
    let command = Array(command)
    if word.count >= 3, command.starts(with: word) { return 0 }
    var before: [Int] = []
    var last = Array(0...command.count)
    for (row, letter) in word.enumerated() {
      var next = [row + 1]
      for (column, other) in command.enumerated() {
        var least = min(last[column + 1], next[column]) + 1
        least = min(least, last[column] + (letter == other ? 0 : 1))
        if row > 0, column > 0, letter == command[column - 1], word[row - 1] == other {
          least = min(least, before[column - 1] + 1)
        }
        next.append(least)
      }
      (before, last) = (last, next)
    }
    return last[command.count]
  }
}

// The typed arguments, before they are parsed.
extension RootCommand {
  /// Requires that every argument is UTF-8, because it is converted to text.
  ///
  /// A path can be any bytes. Repaired as UTF-8 it would be another path, which does not exist.
  ///
  /// - Throws: `ValidationError` that shows the bytes.
  static func requireUTF8() throws {
    for place in 1..<max(1, Int(CommandLine.argc)) {
      guard let argument = CommandLine.unsafeArgv[place] else { continue }
      var bytes: [UInt8] = []
      // Sound: each argument ends with a NUL.
      while argument[bytes.count] != 0 { bytes.append(UInt8(bitPattern: argument[bytes.count])) }
      guard !String(decoding: bytes, as: UTF8.self).utf8.elementsEqual(bytes) else { continue }
      let shown = bytes.map { byte in
        (0x20..<0x7f).contains(byte)
          ? String(UnicodeScalar(byte)) : "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
      throw ValidationError(
        "The argument '\(shown.joined())' is not UTF-8, and no other paths can be given. Rename the file, or give the folder that it is in."
      )
    }
  }

  /// A message with escaped arguments: a control character could rewrite the terminal, and a line end forge a line of
  /// ours.
  static func escaped(in message: String) -> String {
    var message = message
    for argument in CommandLine.arguments.dropFirst() {
      // The parser repeats an argument, or the part after its equals sign.
      let value = argument.firstIndex(of: "=").map { String(argument[argument.index(after: $0)...]) }
      for typed in [argument, value ?? ""] where typed != typed.escaped {
        message = message.replacing(typed, with: typed.escaped)
      }
    }
    return message.split(separator: "\n", omittingEmptySubsequences: false).map(\.escaped).joined(separator: "\n")
  }
}

/// `buckia completions`: shell completions.
struct CompletionsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "completions",
    abstract: "Prints completions of commands and options for a shell.",
    discussion: """
      Put it where the shell looks for such files; without a name it is for the shell that $SHELL names.

      Examples:
        buckia completions bash > ~/.local/share/bash-completion/completions/buckia
        buckia completions zsh > "${fpath[1]}/_buckia"
        buckia completions fish > ~/.config/fish/completions/buckia.fish
      """)

  @Argument(
    help: "bash, zsh or fish.", completion: .list(CompletionShell.allCases.map(\.rawValue)),
    transform: Self.shell(named:))
  var shell: CompletionShell?

  // Nothing of it is used here, but every command takes it.
  @OptionGroup var home: HomeOptions

  func run() throws {
    guard let shell = shell ?? CompletionShell.autodetected() else {
      throw ValidationError("$SHELL names none of bash, zsh and fish. Name one: buckia completions bash")
    }
    print(RootCommand.completionScript(for: shell))
  }

  private static func shell(named name: String) throws -> CompletionShell {
    guard let shell = CompletionShell(rawValue: name) else {
      throw ValidationError("there are completions for bash, zsh and fish")
    }
    return shell
  }
}
