import ArgumentParser
import Buckia

/// `buckia merge`
struct MergeVerb: Verb {
  static let configuration = CommandConfiguration(
    commandName: "merge",
    abstract: "Merges two databases that have been changed apart.",
    discussion: """
      OUT is OURS, with what THEIRS has changed since BASE. Rows and parts of the schema that both have changed are \
      conflicts: OURS stays, unless --on-conflict says otherwise, and `buckia conflicts OUT` shows all versions. Without \
      conflicts, OUT has no trace of the merge.

      Where BASE is an empty file, such as /dev/null, the two have no common base: equal rows are one, and other rows with \
      the same key are conflicts. OUT may be OURS, which is then changed in one transaction.

      Exit codes: 0 merged · 2 merged, with conflicts left, or stopped at one (abort) · 1 failed, OUT is as before.

      Example:
        buckia merge base.sqlite mine.sqlite yours.sqlite -o merged.sqlite
      """)

  @Argument(help: "The database that both began with; an empty file, such as /dev/null, where there is none.")
  var base: String

  @Argument(help: "The database that is merged into.")
  var ours: String

  @Argument(help: "The database whose changes are taken.")
  var theirs: String

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("The merged database: a new file, or OURS itself.", valueName: "path"))
  var path: String

  @OptionGroup var merging: MergingOptions

  @Flag(help: "Only report what would happen; change nothing.")
  var dryRun = false

  @Flag(help: "Replace OUT when it is there already, and merge databases that share no table.")
  var force = false

  @Option(
    help: ArgumentHelp("How long to wait for another program's lock, in milliseconds.", valueName: "milliseconds"))
  var busyTimeout: Int32 = 10_000

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard path != OutputPath.standardOutput else {
      throw ValidationError("A database cannot be written to standard output; name a file.")
    }
    guard busyTimeout >= 0 else { throw ValidationError("--busy-timeout must not be negative.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    var manager = DatabaseManager(ours, home: home.folder)
    manager.busyTimeout = busyTimeout
    var options = merging.options
    options.replacesOutput = force
    options.isDryRun = dryRun
    options.allowsUnrelated = force
    let report = try manager.merge(
      theirs, since: base, into: path, options: options,
      progress: { try console.progress.update($0.line) })
    console.progress.clear()
    try console.document(report.json)
    try console.say(report.lines(database: path, style: console.style))
    return report.isClean ? .done : .needsPerson
  }
}

/// A policy for changes that have no id of a diff, which `latest` would compare.
struct PolicyWithoutIDs: ExpressibleByArgument {
  let policy: ConflictPolicy

  init(_ policy: ConflictPolicy) { self.policy = policy }

  init?(argument: String) {
    guard Self.allValueStrings.contains(argument), let policy = ConflictPolicy(rawValue: argument) else { return nil }
    self.policy = policy
  }

  static var allValueStrings: [String] { ConflictPolicy.allCases.filter { $0 != .latest }.map(\.rawValue) }

  var defaultValueDescription: String { policy.rawValue }
}
