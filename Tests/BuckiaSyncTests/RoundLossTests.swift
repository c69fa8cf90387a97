import BuckiaSync
import Foundation
import TestSupport
import Testing

@Suite("No losses in a round")
struct RoundLossTests {
  private let bench: SyncBench

  init() throws { bench = try SyncBench() }

  /// Sends a note from Anna.
  @discardableResult
  private func send(_ id: Int, to user: String = "ben") async throws -> String {
    let anna =
      bench.folder.has("anna")
      ? SyncPerson(existing: "anna", in: bench.folder, bench.watched) : try bench.person("anna")
    try anna.run("INSERT OR IGNORE INTO note VALUES (\(id),'from Anna')")
    let file = try #require(try anna.write().path)
    try await anna.sync(to: [user])
    return "\(user)/inbound/\((file as NSString).lastPathComponent)"
  }

  private func device(_ name: String) throws -> SyncPerson {
    try .device(name, of: "ben", in: bench.folder, bench.watched)
  }

  private func remove(_ path: String) throws { try FileManager.default.removeItem(atPath: path) }

  // MARK: Dropped diffs

  @Test("A refused file stays in the storage, and is downloaded again after the local folder was cleared")
  func refused() async throws {
    let ben = try bench.person("ben")
    let bad = "ben/inbound/3MOszSZz3uTLnb7JQCqVqYrLuuY.bdiff"
    try await bench.local.put(StorageContents(Array("no diff".utf8)), to: RemotePath(bad), .none)
    #expect(try await ben.sync().applied?.rejected.count == 1)
    try remove("\(ben.place)/inbound")
    let again = try await ben.sync()
    #expect(again.downloaded.map(\.path.text) == [bad])
    #expect(again.dropped.isEmpty)
    #expect(try await bench.objects("ben/inbound") == [bad])
  }

