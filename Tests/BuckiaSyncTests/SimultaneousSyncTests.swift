import BuckiaSync
import Foundation
import ServerTestSupport
import TestSupport
import Testing

@Suite("Simultaneous transfers and rounds")
struct SimultaneousSyncTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  // MARK: Transfers

  /// A zone, and a transport that counts the simultaneous requests to it.
  private func zone(_ server: BunnyStandIn, limit: Int) throws -> (BunnyStorage, WatchedTransport) {
    let transport = WatchedTransport(try AsyncHTTPTransport(environment: [:]), pause: .milliseconds(100))
    var configuration = BunnyConfiguration(
      zone: "zone", endpoint: server.address, accessKey: BunnyStandIn.password)
    configuration.transferLimit = limit
    return (try BunnyStorage(configuration, transport: transport), transport)
  }

  @Test(
    "As many requests run at once as the storage allows, or fewer on request",
    arguments: [(nil, 3, 3), (2, 6, 2), (9, 2, 2), (1, 4, 1)] as [(Int?, Int, Int)])
  func transfersAtOnce(concurrency: Int?, limit: Int, expected: Int) async throws {
    let server = try await BunnyStandIn()
    defer { withExtendedLifetime(server) {} }
    let (storage, uploads) = try zone(server, limit: limit)
    var anna = try SyncPerson("anna", in: folder, storage)
    anna.options.concurrency = concurrency
    for number in 0..<9 { try anna.addMedia([UInt8(number)], "originals/\(number).mp4") }
    #expect(try await anna.sync().uploaded.count == 10)
    #expect(uploads.mostAtOnce == expected)

    let plain = try BunnyStorage(
      BunnyConfiguration(zone: "zone", endpoint: server.address, accessKey: BunnyStandIn.password),
      transport: AsyncHTTPTransport(environment: [:]))
    for number in 1...6 {
      try anna.run("INSERT INTO note VALUES (\(number),'x')")
      let file = try #require(try anna.write().path)
      try await plain.upload(file: file, to: RemotePath("ben/inbound/\((file as NSString).lastPathComponent)"))
    }
    let (inbound, downloads) = try zone(server, limit: limit)
    var ben = try SyncPerson("ben", in: folder, inbound)
    ben.options.concurrency = concurrency
    let result = try await ben.sync()
    #expect(result.downloaded.count == 6)
    #expect(result.dropped.count == 6)
    #expect(downloads.mostAtOnce == expected)
  }

  // MARK: People

  @Test("When two senders and two devices sync at the same time, each row is applied once")
  func people() async throws {
    let storage = LocalFolder(folder.file("storage"))
    let senders = try ["anna", "carl"].map { try SyncPerson($0, in: folder, storage) }
    let devices = try ["phone", "laptop"].map { try SyncPerson.device($0, of: "ben", in: folder, storage) }
    // Each device knows the other from now on.
    for device in devices { try await device.sync() }

    var applied: [String: Int] = [:]
    for round in 1...8 {
      let results = try await withThrowingTaskGroup(of: (String, SyncResult).self) { group in
        for (number, sender) in senders.enumerated() {
          group.addTask {
            if round <= 3 {
              try sender.run("INSERT INTO note VALUES (\(number * 100 + round),'round \(round) of \(sender.name)')")
              try sender.write()
            }
            return (sender.name, try await sender.sync(to: ["ben"]))
          }
        }
        for device in devices { group.addTask { (device.name, try await device.sync()) } }
        return try await group.reduce(into: [(String, SyncResult)]()) { $0.append($1) }
      }
      for (name, result) in results {
        #expect(result.failures.isEmpty, "\(name) in round \(round): \(result.failures)")
        applied[name, default: 0] += result.applied?.applied.count ?? 0
      }
      if round > 3, try await storage.listAll(RemotePath("ben/inbound")).objects.isEmpty { break }
    }
    #expect(try await storage.listAll(RemotePath("ben/inbound")).objects.isEmpty)
    #expect(applied["phone"] == 6)
    #expect(applied["laptop"] == 6)
    let rows = "SELECT id, text FROM note ORDER BY id"
    let sent = try senders.flatMap { try TestDatabases.rows(rows, on: $0.database) }
    #expect(sent.count == 6)
    for device in devices {
      #expect(try TestDatabases.rows(rows, on: device.database) == sent)
      let count = "SELECT count(*) FROM buckia_ledger WHERE state = 'applied'"
      #expect(try TestDatabases.rows(count, on: device.database) == ["6"])
    }
  }
}
