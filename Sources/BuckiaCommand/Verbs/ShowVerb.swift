import ArgumentParser
struct ShowVerb: ParsableCommand {
  static let configuration = CommandConfiguration(commandName: "show", subcommands: [])
}
