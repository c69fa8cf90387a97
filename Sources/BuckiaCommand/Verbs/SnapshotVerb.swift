import ArgumentParser
import Buckia

/// `buckia snapshot`
struct SnapshotVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "snapshot",
    abstract: "Make the first snapshot of a database, which a diff starts from.",
    discussion: """
      Example:
        buckia snapshot notes.sqlite -o shared.sqlite

      All that is in DB counts as sent: make the snapshot while you and your recipients have the same rows, before you change anything. \
      If you have changed rows since, make it of a copy from before. It is the OLD of `diff`, and \
      `apply --snapshot` keeps it up to date.
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
