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

  @Option(help: ArgumentHelp("The file with the settings.", valueName: "file"))
  var config = "buckia.yaml"

  @Flag(help: "Only report what would be done; change nothing.")
  var dryRun = false

  @Flag(help: "Go on, round after round, until it is interrupted.")
  var watch = false

  @Option(help: ArgumentHelp("How long to wait between two rounds, in seconds.", valueName: "seconds"))
  var every = 60.0

  @Flag(help: "List the storage and compare it with the notes of earlier rounds.")
  var check = false

  @Flag(help: "Accept folders as they are now: one was emptied or replaced on purpose.")
  var adoptFolders = false

  @Option(help: ArgumentHelp("Forget another of your devices that is gone for good.", valueName: "device"))
  var forgetDevice: String?

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if watch && dryRun { throw ValidationError("--watch and --dry-run contradict each other.") }
    if dryRun && (adoptFolders || forgetDevice != nil) {
      throw ValidationError("--dry-run changes nothing, and --adopt-folders and --forget-device do.")
    }
    guard every >= 1, every <= 86_400 else { throw ValidationError("--every takes 1 to 86400 seconds.") }
  }

  func perform(on console: Console) throws -> ExitStatus {
    let file = try SyncFile(config, home: home.folder, environment: ProcessInfo.processInfo.environment)
    var options = file.options
    options.isDryRun = dryRun
    options.looksThroughStorage = check
    let client = try BuckiaClient(file.configuration)
    if adoptFolders { try AwaitedTask.run { try await client.adoptFolders() } }
    if let forgetDevice { try AwaitedTask.run { try await client.forgetDevice(forgetDevice) } }
    var status: ExitStatus
    repeat {
      do {
        let result = try round(client, options, console.progress)
        try console.document(result.json)
        // Of a round that had nothing to do, nobody wants to read every minute.
        if !watch || !result.isIdle { try console.say(result.lines(style: console.style)) }
        status = result.status
      } catch  where watch {
        status = console.report(ErrorReport(error))
      }
      try console.flush()
      if watch { try AwaitedTask.run { [every] in try await Task.sleep(for: .seconds(every)) } }
    } while watch
    return status
  }

  private func round(_ client: BuckiaClient, _ options: SyncOptions, _ line: ProgressLine) throws -> SyncResult {
    let newest = NewestProgress()
    let watching = Task.detached { [progress = client.progress] in
      for await step in progress { newest.set(step) }
    }
    defer {
      watching.cancel()
      line.clear()
    }
    return try AwaitedTask.run {
      try await client.sync(options)
    } meanwhile: {
      if let step = newest.value { line.show(step.line) }
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
