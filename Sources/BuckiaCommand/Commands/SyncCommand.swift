import ArgumentParser
import Buckia
import BuckiaSync
import Foundation
import NIOConcurrencyHelpers

/// `buckia sync`
struct SyncCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "sync",
    abstract: "Brings a database, its media and diffs to a storage and back: one round.",
    discussion: """
      A round downloads what others have sent, applies it, backs the database up, drops from the storage what was applied, uploads media that are new \
      or have changed, and brings your diffs to others. What it works with is in a file:

        user: 7f3a91                       # your folder in the storage
        database: notes.sqlite
        folder: files                      # originals, reworked and inbound are in files/7f3a91
        storage:
          type: s3                         # or webdav, bunny, folder
          endpoint: https://s3.eu-central-1.amazonaws.com
          region: eu-central-1
          bucket: anna
          access-key: AKIAEXAMPLE
          secret-key: ${BUCKIA_SECRET_KEY}
        deliver:
          - { from: outbox, to: 9c21b4 }   # what you share with Ben

      Secrets are taken from the environment, as above, or are in a file that only you can read. All settings are in the documentation.

      Example:
        buckia sync --config buckia.yaml --dry-run
      """)

  private static let usualConfig = "buckia.yaml"

  @Option(help: ArgumentHelp("The file with the settings.", valueName: "file"))
  var config = SyncCommand.usualConfig

  @Flag(help: "Only report what would be done; change nothing.")
  var dryRun = false

  @Flag(help: "Go on, round after round, until it is interrupted: when something is edited here, and every so often.")
  var watch = false

  @Option(help: ArgumentHelp("How long to wait at most between two rounds, in seconds.", valueName: "seconds"))
  var every = 60.0

  @Flag(help: "List the storage and compare it with the notes of earlier rounds.")
  var check = false

  @Flag(help: "Accept folders as they are now: one was emptied or replaced on purpose.")
  var adoptFolders = false

  @Option(help: ArgumentHelp("Forget another of your devices that is gone for good.", valueName: "device"))
  var forgetDevice: String?

  @Flag(help: "Sign in first, at the servers that the settings name for that.")
  var signIn = false

  @Option(
    help: ArgumentHelp(
      "Fetch media of your other devices that are missing here, also what was here before: 'reworked/**' or '*.jpg'. Can be given several times.",
      valueName: "pattern"))
  var fetch: [String] = []

  @Option(
    help: ArgumentHelp(
      "Let a diff through that is held because of its size. Can be given several times.",
      valueName: "id"))
  var allow: [String] = []

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if watch && dryRun { throw ValidationError("--watch and --dry-run contradict each other.") }
    if dryRun && (adoptFolders || forgetDevice != nil) {
      throw ValidationError("--dry-run changes nothing, and --adopt-folders and --forget-device do.")
    }
    if let wrong = allow.first(where: { KSUID($0) == nil }) {
      throw ValidationError(
        "--allow takes the id of a diff, as the round names it, and not \(wrong.escaped(limit: 60)).")
    }
    guard every >= 1, every <= 86_400 else { throw ValidationError("--every takes 1 to 86400 seconds.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let file = try SyncFile(config, home: home.folder, environment: ProcessInfo.processInfo.environment)
    var options = file.options
    options.isDryRun = dryRun
    options.looksThroughStorage = check
    options.allowed = Set(allow.compactMap { KSUID($0) })
    if !fetch.isEmpty { (options.fetches, options.fetchesRemoved) = (fetch, true) }
    let client = try BuckiaClient(file.configuration)
    try waitForTask { for server in file.signIns { await server.prepare() } }
    if signIn {
      guard !file.signIns.isEmpty else {
        throw StorageError(.invalidSetting, "\(config) names no server to sign in at: a storage has it as `sign-in`")
      }
      // Standard output is for what a round has done.
      for server in file.signIns { try server.run { StandardStream.error.tell("\($0)\n") } }
    }
    if adoptFolders { try waitForTask { try await client.adoptFolders() } }
    if let forgetDevice { try waitForTask { try await client.forgetDevice(forgetDevice) } }
    let command = "buckia sync\(config == Self.usualConfig ? "" : " --config \(config.shellQuoted)")"
    var status: ExitStatus
    repeat {
      do {
        let result = try round(client, options, console.progress, asking: file.signIns.isEmpty ? nil : command)
        try console.document(result.json(command))
        // With `--watch`, rounds without work print nothing.
        if !watch || !result.isIdle { try console.say(result.lines(command, style: console.style)) }
        status = result.status
      } catch  where watch {
        status = console.report(ErrorReport(error))
      }
      try console.flush()
      if watch { try waitForTask { [every] in try await client.waitForEdits(upTo: every) } }
    } while watch
    return status
  }

  /// - Parameter command: The command that started the round, if its storage needs a sign-in; else nil.
  private func round(
    _ client: BuckiaClient, _ options: SyncOptions, _ line: ProgressLine, asking command: String?
  ) throws -> SyncResult {
    // From the task that does the round to the thread that waits for it.
    let newest = NIOLockedValueBox<SyncProgress?>(nil)
    let watching = Task.detached { [progress = client.progress] in
      for await step in progress { newest.withLockedValue { $0 = step } }
    }
    defer {
      watching.cancel()
      line.clear()
    }
    do {
      return try waitForTask {
        try await client.sync(options)
      } meanwhile: {
        if let step = newest.withLockedValue({ $0 }) { line.show(step.line) }
      }
    } catch let error as StorageError where error.code == .unauthorized {
      guard let command else { throw error }
      throw StorageError(
        error.code, "\(error.message). Sign in with: \(command) --sign-in", path: error.path, cause: error)
    }
  }
}

