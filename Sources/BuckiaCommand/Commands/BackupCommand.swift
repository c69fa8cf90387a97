import ArgumentParser
import Buckia
import BuckiaBackup
import BuckiaStorage
import BuckiaSync

/// `buckia backup`
struct BackupCommand: DatabaseSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Stores the present state of a database as a point that can be restored.",
    discussion: """
      The first backup stores the whole database, each later one the pages that have changed. Nothing is stored if nothing \
      has changed. The database can be in use.

      Example:
        buckia backup notes.sqlite /media/backups --keep hourly=24,daily=30
        buckia backup notes.sqlite buckia.yaml --drill
      """)

  @OptionGroup var target: DatabaseOptions

  @OptionGroup var place: StoreOptions

  @Option(help: ArgumentHelp("A note to keep with the point.", valueName: "text"))
  var note: String?

  @Option(
    help: ArgumentHelp(
      "Encrypt for a contact, the file of a card, or a recipient age1…; without it, for those of the last backup. No secret key is needed. May be given several times.",
      valueName: "who"))
  var to: [String] = []

  @Option(
    help: ArgumentHelp(
      "Then remove the points that no rule keeps: last=N, hourly=N, daily=N, weekly=N, monthly=N, yearly=N, days=N, size=N.",
      valueName: "rules"))
  var keep: String?

  @Flag(help: "Then restore the point to a temporary file, and check that.")
  var drill = false

  @Flag(help: "Back up a database that is damaged or has lost all tables.")
  var acceptDamage = false

  @Flag(help: "Stop encrypting, although the last backup is encrypted.")
  var unencrypted = false

  @Flag(help: "Do not sign, although there is an identity.")
  var unsigned = false

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let policy = try keep.map { try RetentionPolicy($0) }
    let store = try place.store(in: home, orBegin: true)
    var options = BackupOptions()
    options.note = note
    let recipients = Recipients(in: home.folder)
    options.recipients = try to.map { try recipients.key($0) }
    options.encrypts = !unencrypted
    options.signs = !unsigned
    options.acceptsDamage = acceptDamage
    let identities = try place.identities(in: home)
    let manager = target.manager(home: home.folder, polling: console.progress)
    let run = try waitForTask { [options, drill] in
      try await store.backUp(manager, options, keeping: policy, drills: drill, with: identities)
    }
    try console.document(run.json)
    try console.say(run.lines(style: console.style))
    return run.drill.map { $0.fault == nil } ?? true ? .done : .failed
  }
}

/// The store of a backup command, and the keys for it.
struct StoreOptions: ParsableArguments {
  @Argument(help: "The store: a folder, or the file of settings of `buckia sync`, whose first storage it is then.")
  var store: String

  @OptionGroup var keys: StoreKeys

  /// - Parameter isNew: True if the store may not exist yet.
  func store(in home: HomeOptions, orBegin isNew: Bool = false) throws -> BackupStore {
    try keys.store(store, in: home, orBegin: isNew)
  }

  func identities(in home: HomeOptions) throws -> [AgeIdentity] { try keys.identities(in: home) }
}

/// The secret keys that open an encrypted store.
struct StoreKeys: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A file of identities that opens an encrypted store; your own identity is used in any case. May be given several times.",
      valueName: "file"))
  var identity: [String] = []

  func identities(in home: HomeOptions) throws -> [AgeIdentity] { try home.folder.secretKeys(and: identity) }

  /// - Parameters:
  ///   - path: A folder, or a file of settings.
  ///   - isNew: True if the store may not exist yet.
  func store(_ path: String, in home: HomeOptions, orBegin isNew: Bool = false) throws -> BackupStore {
    guard Self.isSettings(path) else {
      guard isNew || FileSystem.exists(path) else {
        throw StorageError(.notFound, "there is no such store: \(path.escaped)")
      }
      return BackupStore(folder: path)
    }
    return try Self.client(path, in: home).backups
  }

  /// The client of a file of settings.
  static func client(_ path: String, in home: HomeOptions) throws -> BuckiaClient {
    let file = try SyncFile(path, home: home.folder, environment: ProcessInfo.processInfo.environment)
    return try BuckiaClient(file.configuration)
  }

  /// True if a path is that of a file of settings.
  static func isSettings(_ path: String) -> Bool { [".yaml", ".yml", ".json"].contains { path.hasSuffix($0) } }

  /// True if a path is that of a store.
  static func isStore(_ path: String) -> Bool {
    if isSettings(path) { return true }
    do { return try FileSystem.names(in: path).contains { $0.hasSuffix(BackupStore.suffix) } } catch { return false }
  }
}

