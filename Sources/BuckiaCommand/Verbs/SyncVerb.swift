import ArgumentParser
import Buckia
import BuckiaSync

import Foundation

/// `buckia sync`
struct SyncVerb: Verb {
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

      Secrets are taken from the environment, as above, or stand in a file that nobody else can read. All settings are in the documentation.

      Example:
        buckia sync --config buckia.yaml --dry-run
      """)

  private static let usualConfig = "buckia.yaml"

  @Option(help: ArgumentHelp("The file with the settings.", valueName: "file"))
  var config = SyncVerb.usualConfig

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
    try AwaitedTask.run { for server in file.signIns { await server.prepare() } }
    if signIn {
      guard !file.signIns.isEmpty else {
        throw StorageError(.invalidSetting, "\(config) names no server to sign in at: a storage has it as `sign-in`")
      }
      // Standard output is for what a round has done.
      for server in file.signIns { try server.run { StandardStream.error.tell("\($0)\n") } }
    }
    if adoptFolders { try AwaitedTask.run { try await client.adoptFolders() } }
    if let forgetDevice { try AwaitedTask.run { try await client.forgetDevice(forgetDevice) } }
    let command = "buckia sync\(config == Self.usualConfig ? "" : " --config \(config.shellQuoted)")"
    var status: ExitStatus
    repeat {
      do {
        let result = try round(client, options, console.progress, asking: file.signIns.isEmpty ? nil : command)
        try console.document(result.json(command))
        // Of a round that had nothing to do, nobody wants to read every minute.
        if !watch || !result.isIdle { try console.say(result.lines(command, style: console.style)) }
        status = result.status
      } catch  where watch {
        status = console.report(ErrorReport(error))
      }
      try console.flush()
      if watch { try AwaitedTask.run { [every] in try await client.waitForEdits(upTo: every) } }
    } while watch
    return status
  }

  /// - Parameter command: The command that started the round, if its storage needs a sign-in; else nil.
  private func round(
    _ client: BuckiaClient, _ options: SyncOptions, _ line: ProgressLine, asking command: String?
  ) throws -> SyncResult {
    let newest = NewestProgress()
    let watching = Task.detached { [progress = client.progress] in
      for await step in progress { newest.set(step) }
    }
    defer {
      watching.cancel()
      line.clear()
    }
    do {
      return try AwaitedTask.run {
        try await client.sync(options)
      } meanwhile: {
        if let step = newest.value { line.show(step.line) }
      }
    } catch let error as StorageError where error.code == .unauthorized {
      guard let command else { throw error }
      throw StorageError(
        error.code, "\(error.message). Sign in with: \(command) --sign-in", path: error.path, cause: error)
    }
  }
}

/// How far a round has come, from the task that does it to the thread that waits for it.
private final class NewestProgress: @unchecked Sendable {
  // The lock guards `step`.
  private let lock = NSLock()
  private var step: SyncProgress?

  var value: SyncProgress? { lock.withLock { step } }

  func set(_ step: SyncProgress) { lock.withLock { self.step = step } }
}
