import ArgumentParser

/// What the three verbs take.
struct ChangesetOptions: ParsableArguments {
  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "A folder, which gets a file named by a new id, the file itself, or - for standard output. The current folder by default.",
      valueName: "path"))
  var path: String?

  @Flag(help: "Replace the file named with -o when it is there already.")
  var force = false

  @OptionGroup var home: HomeOptions

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard !output.json || path != ArgumentFile.standardInput else {
      throw ValidationError("--json and -o - would both write to standard output; choose one.")
    }
  }
}