/// `buckia history`
struct HistoryCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "Lists the points of a backup store.",
    discussion: """
      Example:
        buckia history /media/backups
      """)

  @OptionGroup var place: StoreOptions

  @OptionGroup var output: OutputOptions

  func perform(on console: Console) throws -> ExitStatus {
    let store = try place.store(in: home)
    let identities = try home.isOpen ? place.identities(in: home) : []
    let home = home.folder
    let (points, unreadableCount) = try waitForTask { try await store.history(home: home, with: identities) }
    try console.document(BackupStore.json(of: points, unreadable: unreadableCount))
    if unreadableCount > 0 {
      let advice = "buckia verify \(place.store.shellQuoted)"
      try console.say(console.style.suggestion("\(unreadableCount.counted("object")) cannot be read; see why", advice))
    }
    guard !points.isEmpty else {
      try console.say("The store has no points.")
      return .done
    }
    let style = console.style
    let shown = Array(points.suffix(style.listLimit))
    let isOne = Set(points.map(\.point.history)).count == 1
    if shown.count < points.count { try console.say(style.rest(points.count - shown.count, "older point")) }
    try console.say(
      TextTable(["id", "time (UTC)", .number("size"), .prose("")], of: shown) { $0.cells(isAlone: isOne) }
        .lines(style: style, indent: 0))
    return unreadableCount == 0 && !points.contains(where: \.isBroken) ? .done : .failed
  }
}

extension BackupStore.Entry {
  /// The cells of a row of the list.
  ///
  /// - Parameter isAlone: True if all points are of one history.
  fileprivate func cells(isAlone: Bool) -> [TextTable.Cell] {
    let history = isAlone ? nil : "history \(point.history.prefix(8))"
    let state = isBroken ? "needs an object that is missing" : isVerified ? "verified" : nil
    let note = point.note?.escaped ?? (point.hasEncryptedNote ? "encrypted note" : nil)
    let words = [history, state, note].compactMap { $0 }
    return [
      .init("\(point.id)"), .init(String("\(UTCTime(unixMilliseconds: point.time))".prefix(19))),
      .init("\(ByteCount(Int(byteCount)))"), .init(words.joined(separator: "; ")),
    ]
  }
}

