import BuckiaSync
import Foundation
import ServerTestSupport
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

  @Test("Smaller versions are only uploaded on request")
  func reworked() async throws {
    var anna = try bench.person("anna")
    try anna.addMedia([1], "originals/a.mp4")
    try anna.addMedia([2], "reworked/a.jpg")
    anna.options.uploadsReworked = false
    #expect(try await anna.sync().uploaded.map(\.place) == ["anna/backups", "anna/originals/a.mp4"])
    #expect(try await bench.objects() == ["anna/backups", "anna/originals/a.mp4"])
    anna.options.uploadsReworked = true
    #expect(try await anna.sync().uploaded.map(\.place) == ["anna/reworked/a.jpg"])
  }

  @Test("Without backups, applied diffs are dropped at once")
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
    #expect(try ben.notes().count == 1)
  }

  /// A person's local files, except those in the home, which records storages.
  private func files(of name: String) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: bench.folder.file(name)).sorted()
      .filter { $0 != "home" && !$0.hasPrefix("home/") }
  }

  @Test("A dry run creates no file or folder, here or in the storage")
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
    // No files are put into existing folders either.
    try await send(3, from: "carl", to: "ben")
    ben.options.isDryRun = true
    let later = try files(of: "ben")
    #expect(try await ben.sync().downloaded.count == 1)
    #expect(try files(of: "ben") == later)
  }

  // MARK: Permissions

  @Test("With permission for one inbound folder, a round delivers and reports what it could not write")
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
      #expect(failure.code == StorageError.Code.forbidden.rawValue)
      #expect(failure.message.contains("this is not allowed here: write"))
    }
    // Without a backup nothing is dropped, and nothing else was tried.
    #expect(result.dropped.isEmpty)
    #expect(result.delivered.count == 1)
    #expect(try await bench.objects() == (before + result.delivered.map(\.path.text)).sorted())
    let writes = bench.watched.calls.filter { !$0.hasPrefix("list") && !$0.hasPrefix("get") && !$0.hasPrefix("stat") }
    #expect(writes == result.delivered.map { "put \($0.path)" })
    // Another round repeats none of it.
    let again = try await anna.sync(to: ["ben"])
    #expect(again.downloaded.isEmpty)
    #expect(again.delivered.isEmpty)
    #expect(again.failures.map(\.step) == [.backingUp, .uploading])
    // With all permissions it continues where it stopped.
    anna.change = { _ in }
    let allowed = try await anna.sync(to: ["ben"])
    #expect(allowed.failures.isEmpty)
    #expect(allowed.dropped.count == 1)
    #expect(
      try TestDatabases.rows("SELECT count(*) FROM buckia_ledger WHERE state = 'applied'", on: anna.database) == ["1"])
    #expect(try anna.notes().count == 2)
  }

  // MARK: Limits for received diffs

  /// Sends a note of a given size from Anna to Ben.
  private func send(_ bytes: Int) async throws -> KSUID {
    let anna =
      bench.folder.has("anna")
      ? SyncPerson(existing: "anna", in: bench.folder, bench.watched) : try bench.person("anna")
    try anna.run("INSERT INTO note(text) VALUES (hex(randomblob(\(bytes / 2))))")
    let id = try #require(try anna.write().id)
    try await anna.sync(to: ["ben"])
    return id
  }

  @Test("Diffs that exceed the download limit stay in the storage until a person allows them")
  func downloadLimit() async throws {
    let ids = [try await send(10_000), try await send(300_000), try await send(20_000)]
    var ben = try bench.person("ben")
    ben.options.downloadBytes = 100_000
    for turn in 0..<2 {
      let result = try await ben.sync()
      #expect(result.downloaded.count == (turn == 0 ? 2 : 0))
      #expect(result.held.map(\.id) == [ids[1]])
      #expect(result.held.first?.reason.contains("was not downloaded") == true)
      #expect(result.failures.isEmpty)
      #expect(try await bench.objects("ben/inbound").count == 1)
    }
    #expect(try ben.notes().count == 2)
    ben.options.allowed = [ids[1]]
    let result = try await ben.sync()
    #expect(result.held.isEmpty)
    #expect(result.dropped.count == 1)
    #expect(try ben.notes().count == 3)
    // Allowing a downloaded diff is no mistake, but allowing an unknown one is.
    let other = try #require(KSUID("3MOszSZz3uTLnb7JQCqVqYrLuuY"))
    ben.options.allowed.insert(other)
    #expect(try await ben.sync().notes == ["there is no diff \(other) to let through"])
  }

  @Test("Diffs beyond a sender's daily limit are held, and applied when their ids are allowed")
  func senderLimit() async throws {
    let ids = [try await send(40_000), try await send(40_000), try await send(40_000)]
    var ben = try bench.person("ben")
    ben.options.apply.limits.senderBytes = 100_000
    for _ in 0..<2 {
      #expect(try await ben.sync().held.map(\.id) == [ids[2]])
      #expect(try ben.notes().count == 2)
      #expect(try await bench.objects("ben/inbound").count == 1)
    }
    ben.options.allowed = [ids[2]]
    #expect(try await ben.sync().dropped.count == 1)
    #expect(try ben.notes().count == 3)
  }

  // MARK: Media of other devices

  private func device(_ name: String, fetching patterns: [String] = []) throws -> SyncPerson {
    var device = try SyncPerson.device(name, of: "anna", in: bench.folder, bench.watched)
    device.options.fetches = patterns
    return device
  }

  private func media(_ device: SyncPerson) throws -> [String] {
    let root = bench.folder.file("\(device.name)/files/anna")
    return try FileManager.default.subpathsOfDirectory(atPath: root).filter {
      $0.contains("/") && $0.contains(".") && !$0.hasPrefix("inbound")
    }.sorted()
  }

  @Test("Another device fetches media by pattern once, and keeps them in the storage when they are removed locally")
  func fetch() async throws {
    let camera = try device("camera")
    for path in ["originals/a.mp4", "reworked/a.jpg", "reworked/2026/b.jpg"] {
      try bench.folder.makeFolder(("camera/files/anna/\(path)" as NSString).deletingLastPathComponent)
      try bench.folder.write(Array(path.utf8), to: "camera/files/anna/\(path)")
    }
    try await camera.sync()
    var phone = try device("phone", fetching: ["reworked/**"])
    phone.options.isDryRun = true
    #expect(try await phone.sync().fetched.count == 2)
    phone.options.isDryRun = false
    let first = try await phone.sync()
    #expect(first.fetched.map(\.path.text).sorted() == ["anna/reworked/2026/b.jpg", "anna/reworked/a.jpg"])
    #expect(try media(phone) == ["reworked/2026/b.jpg", "reworked/a.jpg"])
    #expect(try fileBytes(bench.folder.file("phone/files/anna/reworked/a.jpg")) == Array("reworked/a.jpg".utf8))
    #expect(first.uploaded.allSatisfy { !$0.path.text.contains("reworked") })
    let second = try await phone.sync()
    #expect(second.fetched.isEmpty && second.uploaded.isEmpty, "\(second.uploaded)")
    // A file removed here stays in the storage, even with deletions on, and is not fetched again by itself.
    try FileManager.default.removeItem(atPath: bench.folder.file("phone/files/anna/reworked/a.jpg"))
    phone.options.deletesOrphanedFiles = true
    let third = try await phone.sync()
    #expect(third.deleted.isEmpty && third.fetched.isEmpty)
    #expect(try await bench.objects("anna/reworked").count == 2)
    phone.options.fetches = ["a.*"]
    phone.options.fetchesRemoved = true
    #expect(try await phone.sync().fetched.count == 2)
    #expect(try media(phone) == ["originals/a.mp4", "reworked/2026/b.jpg", "reworked/a.jpg"])
    phone.options.fetches = ["a.*", "orignals/**"]
    let last = try await phone.sync()
    #expect(last.notes.count == 1 && last.notes.first?.hasSuffix("match orignals/**") == true, "\(last.notes)")
  }

  @Test("A local media file is not replaced by a newer version, and that is reported")
  func fetchReplaces() async throws {
    let camera = try device("camera")
    try bench.folder.makeFolder("camera/files/anna/originals")
    try bench.folder.write([1], to: "camera/files/anna/originals/a.mp4")
    try await camera.sync()
    let phone = try device("phone", fetching: ["**"])
    try await phone.sync()
    try bench.folder.write([2, 3], to: "camera/files/anna/originals/a.mp4")
    try await camera.sync()
    let result = try await phone.sync()
    #expect(result.fetched.isEmpty)
    #expect(result.notes.contains { $0.contains("newer in the storage") }, "\(result.notes)")
    #expect(try fileBytes(bench.folder.file("phone/files/anna/originals/a.mp4")) == [1])
  }

  @Test("Files that are not uploaded are named once, and a full check names them all")
  func leftOut() async throws {
    var anna = try bench.person("anna")
    try anna.addMedia([1], "originals/a.mp4")
    for name in [".hidden.jpg", "film.mp4.part", "od\u{1}d.jpg", ".DS_Store", "Thumbs.db"] {
      try anna.addMedia([1], "originals/\(name)")
    }
    let first = try await anna.sync()
    #expect(first.notes.count == 1)
    for name in [".hidden.jpg", "film.mp4.part", "od"] { #expect(first.notes[0].contains(name)) }
    #expect(!first.notes[0].contains("DS_Store") && !first.notes[0].contains("Thumbs"))
    #expect(first.failures.isEmpty)
    #expect(try await anna.sync().notes.isEmpty)
    try anna.addMedia([1], "originals/new.part")
    let third = try await anna.sync()
    #expect(third.notes.count == 1 && third.notes[0].contains("new.part") && !third.notes[0].contains(".hidden.jpg"))
    anna.options.looksThroughStorage = true
    #expect(try await anna.sync().notes.first?.contains(".hidden.jpg") == true)
    #expect(try await bench.objects("anna/originals") == ["anna/originals/a.mp4"])
  }

  @Test("Several diffs are confirmed by one listing, if a storage looks up objects in listings")
  func listedOnce() async throws {
    let server = try await BunnyStandIn()
    var anna = try bench.person("anna")
    anna.change = {
      $0.storage = StorageAccount(
        .bunny(BunnyConfiguration(zone: "zone", endpoint: server.address, accessKey: BunnyStandIn.password)))
    }
    for number in 1...6 {
      try anna.run("INSERT INTO note VALUES (\(number),'x')")
      try anna.write()
    }
    let result = try await anna.sync(to: ["ben"])
    #expect(result.delivered.count == 6, "\(result.failures)")
    let listings = server.requests.filter { $0.method == "GET" && $0.target.hasPrefix("/zone/ben/") }
    #expect(listings.map(\.target) == ["/zone/ben/inbound/", "/zone/ben/inbound/"])
  }
}
