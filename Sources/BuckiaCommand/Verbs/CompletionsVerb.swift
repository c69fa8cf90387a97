import ArgumentParser

/// `buckia completions`: what makes shells complete verbs and options.
struct CompletionsVerb: ParsableCommand {
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