extension SyncProgress {
  /// What happens right now, for those who watch.
  var line: String {
    switch step {
    case .listing: "looking for what has arrived"
    case .downloading: "downloading \(counts)"
    case .applying: "applying"
    case .backingUp: "backing up"
    case .dropping: "clearing the inbound folder"
    case .uploading: "uploading \(counts)"
    case .delivering: "delivering"
    case .fetching: "fetching \(counts)"
    case .done: ""
    }
  }

  private var counts: String {
    "\(files.grouped) of \(fileCount.counted("file")), \(ByteCount(Int(bytes))) of \(ByteCount(Int(byteCount)))"
  }
}

extension SyncResult {
  /// The exit code.
  var status: ExitStatus {
    let applied = applied?.status(failure: nil, failsOnConflict: false) ?? .done
    if !failures.isEmpty || applied == .failed { return .failed }
    return held.isEmpty ? applied : .needsPerson
  }

  /// The result as `--json` has it.
  ///
  /// - Parameter command: How the round was started, for the commands that are suggested.
  func json(_ command: String) -> JSONValue {
    [
      "version": 1,
      "storage": .string(storage),
      "fallbackReason": .text(fallbackReason),
      "dryRun": .bool(isDryRun),
      "inbound": .number(inboundCount),
      "downloaded": .array(downloaded.map(\.json)),
      "applied": applied.map { .array($0.diffs.map(\.json)) } ?? .null,
      "answers": .array(applied?.answers.map(\.json) ?? []),
      "backedUp": .bool(backedUp),
      "held": .array(held.map { $0.json(command) }),
      "uploaded": .array(uploaded.map(\.json)),
      "dropped": .array(dropped.map { .string($0.text) }),
      "deleted": .array(deleted.map { .string($0.text) }),
      "delivered": .array(delivered.map(\.json)),
      "fetched": .array(fetched.map(\.json)),
      "unchanged": .number(unchangedCount),
      "failures": .array(failures.map(\.json)),
      "notes": .strings(notes),
      "seconds": .real(seconds),
    ]
  }

