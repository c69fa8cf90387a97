import ArgumentParser
import Buckia

/// Where the program starts: reads the arguments, runs the verb, and gives every failure its exit code.
@main
enum EntryPoint {
  static func main() {
    do {
      try UnknownVerb.refuse(in: Array(CommandLine.arguments.dropFirst()))
      var command = try RootCommand.parseAsRoot()
      try command.run()
    } catch {
      // Help and the version end up here too, with exit code 0; an exit code alone means the verb has reported already.
      let isUsage = !(error is ExitCode) && RootCommand.exitCode(for: error) == .validationFailure
      if isUsage, CommandLine.arguments.contains("--json") {
        print(ErrorReport(usage: RootCommand.message(for: error)).json.prettyText())
      }
      RootCommand.exit(withError: error)
    }
  }
}