  @Test("A changeset that was applied under another name is also dropped from the storage")
  func sameChangeset() async throws {
    let (anna, ben) = (try bench.person("anna"), try bench.person("ben"))
    try anna.run("INSERT INTO note VALUES (1,'x')")
    var options = DiffOptions()
    options.isRaw = true
    let file = try #require(
      try await DatabaseManager(anna.database, home: anna.home).createDatabaseDiff(
        since: anna.shared, output: .folder(anna.outbox), options: options
      ).path)
    let bytes = try fileBytes(file)
    for name in [(file as NSString).lastPathComponent, "3MOszSZz3uTLnb7JQCqVqYrLuuY.changeset"] {
      try await bench.local.put(StorageContents(bytes), to: RemotePath("ben/inbound/\(name)"), .none)
    }
    try await ben.sync()
    #expect(try ben.notes().count == 1)
    #expect(try await bench.objects("ben/inbound").isEmpty)
  }

  @Test("Rounds with a refused file write nothing, here or in the storage")
  func idleWithRefused() async throws {
    let ben = try bench.person("ben")
    let bad = "ben/inbound/3MOszSZz3uTLnb7JQCqVqYrLuuY.bdiff"
    try await bench.local.put(StorageContents(Array("no diff".utf8)), to: RemotePath(bad), .none)
    try await ben.sync()
    let before = try fileBytes(ben.database)
    for _ in 0..<3 {
      bench.watched.forgetCalls()
      #expect(try await ben.sync().applied?.rejected.count == 1)
      #expect(bench.watched.calls == ["list ben/inbound"])
    }
    #expect(try fileBytes(ben.database) == before)
  }

  @Test(
    "A database restored from an older copy gets the diffs that are still in the storage", arguments: [false, true])
  func olderCopy(hasLedger: Bool) async throws {
    let (phone, laptop) = (try device("phone"), try device("laptop"))
    try await laptop.sync()
    if !hasLedger {
      try remove(phone.database)
      try TestDatabases.run(SyncPerson.schema, on: phone.database)
    }
    let older = try bench.folder.copy(phone.database, to: "older.sqlite")
    try await phone.sync()
    try await send(1)
    // The laptop has not applied the diff, so it stays.
    #expect(try await phone.sync().applied?.applied.count == 1)
    try remove(phone.database)
    try FileManager.default.copyItem(atPath: older, toPath: phone.database)
    // The mark belongs to a life that the restored database has forgotten.
    #expect(try await phone.sync().applied?.applied.count == 1)
    #expect(try phone.notes().count == 1)
    try await laptop.sync()
    #expect(try laptop.notes().count == 1)
    try await phone.sync()
    #expect(try await bench.objects("ben/inbound").isEmpty)
  }

  @Test("Diffs that another device drops before a restored database syncs stay in the backup of its earlier life")
  func markBehindRestore() async throws {
    let (phone, laptop) = (try device("phone"), try device("laptop"))
    try await phone.sync()
    try await laptop.sync()
    let older = try bench.folder.copy(phone.database, to: "older.sqlite")
    try await send(1)
    try await phone.sync()
    try remove(phone.database)
    try FileManager.default.copyItem(atPath: older, toPath: phone.database)
    // The laptop believes the phone's mark.
    #expect(try await laptop.sync().dropped.count == 1)
    for number in 0..<3 {
      try phone.run("INSERT INTO note VALUES (\(100 + number),'x')")
      try await phone.sync()
    }
    #expect(try phone.notes().count == 3)
    let restored = bench.folder.file("restored.sqlite")
    let history = try #require(try await phone.points().first).history
    let last = try #require(try await phone.points().last { $0.history == history })
    try await BuckiaClient(phone.configuration()).restoreBackup(to: restored, at: .id(last.id))
    #expect(try TestDatabases.texts("SELECT text FROM note", on: restored) == ["from Anna"])
    let newest = bench.folder.file("newest.sqlite")
    try await BuckiaClient(phone.configuration()).restoreBackup(to: newest)
    #expect(try TestDatabases.rows("SELECT count(*) FROM note", on: newest) == ["3"])
  }

  @Test("A mark that the ledger does not confirm is removed before another device can believe it")
  func markOfTheFuture() async throws {
    let (phone, laptop) = (try device("phone"), try device("laptop"))
    try await phone.sync()
    let own = (try #require(try await bench.objects("ben/devices").first) as NSString).deletingLastPathComponent
    try await laptop.sync()
    let file = try await send(1)
    try await bench.local.put(
      StorageContents([]), to: RemotePath("\(own)/\((file as NSString).lastPathComponent).done"), .none)
    bench.watched.fail { _, call in call.hasPrefix("get ben/inbound") ? StorageError(.forbidden, "no") : nil }
    try await phone.sync()
    #expect(try await bench.objects("ben/devices").allSatisfy { $0.hasSuffix("/device") })
    bench.watched.fail(nil)
    try await phone.sync()
    #expect(try await bench.objects("ben/inbound") == [file])
    try await laptop.sync()
    #expect(try phone.notes().count == 1)
    #expect(try laptop.notes().count == 1)
  }

  // MARK: Devices

  @Test("A device registers before it downloads, and when a backup is restored on it")
  func takesPartFirst() async throws {
    let (phone, laptop) = (try device("phone"), try device("laptop"))
    try await phone.sync()
    let restored = bench.folder.file("laptop/restored.sqlite")
    try await BuckiaClient(laptop.configuration()).restoreBackup(to: restored)
    let file = try await send(1)
    #expect(try await phone.sync().dropped.isEmpty)
    #expect(try await bench.objects("ben/inbound") == [file])
    let tablet = try device("tablet")
    bench.watched.forgetCalls()
    bench.watched.fail { _, call in call.hasPrefix("put ben/devices/") ? StorageError(.fullStorage, "full") : nil }
    let result = try await tablet.sync()
    #expect(result.failures.map(\.step) == [.listing])
    #expect(result.downloaded.isEmpty)
    #expect(!bench.watched.calls.contains { $0.hasPrefix("get") })
  }

  @Test(
    "A silent or removed device is waited for until a person tells sync to forget it"
  )
  func silentDevice() async throws {
    let (phone, laptop) = (try device("phone"), try device("laptop"))
    try await phone.sync()
    let own = try #require(try await bench.objects("ben/devices").first)
    try await laptop.sync()
    let mark = try #require(try await bench.objects("ben/devices").first { $0 != own })
    let file = try await send(1)
    #expect(try await phone.sync().notes.isEmpty)
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -101 * 86_400)], ofItemAtPath: bench.folder.file("storage/\(mark)")
    )
    let name = try #require(mark.split(separator: "/").dropLast().last.map(String.init))
    #expect(
      try await phone.sync().notes.filter { $0.contains("--forget-device \(name)") && $0.contains("100 days") }.count
        == 1)
    try await bench.local.deleteAll(in: RemotePath("ben/devices"))
    #expect(try await phone.sync().notes.filter { $0.contains("--forget-device \(name)") }.count == 1)
    #expect(try await bench.objects("ben/inbound") == [file])
    let client = try BuckiaClient(phone.configuration())
    await #expect(throws: StorageError.self) { try await client.forgetDevice("nobody") }
    try await client.forgetDevice(name)
    #expect(try await phone.sync().dropped.map(\.text) == [file])
    // The device returns, and is waited for again.
    try await laptop.sync()
    let next = try await send(2)
    try await phone.sync()
    #expect(try await bench.objects("ben/inbound") == [next])
    try await laptop.sync()
    #expect(try await bench.objects("ben/inbound").isEmpty)
  }

  @Test("Devices made from one backup, including the home, have their own marks and backups")
  func copiedHome() async throws {
    let phone = try device("phone")
    try await phone.sync()
    for name in ["laptop", "tablet"] {
      try FileManager.default.copyItem(atPath: bench.folder.file("phone"), toPath: bench.folder.file(name))
      try remove(bench.folder.file("\(name)/files"))
      var copy = SyncPerson(existing: name, in: bench.folder, bench.watched)
      copy.change = phone.change
      try copy.run("INSERT INTO note VALUES (7,'\(name)')")
      try await copy.sync()
    }
    #expect(try await bench.objects("ben/devices").count == 3)
    let points = try await phone.points()
    #expect(Set(points.map(\.history)).count == 3)
    var texts: Set<String> = []
    for point in points {
      let file = try await phone.restored("restored \(point.id)", .id(point.id))
      texts.formUnion(try TestDatabases.texts("SELECT text FROM note", on: file))
    }
    #expect(texts == ["laptop", "tablet"])
    // Without an id or a history, it is the newest of all devices.
    let newest = bench.folder.file("newest")
    try await BuckiaClient(phone.configuration()).restoreBackup(to: newest)
    #expect(try TestDatabases.texts("SELECT text FROM note", on: newest) == ["tablet"])
  }

  @Test("Diffs between devices of one person are dropped when all other devices have them")
  func ownDiffs() async throws {
    var phone = try device("phone")
    let laptop = try device("laptop")
    try await phone.sync()
    try await laptop.sync()
    try phone.run("INSERT INTO note VALUES (1,'from the phone')")
    try phone.write()
    for person in [phone, laptop] {
      try FileManager.default.createDirectory(atPath: person.outbox, withIntermediateDirectories: true)
    }
    for _ in 0..<2 {
      for person in [phone, laptop] { #expect(try await person.sync(to: ["ben"]).failures.isEmpty) }
    }
    #expect(try laptop.notes().count == 1)
    #expect(try await bench.objects("ben/inbound").isEmpty)
    // With one device this is a mistake, and the file may be the only copy.
    phone.change = { $0.userID = "ben" }
    try phone.run("INSERT INTO note VALUES (2,'again')")
    try phone.write()
    try await phone.sync(to: ["ben"])
    let result = try await phone.sync()
    #expect(result.downloaded.isEmpty)
    #expect(result.notes.contains { $0.contains("made from this database") })
    #expect(try await bench.objects("ben/inbound").count == 1)
  }

  @Test("A device known from the storage is also waited for in the fallback")
  func fallbackDevices() async throws {
    let fallback = LocalFolder(bench.folder.file("fallback"))
    var (phone, laptop) = (try device("phone"), try device("laptop"))
    let change = phone.change
    @Sendable func withFallback(_ configuration: inout BuckiaConfiguration) {
      change(&configuration)
      configuration.fallback = StorageAccount(.custom(fallback))
    }
    phone.change = { withFallback(&$0) }
    laptop.change = { withFallback(&$0) }
    try await phone.sync()
    try await laptop.sync()
    try await send(1)
    try await phone.sync()
    try await laptop.sync()
    let file = try await send(2)
    try await fallback.put(
      StorageContents(try fileBytes(bench.folder.file("storage/\(file)"))), to: RemotePath(file), .none)
    try await bench.local.delete(RemotePath(file))
    bench.watched.fail { _, _ in StorageError(.unreachable, "nothing listens") }
    #expect(try await phone.sync().applied?.applied.count == 1)
    #expect(try await fallback.exists(RemotePath(file)))
    try await laptop.sync()
    #expect(try laptop.notes().count == 2)
  }

  // MARK: Deliveries

  @Test(
    "A delivery truncated by the storage stays here, and later replaces the truncated object",
    arguments: [false, true])
  func cutDelivery(isTold: Bool) async throws {
    let storage = ModelStorage()
    var anna = try bench.person("anna")
    anna.storage = storage
    anna.options.backsUp = false
    try anna.run("INSERT INTO note VALUES (1,'x')")
    let file = try #require(try anna.write().path)
    storage.begin((call: 2, what: .cut(isTold: isTold)))
    let cut = try await anna.sync(to: ["ben"])
    #expect(cut.failures.map(\.step) == [.delivering])
    #expect(cut.delivered.isEmpty)
    #expect(FileManager.default.fileExists(atPath: file))
    let bytes = try fileBytes(file)
    storage.begin()
    #expect(try await anna.sync(to: ["ben"]).delivered.count == 1)
    #expect(storage.objects.values.map(\.bytes) == [bytes])
    #expect(!FileManager.default.fileExists(atPath: file))
  }

  @Test("A missing delivery folder is an error, and the rest of the round is done")
  func noOutbox() async throws {
    let anna = try bench.person("anna")
    let result = try await anna.sync(to: ["ben"])
    #expect(result.failures.map(\.step) == [.delivering])
    #expect(result.failures.first?.code == StorageError.Code.notFound.rawValue)
    #expect(result.backedUp)
  }

  @Test("The first round makes the snapshot, so that edits before the first applied diff are sent")
  func firstSnapshot() async throws {
    var ben = try bench.person("ben")
    ben.options.apply.snapshot = bench.folder.file("ben/known.sqlite")
    #expect(try await ben.sync().notes.filter { $0.contains("known.sqlite") }.count == 1)
    try ben.run("INSERT INTO note VALUES (9,'from Ben')")
    try await send(1)
    let second = try await ben.sync()
    #expect(second.applied?.applied.count == 1)
    #expect(second.notes.isEmpty)
    let known = bench.folder.file("ben/known.sqlite")
    #expect(try TestDatabases.rows("SELECT id FROM note", on: known) == ["1"])
  }

  @Test("An unreachable mirror stops no delivery during a full check")
  func mirrorDown() async throws {
    var anna = try bench.person("anna")
    let mirror = WatchedStorage(LocalFolder(bench.folder.file("mirror")))
    anna.change = { $0.mirrors = [StorageAccount(.custom(mirror))] }
    anna.options.looksThroughStorage = true
    try anna.addMedia([1], "originals/a.mp4")
    try anna.run("INSERT INTO note VALUES (1,'x')")
    try anna.write()
    mirror.fail { _, _ in StorageError(.unreachable, "nothing listens") }
    let result = try await anna.sync(to: ["ben"])
    #expect(result.delivered.count == 1)
    #expect(Set(result.failures.map(\.step)) == [.backingUp, .uploading])
  }

  @Test("Progress is reported in order, and never after the end of a round")
  @MainActor func progress() async throws {
    let anna = try bench.person("anna")
    let client = try BuckiaClient(anna.configuration())
    let state = SyncState()
    for _ in 0..<5 {
      try anna.run("INSERT INTO note(text) VALUES ('x')")
      _ = try await client.sync(observing: state)
      #expect(state.progress?.step == .done)
      await Task.yield()
      #expect(state.progress?.step == .done)
      #expect(!state.isRunning)
    }
    bench.watched.fail { _, call in call.hasPrefix("list") ? StorageError(.unreachable, "nothing listens") : nil }
    await #expect(throws: StorageError.self) { try await client.sync(observing: state) }
    #expect(state.progress?.step == .done)
    #expect(state.failure != nil && !state.isRunning)
  }
}