  /// The result for people.
  ///
  /// - Parameter command: How the round was started, for the commands that are suggested.
  func lines(_ command: String, style: Style) -> [String] {
    var facts: [(name: String, value: String)] = []
    func add(_ name: String, _ text: String) { facts.append((name, text)) }
    if !downloaded.isEmpty { add(isDryRun ? "to download" : "downloaded", downloaded.summary) }
    if let applied, !applied.diffs.isEmpty { add("applied", applied.summary) }
    if backedUp { add("backup", isDryRun ? "would be made" : "made") }
    if !dropped.isEmpty { add("cleared", "\(dropped.count.counted("file")) from the inbound folder") }
    if !uploaded.isEmpty { add(isDryRun ? "to upload" : "uploaded", uploaded.summary) }
    if !deleted.isEmpty { add(isDryRun ? "to delete" : "deleted", deleted.count.counted("file")) }
    if !delivered.isEmpty { add(isDryRun ? "to deliver" : "delivered", delivered.summary) }
    if !fetched.isEmpty { add(isDryRun ? "to fetch" : "fetched", fetched.summary) }
    var lines: [String] = []
    if isIdle {
      lines.append("Nothing to do at \(storage.escaped(limit: 60)).")
    } else {
      lines += TextTable(facts: facts).lines(style: style, indent: 0)
    }
    if let applied { lines += applied.unfinishedLines(style: style) }
    lines += style.listed(held, "file", indent: 0) { file in
      style.wrapped("\(style("held:", .notable)) \(file.file.escaped(limit: 100)): \(file.reason.escaped)", hanging: 2)
        + style.suggestion("If its sender means it, let it through", file.command(command))
    }
    if let fallbackReason {
      lines += style.note("the fallback was used: \(fallbackReason.escaped(limit: 300))")
    }
    for note in notes { lines += style.note(note.escaped(limit: 500)) }
    for failure in failures {
      let subject = failure.subject.map { "\($0.escaped(limit: 100)): " } ?? ""
      lines += style.wrapped(
        "\(style("Failed:", .notable)) \(subject)\(failure.message.escaped(limit: 500))", hanging: 2)
    }
    return lines
  }
}

extension SyncResult.Transfer {
  fileprivate var json: JSONValue {
    ["path": .string(path.text), "bytes": .integer(byteCount), "storage": .string(storage)]
  }
}

extension SyncResult.Held {
  fileprivate func command(_ command: String) -> String { "\(command) --allow \(id)" }

  fileprivate func json(_ command: String) -> JSONValue {
    [
      "id": .string("\(id)"), "file": .string(file), "bytes": .integer(byteCount), "reason": .string(reason),
      "command": .string(self.command(command)),
    ]
  }
}

extension [SyncResult.Transfer] {
  fileprivate var summary: String { "\(count.counted("file")), \(ByteCount(Int(reduce(0) { $0 + $1.byteCount })))" }
}

extension SyncResult.Failure {
  fileprivate var json: JSONValue {
    [
      "step": .string(step.rawValue), "subject": .text(subject),
      "error": FailureReport(code: code, message: message, path: path).details,
    ]
  }
}

extension ApplyReport {
  fileprivate var summary: String {
    let counts = Dictionary(grouping: diffs, by: \.state).mapValues(\.count)
    return DiffState.allCases.compactMap { state in counts[state].map { "\($0.grouped) \(state.rawValue)" } }
      .joined(separator: ", ")
  }

  /// The files that are not applied, or not yet, with the reason. Files with too many deletions have lines of their own.
  fileprivate func unfinishedLines(style: Style) -> [String] {
    let files =
      diffs.filter { ![.applied, .alreadyApplied].contains($0.state) && $0.code != .overLimit }
      .map { (path: $0.path, word: $0.state.rawValue, role: $0.state.role, reason: $0.reason) }
      + answers.filter { $0.state == .refused }.map { (path: $0.path, word: "refused", role: .bad, reason: $0.reason) }
    return style.listed(files, "file", indent: 0) { file in
      let reason = file.reason.map { ": \($0.escaped)" } ?? ""
      return style.wrapped(
        "\(style(file.word, file.role)): \(file.path.fileName.escaped(limit: 100))\(reason)", hanging: 2)
    }
  }
}
