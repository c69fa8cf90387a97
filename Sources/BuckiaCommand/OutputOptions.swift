import ArgumentParser

/// The options of every command.
struct OutputOptions: ParsableArguments {
  @Flag(help: "Print one JSON document instead of text.")
  var json = false

  @Flag(help: "Show whole texts, and lists to their end.")
  var full = false

  @Flag(help: "Print nothing but errors.")
  var quiet = false

  @OptionGroup var home: HomeOptions
}
