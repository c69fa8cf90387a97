import ArgumentParser
import Buckia
import BuckiaBackup
import BuckiaSync

/// `buckia restore`
struct RestoreCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Restores a point of a backup store to a database file, or rows of it to a database in use.",
    discussion: """
      Without --at it is the newest point. A file is replaced only with --force; what it was becomes a point first.

      With --table or --scope, rows come back as a diff that is applied like any other: `buckia undo` takes it back, and \
      the next share sends it. Rows that they refer to come back, too, if they were deleted.

      Example:
        buckia restore /media/backups notes.sqlite
        buckia restore /media/backups notes.sqlite --at "2026-03-01 12:30"
        buckia restore /media/backups notes.sqlite --table note --key id=7 --dry-run
        buckia restore /media/backups photos.sqlite --table photo --where 'album = 3'
        buckia restore --litestream /media/replica notes.sqlite
        buckia restore --litestream s3://bucket/folder notes.sqlite
      """)

  @Argument(help: "The store, a folder or the file of settings of `buckia sync`, and the database file.")
  var paths: [String]

  @Option(
    help: ArgumentHelp(
      "Restore from a replica of Litestream in a folder, or at s3://bucket/folder with the credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; --at is then a time, before which it is the newest, or the number of a transaction in hexadecimal.",
      valueName: "replica"))
  var litestream: String?

  @Option(
    help: ArgumentHelp(
      "The point: its id, or a time in UTC, before which it is the newest. A date alone means 00:00.",
      valueName: "time|id"))
  var at: String?

  @Option(help: ArgumentHelp("The history of the point, if the store has several.", valueName: "history"))
  var history: String?

  @Flag(help: "Replace the content of a database that is there, also while it is in use.")
  var force = false

  @OptionGroup var rows: ScopeOptions

  @Option(
    help: ArgumentHelp(
      "Only rows of the --table with a value in a column, such as that of the key. Once for each column.",
      valueName: "column=value"),
    transform: BlameCommand.key(parsing:))
  var key: [(column: String, value: ChangesetValue)] = []

  @Flag(help: "Delete the rows of --table or --scope that the point does not have.")
  var deleteNewer = false

  @Option(
    help: ArgumentHelp(
      "What to do about rows that have other values here; take-incoming by default, for the values of the point.",
      valueName: "[table[.column]=]policy"))
  var onConflict: [PolicyChoice] = []

  @Flag(help: "Say what would become of the rows, and change nothing.")
  var dryRun = false

  @OptionGroup var keys: StoreKeys

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard paths.count == (litestream == nil ? 2 : 1) else {
      throw ValidationError("Name a store and a database file; with --litestream, the file only.")
    }
    let choosesRows = rows.file != nil || !rows.tables.isEmpty
    guard choosesRows || key.isEmpty && !deleteNewer && onConflict.isEmpty && !dryRun else {
      throw ValidationError("--key, --delete-newer, --on-conflict and --dry-run go with --table or --scope.")
    }
    guard litestream == nil || !choosesRows && !force && history == nil else {
      throw ValidationError("--litestream restores whole databases to new files.")
    }
    guard !choosesRows || !force else { throw ValidationError("--force replaces a whole database, not some rows.") }
    guard key.isEmpty || rows.tables.count == 1 && rows.conditions.isEmpty else {
      throw ValidationError("--key chooses a row of one --table, without --where.")
    }
  }

  /// The chosen rows; nil for the whole database.
  private func scope() throws -> ShareScope? {
    guard var scope = try rows.scope() else { return nil }
    guard !key.isEmpty else { return scope }
    let names = key.indices.map { "key\($0)" }
    scope.tables[0].condition = zip(key, names).map { "\(SQLText.identifier($0.column)) = :\($1)" }
      .joined(separator: " AND ")
    scope.tables[0].parameters = Dictionary(zip(names, key.map(\.value))) { first, _ in first }
    return scope
  }

  func perform(on console: Console) throws -> ExitStatus {
    if let litestream { return try restoreReplica(in: litestream, to: paths[0], on: console) }
    // Either order is understood.
    let isSwapped = !StoreKeys.isSettings(paths[0]) && FileKind(of: paths[0]) == .sqlite
    let (path, place) = isSwapped ? (paths[0], paths[1]) : (paths[1], paths[0])
    let store = try keys.store(place, in: home)
    let identities = try keys.identities(in: home)
    let selection = try at.map { try PointSelection(text: $0) } ?? .newest
    if let scope = try scope() {
      return try restore(scope, of: path, from: store, selection, identities, on: console)
    }
    let client = StoreKeys.isSettings(place) ? try StoreKeys.client(place, in: home) : nil
    let isNewest = at == nil
    let (isForced, history, home) = (force, history, home.folder)
    let (point, unreadable) = try waitForTask {
      if isForced, FileSystem.exists(path) {
        let database = DatabaseManager(path, home: home)
        return (try await store.restore(into: database, at: selection, of: history, with: identities), 0)
      }
      guard let client else {
        return (try await store.restore(to: path, at: selection, of: history, with: identities), 0)
      }
      let point = try await client.restoreBackup(to: path, at: selection, of: history, with: identities)
      return (point, isNewest ? try await store.unreadableCount(after: point) : 0)
    }
    try console.document(point.json(restoredTo: path, unreadable: unreadable))
    try console.say(
      "\(path.escaped) is the state of \(UTCTime(unixMilliseconds: point.time)) (\(ByteCount(Int(point.databaseByteCount))))."
    )
    guard unreadable > 0 else { return .done }
    try console.say(
      console.style.suggestion(
        "\(unreadable.counted("newer object")) cannot be read, so a later state may be lost; see why",
        "buckia verify \(place.shellQuoted)"))
    return .failed
  }
}

