import ArgumentParser
struct ChangesetVerb: ParsableCommand {
  static let configuration = CommandConfiguration(commandName: "changeset", subcommands: [])
}
