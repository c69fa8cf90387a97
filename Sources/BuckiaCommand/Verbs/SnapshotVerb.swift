import ArgumentParser
import Buckia

/// `buckia snapshot`
struct SnapshotVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "snapshot",
    abstract: "Makes the first snapshot: the database as others know it.",
    discussion: """
      All that is in DB counts as known to the others: make the snapshot while you and they have the same rows, before you change anything. \
      If you have changed rows since, make it of a copy from before. It is the OLD of `diff`, and \
      `apply --snapshot` keeps it from then on.

      Example:
        buckia snapshot notes.sqlite -o shared.sqlite
      """)

  @OptionGroup var target: DatabaseOptions

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("The snapshot. It replaces an earlier one, and no other database.", valueName: "file"))
  var path: String

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let report = try target.manager(home: home.folder).snapshot(to: path)
    try console.document([
      "version": 1, "path": .string(report.path), "bytes": .integer(report.bytes),
      "replaced": .bool(report.isReplacement),
    ])
    try console.say("\(path.escaped)  \(ByteCount(Int(report.bytes)))")
    try console.say(
      console.style.suggestion(
        "Send what you change with", "buckia diff \(path.shellQuoted) \(target.database.shellQuoted)"))
    return .done
  }
}
