import ArgumentParser
import SQLiteConnections

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
    ConnectionExtensions.ofProcess.files = load
    for choice in collation { ConnectionExtensions.ofProcess.collations[choice.name] = choice.standIn }
  }
}

/// `--collation NAME=BUILT-IN`, where the name is no built-in one's: all its indexes would be out of order.
struct CollationChoice: ExpressibleByArgument {
  let name: String
  let standIn: BuiltInCollation

  init?(argument: String) {
    guard let split = argument.lastIndex(of: "="), split > argument.startIndex,
      BuiltInCollation(named: argument[..<split]) == nil,
      let standIn = BuiltInCollation(named: argument[argument.index(after: split)...])
    else { return nil }
    name = String(argument[..<split])
    self.standIn = standIn
  }
}
