import ArgumentParser
import Buckia

/// `buckia apply`
struct ApplyCommand: DatabaseSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "apply",
    abstract: "Applies diff files to a database, each exactly once.",
    discussion: """
      A PATH is a diff file, a raw changeset, or an inbound folder, of which every <KSUID>.bdiff, <KSUID>.bdiff.age and \
      <KSUID>.changeset is applied in the order of their ids. Applied files are removed from folders; refused ones \
      stay, with the reason in the ledger. Answers to your invitations, <KSUID>.accept, are taken first. Nothing is removed from a folder that holds files made from the same database.

      Your next diff is made from a database that has what came, too, or it would go back to its authors. --snapshot \
      keeps that database, without what you have changed and not sent yet:
        buckia diff shared.sqlite notes.sqlite -o outbox
        buckia apply notes.sqlite inbound --snapshot shared.sqlite

      Example:
        buckia apply notes.sqlite inbound
      """)

  @OptionGroup var target: DatabaseOptions

  @Argument(help: "Diff files, raw changesets and inbound folders, or - for standard input.")
  var paths: [String]

  @OptionGroup var conflicts: ConflictOptions

  @Option(
    help: ArgumentHelp(
      "What to do about tables and columns that are missing here: make them (additive), refuse the file (exact), keep "
        + "what is about them until the app's own upgrade has made them (hold), or make this schema the author's, with all "
        + "that it drops and changes (adopt: only for files of your own, or of people who may decide about it).",
      valueName: "mode"))
  var schema = SchemaMode.additive

  @Option(help: "Lets the database's triggers fire, or not. Full-text and R-tree indexes are kept in either case.")
  var triggers = Switch.off

  @Option(help: "Whose files are applied from now on: any sender's, or those of known contacts only.")
  var trust: TrustMode?

  @Option(
    help: ArgumentHelp(
      "How much memory SQLite may take up for pages and sorting, in MiB, or with a unit: 64, 512M, 2G.",
      valueName: "size"))
  var memory = MemorySize.usual

  @Option(
    help: ArgumentHelp(
      "How much one sender may bring in a day by files in folders, in MiB or with a unit. What is above that, or unpacks to improbably much, waits "
        + "until it is named by itself.",
      valueName: "size"))
  var senderLimit = MemorySize(Int(InboundLimits().senderBytes))

  @Option(
    help:
      "What to do about the first diff of a sender whose rows are mostly here already, as in a copy of the database: ask refuses it and says why, same treats rows with the same key as the same rows, apart keeps rows that differ beside each other."
  )
  var copies = CopyPolicy.ask

  @Flag(help: "Leave applied files in their folders.")
  var keep = false

  @Flag(help: "Remove applied files that were named by themselves, too.")
  var remove = false

  @Flag(help: "Only report what would happen; change nothing.")
  var dryRun = false

  @Option(
    help: ArgumentHelp(
      "Write the state of the database that your recipients have: the OLD of your next diff. It replaces an earlier snapshot, and no other file.",
      valueName: "file"))
  var snapshot: String?

  @Flag(help: "Exit with 2 when there were conflicts.")
  var failOnConflict = false

  @OptionGroup var decryption: DecryptionOptions

  @OptionGroup var output: OutputOptions

  func validate() throws {
    try decryption.validate(besides: paths)
    if keep && remove { throw ValidationError("--keep and --remove contradict each other.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let progress = console.progress
    var options = ApplyOptions(
      schema: schema, triggers: triggers == .on, trust: trust, keepsFiles: keep, removesNamedFiles: remove,
      isDryRun: dryRun)
    conflicts.choose(for: &options)
    options.decryption = try decryption.decryption(in: home)
    options.snapshot = snapshot
    options.copies = copies
    options.memoryLimit = memory.bytes
    options.limits.senderBytes = Int64(senderLimit.bytes)
    var failure: ErrorReport?
    let report: ApplyReport
    do {
      report = try manager.processInboundChanges(
        ArgumentFile.sources(paths), options: options,
        progress: { try progress.update($0.line) })
    } catch let interruption as ApplyInterruption {
      report = interruption.report
      failure =
        interruption.cause is CancellationError
        ? ErrorReport(
          code: BuckiaErrorCode.cancelled.rawValue,
          message: "Interrupted: the files above were applied, the others were not",
          status: .interrupted)
        : ErrorReport(interruption.cause)
    }
    progress.clear()
    try console.document(report.json(failure: failure))
    try console.say(report.lines(database: target.database, style: console.style))
    if let failure { try console.explain(failure) }
    return report.status(failure: failure, failsOnConflict: failOnConflict)
  }
}

/// What `apply` and `serve` do about rows that differ here from what their sender had.
struct ConflictOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "What to do about a conflict: a change of a row that differs here from what its sender had; for one table or column with its name in front. May be given several times.",
      valueName: "[table[.column]=]policy"))
  var onConflict: [PolicyChoice] = []

  @OptionGroup var rows: RowOptions

  /// Sets what was chosen.
  func choose(for options: inout ApplyOptions) {
    options.conflicts = ConflictPolicies(onConflict)
    options.ignoredColumns = rows.ignoredColumns
    options.matches = rows.matches
  }
}

/// `on` or `off`.
enum Switch: String, ExpressibleByArgument, CaseIterable {
  case off
  case on
}

extension ConflictPolicy: ExpressibleByArgument {}
extension SchemaMode: ExpressibleByArgument {}
extension TrustMode: ExpressibleByArgument {}

extension CopyPolicy: ExpressibleByArgument {}

/// An amount of memory or of bytes, as people write it: `256` in MiB, or with a unit.
struct MemorySize: ExpressibleByArgument {
  let bytes: Int

  /// The default.
  static let usual = MemorySize(ApplyOptions().memoryLimit)

  private static let units = ["": 20, "k": 10, "m": 20, "g": 30, "kib": 10, "mib": 20, "gib": 30]

  init(_ bytes: Int) { self.bytes = bytes }

  /// Nil when the text is no amount of at least 1 MiB.
  init?(argument: String) {
    let digits = argument.prefix { $0.isASCII && $0.isNumber }
    let unit = argument.dropFirst(digits.count).lowercased()
    guard let number = Int(digits), let shift = Self.units[unit], number <= Int.max >> shift else { return nil }
    bytes = number << shift
    guard bytes >= 1 << 20 else { return nil }
  }

  var defaultValueDescription: String { "\(bytes >> 20)" }
}
