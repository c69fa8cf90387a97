import ArgumentParser
import Buckia
import BuckiaBenchmarks
import BuckiaSync
import Foundation

/// Brings files to a WebDAV server or back, and prints how much memory that took, and how many requests.
///
/// The comparisons with `rclone` run it as a process of its own, as they run `rclone`.
struct TransferCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "transfer", abstract: "One transfer, with its peak memory and requests.", shouldDisplay: false,
    subcommands: [Sync.self, Download.self, List.self])

  /// The user whose files go around.
  static let user = "anna"

  /// One round of sync, with `PERSON/files/anna/originals` as media and `PERSON/notes.sqlite` as the database.
  struct Sync: ParsableCommand {
    @Argument var person: String
    @Argument var address: String
    @Flag var backup = false

    func run() throws {
      let transport = try CountingTransport()
      let home = BuckiaHome(path: "\(person)/home")
      let account = StorageAccount(.webDAV(address: address))
      var configuration = BuckiaConfiguration(
        userID: TransferCommand.user, database: DatabaseManager("\(person)/notes.sqlite", home: home),
        folders: FolderStructureConfiguration(main: "\(person)/files"), storage: account)
      configuration.storage.type = .custom(try account.provider(transport: transport))
      let client = try BuckiaClient(configuration)
      var options = SyncOptions()
      options.backsUp = backup
      let result = try waitForTask { [options] in try await client.sync(options) }
      if let failure = result.failures.first {
        throw BuckiaError(BuckiaErrorCode(rawValue: failure.code), failure.message, path: failure.path)
      }
      TransferOutcome(requests: transport.count).print()
    }
  }

  /// All files that a round of sync has uploaded, into a folder.
  struct Download: ParsableCommand {
    @Argument var address: String
    @Argument var folder: String

    func run() throws {
      let transport = try CountingTransport()
      let storage = try StorageAccount(.webDAV(address: address)).provider(transport: transport)
      let (folder, user) = (folder, try RemotePath("\(TransferCommand.user)/originals"))
      try waitForTask {
        let objects = try await storage.listAll(user).objects
        try await forEachConcurrently(objects, limit: storage.capabilities.transferLimit) { object in
          try await storage.download(
            object.path, to: "\(folder)/\(object.path.name)", expecting: object)
        } finish: { _, outcome in
          _ = try outcome.get()
        }
      }
      TransferOutcome(requests: transport.count).print()
    }
  }

  /// Prints how many objects there are, and how many bytes they have.
  struct List: ParsableCommand {
    @Argument var address: String

    func run() throws {
      let storage = try StorageAccount(.webDAV(address: address)).provider(transport: CountingTransport())
      let user = try RemotePath("\(TransferCommand.user)/originals")
      let objects = try waitForTask { try await storage.listAll(user).objects }
      print(objects.count, objects.reduce(0) { $0 + $1.byteCount })
    }
  }
}

/// What a transfer took: printed by the process that did it, read by the one that measures.
struct TransferOutcome {
  let peakBytes: Int
  let requests: Int

  /// That of this process.
  init(requests: Int) {
    peakBytes = MemoryCommand.peakResidentBytes
    self.requests = requests
  }

  /// Runs a subcommand in a child process.
  init(of arguments: String...) throws {
    let numbers = try ChildProcess.numbers(2, of: ["transfer"] + arguments)
    (peakBytes, requests) = (numbers[0], numbers[1])
  }

  func print() { Swift.print(peakBytes, requests) }
}

/// A transport that counts requests.
private final class CountingTransport: HTTPTransport {
  private let transport: AsyncHTTPTransport
  // The lock guards `sent`.
  private let lock = NSLock()
  private nonisolated(unsafe) var sent = 0

  init() throws { transport = try AsyncHTTPTransport(HTTPSettings()) }

  var count: Int { lock.withLock { sent } }

  func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse {
    lock.withLock { sent += 1 }
    return try await transport.send(request)
  }
}
