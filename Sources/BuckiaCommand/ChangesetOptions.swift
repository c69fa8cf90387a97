import ArgumentParser

/// What the verbs of `changeset` take.
struct ChangesetOptions: ParsableArguments {
  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      OutputPath.help,
      valueName: "path"))
  var path: String?

  @Flag(help: "Replace the file named with -o when it is there already.")
  var force = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    try OutputPath.validate(path, output)
  }
}