extension RestoreCommand {
  /// Restores a replica of Litestream.
  private func restoreReplica(in place: String, to path: String, on console: Console) throws -> ExitStatus {
    let selection: LitestreamReplica.Selection
    if let at {
      // 16 digits, as in the names of files.
      if at.utf8.count == 16, let number = UInt64(at, radix: 16) {
        selection = .transaction(number)
      } else if let time = UTCTime(parsing: at) {
        selection = .time(time.unixMilliseconds)
      } else {
        throw ValidationError("--at is a time such as \"2026-03-01 12:30\", or the 16 digits of a transaction.")
      }
    } else {
      selection = .newest
    }
    var replica = LitestreamReplica(folder: place)
    if place.hasPrefix(S3Address.scheme) {
      let address = try S3Address(place, environment: ProcessInfo.processInfo.environment)
      replica = LitestreamReplica(try address.account.provider(), folder: address.folder)
    }
    let point = try waitForTask { [replica] in try await replica.restore(to: path, at: selection) }
    let time = UTCTime(unixMilliseconds: point.time)
    let number = String(point.transaction, radix: 16)
    let transaction = String(repeating: "0", count: 16 - number.utf8.count) + number
    try console.document([
      "version": 1, "path": .string(path), "bytes": .integer(point.byteCount), "transaction": .string(transaction),
      "time": .string(time.rfc3339),
    ])
    try console.say(
      "\(path.escaped) is the state of \(time), after transaction \(transaction) (\(ByteCount(Int(point.byteCount))))."
    )
    return .done
  }

  /// Restores rows.
  private func restore(
    _ scope: ShareScope, of path: String, from store: BackupStore, _ selection: PointSelection,
    _ identities: [AgeIdentity], on console: Console
  ) throws -> ExitStatus {
    var options = ApplyOptions(isDryRun: dryRun)
    options.conflicts = onConflict.isEmpty ? .takeIncoming : ConflictPolicies(onConflict)
    let database = DatabaseManager(path, home: home.folder)
    let (history, deletesNewer) = (history, deleteNewer)
    let (point, report, missing) = try waitForTask { [options] in
      try await store.restoreRows(
        of: scope, into: database, at: selection, of: history, with: identities, deletesNewer: deletesNewer,
        options: options)
    }
    try console.document(point.json(restoredTo: path, rows: report, missingColumns: missing))
    if !missing.isEmpty {
      try console.say(
        console.style.note(
          "The values of \(missing.joined(separator: ", ").escaped) stay out, since the database no longer has these columns; restore the point to another file to see them."
        ))
    }
    let time = UTCTime(unixMilliseconds: point.time)
    guard let report else {
      try console.say("There is nothing to restore: these rows, if there are any, are as they were at \(time).")
      return .done
    }
    try console.say(["Rows of \(time):"] + report.lines(database: path, style: console.style))
    return report.status(failure: nil, failsOnConflict: true)
  }
}
