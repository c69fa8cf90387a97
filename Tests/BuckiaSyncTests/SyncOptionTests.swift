import BuckiaSync
import Foundation
import TestSupport
import Testing

@Suite("Options and permissions of a round")
struct SyncOptionTests {
  private let bench: SyncBench

  init() throws { bench = try SyncBench() }

  /// Sends a note from one person to another.
  private func send(_ id: Int, from name: String, to other: String) async throws {
    let sender = try bench.person(name)
    try sender.run("INSERT INTO note VALUES (\(id),'from \(name)')")
    try sender.write()
    try await sender.sync(to: [other])
  }

  // MARK: Options

  @Test("Smaller versions stay here as long as they are not wanted there")
  func reworked() async throws {
    var anna = try bench.person("anna")
    try anna.addMedia([1], "originals/a.mp4")
    try anna.addMedia([2], "reworked/a.jpg")
    anna.options.uploadsReworked = false
    #expect(try await anna.sync().uploaded.map(\.path.text) == ["anna/backup.sqlite", "anna/originals/a.mp4"])
    #expect(try await bench.objects() == ["anna/backup.sqlite", "anna/originals/a.mp4"])
    anna.options.uploadsReworked = true
    #expect(try await anna.sync().uploaded.map(\.path.text) == ["anna/reworked/a.jpg"])
  }

  @Test("Where no backup is wanted, what was applied is dropped at once")
  func noBackup() async throws {
    try await send(1, from: "anna", to: "ben")
    var ben = try bench.person("ben")
    ben.options.backsUp = false
    bench.watched.forgetCalls()
    let result = try await ben.sync()
    #expect(result.failures.isEmpty)
    #expect(result.applied?.applied.count == 1)
    #expect(result.dropped.count == 1)
    #expect(!result.backedUp)
    #expect(!bench.watched.calls.contains { $0.hasPrefix("put") })
    #expect(try await bench.objects("ben").isEmpty)
    #expect(!FileManager.default.fileExists(atPath: "\(ben.place)/backup.sqlite"))
    #expect(try ben.notes().count == 1)
  }

  /// What a person has here, without their home, in which is kept what is known of storages.
  private func files(of name: String) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: bench.folder.file(name)).sorted()
      .filter { $0 != "home" && !$0.hasPrefix("home/") }
  }

  @Test("A dry run makes no file and no folder, here or there")
  func dryRun() async throws {
    try await send(1, from: "anna", to: "ben")
    var ben = try bench.person("ben")
    try ben.run("INSERT INTO note VALUES (2,'from Ben')")
    try ben.write()
    ben.options.isDryRun = true
    let (here, there) = (try files(of: "ben"), try bench.folder.names(in: "storage"))
    let result = try await ben.sync(to: ["anna"])
    #expect(result.downloaded.count == 1)
    #expect(result.delivered.count == 1)
    #expect(try files(of: "ben") == here)
    #expect(try bench.folder.names(in: "storage") == there)
    ben.options.isDryRun = false
    #expect(try await ben.sync(to: ["anna"]).applied?.applied.count == 1)
    // Where the folders are there already, nothing is put into them either.
    try await send(3, from: "carl", to: "ben")
    ben.options.isDryRun = true
    let later = try files(of: "ben")
    #expect(try await ben.sync().downloaded.count == 1)
    #expect(try files(of: "ben") == later)
  }

  // MARK: Permissions

  @Test("Who may only write into an inbound folder delivers there, and what else the round would write is told")
  func onlyInbound() async throws {
    try await send(100, from: "carl", to: "anna")
    var anna = try bench.person("anna")
    let permissions = StoragePermissions.readingAll(writing: try RemotePath("ben/inbound"))
    anna.change = { $0.storage.permissions = permissions }
    try anna.run("INSERT INTO note VALUES (1,'from Anna')")
    try anna.write()
    try anna.addMedia([1], "originals/a.mp4")
    let before = try await bench.objects()
    bench.watched.forgetCalls()
    let result = try await anna.sync(to: ["ben"])
    #expect(result.applied?.applied.count == 1)
    #expect(result.failures.map(\.step) == [.backingUp, .uploading])
    for failure in result.failures {
      #expect((failure.error as? StorageError)?.code == .forbidden)
      #expect("\(failure.error)".contains("this is not allowed here: write"))
    }
    // Without a backup nothing is dropped, and nothing else was tried.
    #expect(result.dropped.isEmpty)
    #expect(result.delivered.count == 1)
    #expect(try await bench.objects() == (before + result.delivered.map(\.path.text)).sorted())
    let writes = bench.watched.calls.filter { !$0.hasPrefix("list") && !$0.hasPrefix("get") && !$0.hasPrefix("stat") }
    #expect(writes == result.delivered.map { "put \($0.path)" })
    // Another round does none of it twice.
    let again = try await anna.sync(to: ["ben"])
    #expect(again.downloaded.isEmpty)
    #expect(again.delivered.isEmpty)
    #expect(again.failures.map(\.step) == [.backingUp, .uploading])
    // And with all permissions it goes on where it stopped.
    anna.change = { _ in }
    let allowed = try await anna.sync(to: ["ben"])
    #expect(allowed.failures.isEmpty)
    #expect(allowed.dropped.count == 1)
    #expect(
      try TestDatabases.rows("SELECT count(*) FROM buckia_ledger WHERE state = 'applied'", on: anna.database) == ["1"])
    #expect(try anna.notes().count == 2)
  }
}