/// `buckia prune`
struct PruneCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "prune",
    abstract: "Removes points of a backup store that no rule keeps.",
    discussion: """
      Pages that a kept point needs are kept with it. Removed points can be brought back for a week.

      Example:
        buckia prune /media/backups --keep hourly=24,daily=30 --dry-run
        buckia prune /media/backups --undo
      """)

  @OptionGroup var place: StoreOptions

  @Option(
    help: ArgumentHelp(
      "The rules: last=N, hourly=N, daily=N, weekly=N, monthly=N, yearly=N, days=N, size=N.", valueName: "rules"))
  var keep: String?

  @Option(help: ArgumentHelp("The history to prune, if the store has several.", valueName: "history"))
  var history: String?

  @Option(help: ArgumentHelp("A recipient that opens the rewritten points of an encrypted store.", valueName: "who"))
  var to: [String] = []

  @Flag(help: "Bring back the points that the last pruning has removed.")
  var undo = false

  @Flag(help: "Delete what is removed at once, and what earlier prunings have removed, so that the space is free.")
  var permanently = false

  @Flag(help: "Say what would be removed, and remove nothing.")
  var dryRun = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (keep != nil) != undo else { throw ValidationError("Give the rules with --keep, or --undo.") }
    guard !undo || !dryRun && !permanently else { throw ValidationError("--dry-run and --permanently are for --keep.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let store = try place.store(in: home)
    let folder = home.folder
    if undo {
      let points = try waitForTask { try await store.restorePruned() }
      try console.document(["version": 1, "points": .array(points.map(\.json))])
      try console.say("\(points.count.counted("point")) brought back.")
      return .done
    }
    let policy = try RetentionPolicy(keep ?? "")
    let identities = try place.identities(in: home)
    let recipients = Recipients(in: folder)
    let keys = try to.map { try recipients.key($0) }
    let (history, isDryRun, isPermanent) = (history, dryRun, permanently)
    let report = try waitForTask {
      try await store.prune(
        keeping: policy, permanently: isPermanent, of: history, home: folder, with: identities, for: keys,
        isDryRun: isDryRun)
    }
    try console.document(report.json(isDryRun: isDryRun))
    try console.say(report.lines(isDryRun: isDryRun, style: console.style))
    return .done
  }
}

extension BackupRun {
  /// The reports for people.
  func lines(style: Style) -> [String] {
    let (size, of) = (ByteCount(Int(backup.byteCount)), backup.isComplete ? "" : " of changes")
    var lines = [
      backup.isNew
        ? "\(backup.point.id)  \(backup.pageCount.counted("page")), \(size)\(of)"
        : "Nothing has changed since \(backup.point.id)."
    ]
    if let pruned { lines += pruned.lines(isDryRun: false, style: style) }
    if let drill {
      lines +=
        drill.fault.map { style.wrapped(style("It cannot be restored: \($0.escaped)", .bad)) } ?? [
          "It was restored to a temporary file and is in order."
        ]
    }
    return lines
  }
}

extension PruneReport {
  /// The report for people.
  func lines(isDryRun: Bool, style: Style) -> [String] {
    var lines = [
      "\(removed.count.counted("point")) \(isDryRun ? "would be removed" : "removed"), \(keptCount.grouped) kept."
    ]
    if isDryRun { lines += removed.map { "  \($0.id)  \(UTCTime(unixMilliseconds: $0.time))" } }
    if !needed.isEmpty {
      lines += style.note(
        "\(needed.count.counted("point")) that no rule keeps stay, because their pages are needed and encrypted; --identity names a key that opens them."
      )
    }
    return lines
  }
}

extension VerifyCommand {
  /// Verifies a backup store.
  func verifyStore(_ path: String, on console: Console) throws -> ExitStatus {
    var keys = StoreKeys()
    keys.identity = decryption.identity
    let stores =
      try StoreKeys.isSettings(path) ? StoreKeys.client(path, in: home).allBackups : [keys.store(path, in: home)]
    let (identities, folder) = (try home.isOpen ? keys.identities(in: home) : [], home.folder)
    let found = try waitForTask {
      var found = BackupVerification()
      for store in stores { found.add(try await store.verify(home: folder, with: identities)) }
      return found
    }
    try console.show(found.json, found.lines(style: console.style))
    return found.faults.isEmpty ? .done : .failed
  }
}

extension BackupVerification {
  /// The result for people.
  func lines(style: Style) -> [String] {
    guard faults.isEmpty else {
      return faults.flatMap { style.wrapped("\(style($0.path.escaped, .bad)): \($0.message.escaped)", hanging: 2) }
    }
    let signed = signers.isEmpty ? "not signed" : "signed by \(signers.count.counted("key"))"
    return ["\(points.count.counted("point")) in order, \(signed)."]
      + restored.map { "\($0.id) was restored to a temporary file and is in order." }
  }
}
