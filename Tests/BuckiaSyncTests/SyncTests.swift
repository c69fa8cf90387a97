import BuckiaSync
import Foundation
import TestSupport
import Testing

@Suite("A round of sync")
struct SyncTests {
  private let bench: SyncBench

  init() throws { bench = try SyncBench() }

  // MARK: Diffs

  @Test("A diff arrives at its recipient, is applied once, and is dropped from the storage")
  func exchange() async throws {
    let (anna, ben) = (try bench.person("anna"), try bench.person("ben"))
    try anna.run("INSERT INTO note VALUES (1,'from Anna')")
    let file = try anna.write().path.map { ($0 as NSString).lastPathComponent } ?? ""
    let sent = try await anna.sync(to: ["ben"])
    #expect(sent.delivered.map(\.path.text) == ["ben/inbound/\(file)"])
    #expect(try await bench.objects("ben") == ["ben/inbound/\(file)"])
    #expect(try bench.folder.names(in: "anna/outbox") == [])
    let received = try await ben.sync()
    #expect(received.downloaded.map(\.path.text) == ["ben/inbound/\(file)"])
    #expect(received.applied?.applied.count == 1)
    #expect(received.dropped.map(\.text) == ["ben/inbound/\(file)"])
    #expect(received.failures.isEmpty)
    #expect(try ben.notes() == ["'\(bytes("from Anna"))'"])
    // The backup with the change is there before the diff is dropped.
    #expect(try await bench.objects("ben") == ["ben/backups"])
    let put = bench.watched.calls.firstIndex { $0.hasPrefix("put ben/backups/") }
    let dropped = bench.watched.calls.firstIndex { $0.hasPrefix("delete ben/inbound/") }
    #expect(try #require(put) < #require(dropped))
  }

  private func bytes(_ text: String) -> String { text.utf8.map { "\($0)" }.joined(separator: ".") }

  @Test("A round with nothing to do makes one request")
  func idle() async throws {
    let anna = try bench.person("anna")
    try anna.addMedia([1, 2, 3], "originals/a.mp4")
    try await anna.sync()
    bench.watched.forgetCalls()
    let result = try await anna.sync()
    #expect(result.isIdle)
    #expect(bench.watched.calls == ["list anna/inbound"])
  }

  @Test("A diff that waits for another stays in both places until that arrives")
  func waiting() async throws {
    let (anna, ben) = (try bench.person("anna"), try bench.person("ben"))
    let scope = ShareScope(name: "notes") { SharedTable("note") }
    var options = ShareOptions()
    options.isUnencrypted = true
    func share(_ sql: String) throws -> String {
      try anna.run(sql)
      let report = try DatabaseManager(anna.database, home: anna.home).share(
        scope, to: [ShareRecipient("ben")], output: .folder(anna.outbox), options: options)
      return report.path ?? ""
    }
    _ = try share("INSERT INTO note VALUES (1,'one')")
    try await anna.sync(to: ["ben"])
    let second = try share("INSERT INTO note VALUES (2,'two')")
    let aside = bench.folder.file("aside")
    try FileManager.default.moveItem(atPath: second, toPath: aside)
    _ = try share("INSERT INTO note VALUES (3,'three')")
    try await anna.sync(to: ["ben"])
    let waiting = try await ben.sync()
    #expect(waiting.applied?.diffs.map(\.state) == [.applied, .waiting])
    #expect(waiting.dropped.count == 1)
    #expect(try await bench.objects("ben/inbound").count == 1)
    bench.watched.forgetCalls()
    #expect(try await ben.sync().dropped.isEmpty)
    #expect(!bench.watched.calls.contains { $0.hasPrefix("get") })
    try FileManager.default.moveItem(atPath: aside, toPath: second)
    try await anna.sync(to: ["ben"])
    try await ben.sync()
    #expect(try ben.notes().count == 3)
    #expect(try await bench.objects("ben/inbound").isEmpty)
  }

  @Test("A damaged file and unknown files stay, and do not stop the round")
  func damaged() async throws {
    let (anna, ben) = (try bench.person("anna"), try bench.person("ben"))
    try anna.run("INSERT INTO note VALUES (1,'good')")
    try anna.write()
    try await anna.sync(to: ["ben"])
    let bad = "ben/inbound/3MOszSZz3uTLnb7JQCqVqYrLuuY.bdiff"
    try await bench.local.put(StorageContents(Array("no diff file".utf8)), to: RemotePath(bad), .none)
    try await bench.local.put(StorageContents([1]), to: RemotePath("ben/inbound/readme.txt"), .none)
    let result = try await ben.sync()
    #expect(result.inboundCount == 3)
    #expect(result.applied?.rejected.count == 1)
    #expect(try ben.notes().count == 1)
    #expect(try await bench.objects("ben/inbound") == [bad, "ben/inbound/readme.txt"])
  }

  @Test("Another file with the name of a delivered one is left alone, and reported")
  func otherDelivery() async throws {
    let anna = try bench.person("anna")
    try anna.run("INSERT INTO note VALUES (1,'x')")
    let file = try #require(try anna.write().path)
    let name = (file as NSString).lastPathComponent
    try await bench.local.put(StorageContents([1]), to: RemotePath("ben/inbound/\(name)"), .none)
    let result = try await anna.sync(to: ["ben"])
    #expect(result.failures.first?.code == StorageError.Code.alreadyExists.rawValue)
    #expect(FileManager.default.fileExists(atPath: file))
    #expect(try await bench.local.stat(RemotePath("ben/inbound/\(name)"))?.byteCount == 1)
  }

  // MARK: Faults

  @Test("A storage that cannot be listed stops the round before it does anything")
  func unlisted() async throws {
    let anna = try bench.person("anna")
    bench.watched.fail { _, call in call.hasPrefix("list") ? StorageError(.forbidden, "no") : nil }
    await #expect(throws: StorageError.self) { try await anna.sync() }
    #expect(bench.watched.calls == ["list anna/inbound"])
  }

  @Test("A failed download leads to no upload and no deletion")
  func failedDownload() async throws {
    let (anna, ben) = (try bench.person("anna"), try bench.person("ben"))
    for number in 1...2 {
      try anna.run("INSERT INTO note VALUES (\(number),'x')")
      try anna.write()
    }
    try await anna.sync(to: ["ben"])
    bench.watched.forgetCalls()
    bench.watched.fail { number, call in
      call.hasPrefix("get") && number == 1 ? StorageError(.truncated, "cut off") : nil
    }
    let once = try await ben.sync()
    // The one fault is overcome by a retry.
    #expect(once.failures.isEmpty)
    bench.watched.forgetCalls()
    try anna.run("INSERT INTO note VALUES (3,'x')")
    try anna.write()
    bench.watched.fail(nil)
    try await anna.sync(to: ["ben"])
    bench.watched.forgetCalls()
    bench.watched.fail { _, call in call.hasPrefix("get") ? StorageError(.interrupted, "cut off") : nil }
    let result = try await ben.sync()
    #expect(result.isCutShort)
    #expect(result.failures.count == 1)
    #expect(!bench.watched.calls.contains { $0.hasPrefix("put") || $0.hasPrefix("delete") })
    bench.watched.fail(nil)
    try await ben.sync()
    #expect(try ben.notes().count == 3)
  }

  /// Ben, who has a media file, and to whom Anna has sent two diffs; and the path of the first one.
  private func personWithTwoDiffs() async throws -> (SyncPerson, String) {
    let (anna, ben) = (try bench.person("anna"), try bench.person("ben"))
    for number in 1...2 {
      try anna.run("INSERT INTO note VALUES (\(number),'x')")
      try anna.write()
    }
    try await anna.sync(to: ["ben"])
    try ben.addMedia([1], "originals/a.mp4")
    return (ben, try #require(try await bench.objects("ben/inbound").first))
  }

  @Test(
    "A download error of the device or the whole storage leads to no upload and no deletion either",
    arguments: [.unauthorized, .unwritable, .fullDisk] as [StorageError.Code])
  func lastingDownloadFault(code: StorageError.Code) async throws {
    let (ben, bad) = try await personWithTwoDiffs()
    bench.watched.forgetCalls()
    bench.watched.fail { _, call in call == "get \(bad)" ? StorageError(code, "no") : nil }
    let result = try await ben.sync()
    #expect(result.isCutShort)
    #expect(result.failures.map(\.step) == [.downloading])
    #expect(result.failures.first?.code == code.rawValue)
    #expect(result.downloaded.count == 1)
    #expect(!bench.watched.calls.contains { $0.hasPrefix("put") || $0.hasPrefix("delete") || $0.hasPrefix("move") })
    bench.watched.fail(nil)
    #expect(try await ben.sync().failures.isEmpty)
    #expect(try ben.notes().count == 2)
    #expect(try await bench.objects("ben") == ["ben/backups", "ben/originals/a.mp4"])
  }

  @Test(
    "An unreadable object is reported, and the rest of the round is done",
    arguments: [.forbidden, .notFound, .truncated, .invalidAnswer, .unsupported] as [StorageError.Code])
  func unreadableObject(code: StorageError.Code) async throws {
    let (ben, bad) = try await personWithTwoDiffs()
    try ben.run("INSERT INTO note VALUES (9,'from Ben')")
    try ben.write()
    bench.watched.fail { _, call in call == "get \(bad)" ? StorageError(code, "no") : nil }
    for round in 1...2 {
      let result = try await ben.sync(to: ["anna"])
      #expect(!result.isCutShort)
      #expect(result.failures.map(\.step) == [.downloading])
      #expect(result.delivered.count == (round == 1 ? 1 : 0))
    }
    #expect(try ben.notes().count == 2)
    #expect(try await bench.objects("ben") == ["ben/backups", bad, "ben/originals/a.mp4"])
    bench.watched.fail(nil)
    #expect(try await ben.sync().failures.isEmpty)
    #expect(try ben.notes().count == 3)
    #expect(try await bench.objects("ben/inbound").isEmpty)
  }

  @Test("After a failure of any call, the next round ends as if nothing had failed", arguments: 0..<12)
  func anyFault(failing: Int) async throws {
    let (anna, ben) = (try bench.person("anna"), try bench.person("ben"))
    for number in 1...3 {
      try anna.run("INSERT INTO note VALUES (\(number),'x')")
      try anna.write()
    }
    try anna.addMedia([1, 2, 3], "originals/film.mp4")
    bench.watched.fail { number, _ in number == failing ? StorageError(.forbidden, "no") : nil }
    do { try await anna.sync(to: ["ben"]) } catch is StorageError {}
    bench.watched.fail(nil)
    try await anna.sync(to: ["ben"])
    bench.watched.forgetCalls()
    bench.watched.fail { number, _ in number == failing ? StorageError(.forbidden, "no") : nil }
    do { try await ben.sync() } catch is StorageError {}
    bench.watched.fail(nil)
    try await ben.sync()
    try await ben.sync()
    #expect(try ben.notes().count == 3)
    let left = try await bench.objects()
    #expect(left == ["anna/backups", "anna/originals/film.mp4", "ben/backups"])
    let restored = bench.folder.file("restored.sqlite")
    try await BuckiaClient(ben.configuration()).restoreBackup(to: restored)
    #expect(try TestDatabases.content(of: restored) == TestDatabases.content(of: ben.database))
  }

  @Test("No diff is dropped while the backup cannot be written")
  func noBackup() async throws {
    let (anna, ben) = (try bench.person("anna"), try bench.person("ben"))
    try anna.run("INSERT INTO note VALUES (1,'x')")
    try anna.write()
    try await anna.sync(to: ["ben"])
    bench.watched.fail { _, call in call.hasPrefix("put ben/backups/") ? StorageError(.fullStorage, "full") : nil }
    let result = try await ben.sync()
    #expect(result.applied?.applied.count == 1)
    #expect(result.dropped.isEmpty)
    #expect(result.failures.map(\.step) == [.backingUp])
    #expect(try await bench.objects("ben/inbound").count == 1)
    bench.watched.fail(nil)
    #expect(try await ben.sync().dropped.count == 1)
  }

  @Test("The fallback replaces a storage that cannot be reached")
  func fallback() async throws {
    var anna = try bench.person("anna")
    let other = LocalFolder(bench.folder.file("fallback"))
    anna.change = { $0.fallback = StorageAccount(.custom(other)) }
    bench.watched.fail { _, _ in StorageError(.unreachable, "nothing listens") }
    let result = try await anna.sync()
    #expect(result.storage == other.name)
    #expect(result.fallbackReason?.contains("nothing listens") == true)
    #expect(try await other.places() == ["anna/backups"])
  }

  @Test("A mirror gets the same as the storage, and does not stop a round when it fails")
  func mirrors() async throws {
    var anna = try bench.person("anna")
    try anna.addMedia([1], "reworked/a.jpg")
    let good = LocalFolder(bench.folder.file("mirror"))
    let bad = WatchedStorage(LocalFolder(bench.folder.file("bad mirror")))
    bad.fail { _, _ in StorageError(.unreachable, "nothing listens") }
    anna.change = { $0.mirrors = [StorageAccount(.custom(bad)), StorageAccount(.custom(good))] }
    let result = try await anna.sync()
    #expect(try await good.places() == ["anna/backups", "anna/reworked/a.jpg"])
    #expect(try await bench.objects() == ["anna/backups", "anna/reworked/a.jpg"])
    #expect(result.failures.count == 2)
    bad.fail(nil)
    #expect(try await anna.sync().failures.isEmpty)
    #expect(try await bad.listAll(nil).objects.count == 2)
  }

  @Test("Local deletions are repeated in mirrors, later if a mirror does not answer")
  func orphansOfMirrors() async throws {
    var anna = try bench.person("anna")
    for name in ["a", "b"] { try anna.addMedia([1], "reworked/\(name).jpg") }
    let mirror = WatchedStorage(LocalFolder(bench.folder.file("mirror")))
    anna.change = { $0.mirrors = [StorageAccount(.custom(mirror))] }
    anna.options.deletesOrphanedFiles = true
    try await anna.sync()
    try FileManager.default.removeItem(atPath: "\(anna.place)/reworked/a.jpg")
    mirror.fail { _, _ in StorageError(.unreachable, "nothing listens") }
    #expect(try await anna.sync().deleted.map(\.text) == ["anna/reworked/a.jpg"])
    #expect(try await bench.objects("anna/reworked") == ["anna/reworked/b.jpg"])
    mirror.fail(nil)
    #expect(try await mirror.listAll(RemotePath("anna/reworked")).objects.count == 2)
    #expect(try await anna.sync().deleted.map(\.text) == ["anna/reworked/a.jpg"])
    #expect(try await mirror.listAll(RemotePath("anna/reworked")).objects.map(\.path.text) == ["anna/reworked/b.jpg"])
    #expect(try await anna.sync().deleted.isEmpty)
  }

  @Test("Two rounds for one database do not run at the same time")
  func oneRound() async throws {
    let anna = try bench.person("anna")
    let client = try BuckiaClient(anna.configuration())
    let other = try BuckiaClient(anna.configuration())
    let results = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<4 {
        group.addTask {
          do {
            _ = try await client.sync()
            return true
          } catch { return false }
        }
        group.addTask {
          do {
            _ = try await other.sync()
            return true
          } catch let error as BuckiaError { return !error.isBusy } catch { return false }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(results.contains(true))
  }

  // MARK: Media

  @Test("Media are uploaded once, again when they change, and not when they are only touched")
  func media() async throws {
    let anna = try bench.person("anna")
    try anna.addMedia([1, 2, 3], "originals/2026/film.mp4")
    try anna.addMedia([4], "reworked/film.jpg")
    #expect(try await anna.sync().uploaded.count == 3)
    try anna.addMedia([1, 2, 3], "originals/2026/film.mp4")
    let touched = try await anna.sync()
    #expect(touched.uploaded.isEmpty)
    #expect(touched.unchangedCount == 2)
    try anna.addMedia([1, 2, 4], "originals/2026/film.mp4")
    #expect(try await anna.sync().uploaded.map(\.place) == ["anna/originals/2026/film.mp4"])
    let stored = try await bench.local.get(RemotePath("anna/originals/2026/film.mp4"), GetRequest())
    #expect(try await stored.chunks.bytes(upTo: 10) == [1, 2, 4])
  }

  @Test("Patterns choose the media")
  func patterns() async throws {
    var anna = try bench.person("anna")
    for name in ["a.mp4", "b.mov", "private/c.mp4", "tmp/d.mp4"] { try anna.addMedia([1], "originals/\(name)") }
    anna.options.include = ["*.mp4"]
    anna.options.exclude = ["private/**", "tmp/*"]
    #expect(try await anna.sync().uploaded.map(\.place).sorted() == ["anna/backups", "anna/originals/a.mp4"])
    anna.options.uploadsOriginals = false
    anna.options.include = []
    #expect(try await anna.sync().uploaded.isEmpty)
  }

  @Test(
    "Local deletions are repeated in the storage on request, except other devices' files, and never for all files"
  )
  func orphans() async throws {
    var anna = try bench.person("anna")
    try anna.addMedia([1], "originals/a.mp4")
    try anna.addMedia([2], "originals/b.mp4")
    try await anna.sync()
    try await bench.local.put(StorageContents([3]), to: RemotePath("anna/originals/other.mp4"), .none)
    try FileManager.default.removeItem(atPath: "\(anna.place)/originals/a.mp4")
    #expect(try await anna.sync().deleted.isEmpty)
    anna.options.deletesOrphanedFiles = true
    #expect(try await anna.sync().deleted.map(\.text) == ["anna/originals/a.mp4"])
    #expect(try await bench.objects("anna/originals") == ["anna/originals/b.mp4", "anna/originals/other.mp4"])
    // As if the volume were not mounted.
    try FileManager.default.removeItem(atPath: "\(anna.place)/originals/b.mp4")
    let result = try await anna.sync()
    #expect(result.deleted.isEmpty)
    #expect(result.notes.count == 1)
  }

  @Test("A full check uploads media again that were removed from the storage")
  func lookedThrough() async throws {
    var anna = try bench.person("anna")
    try anna.addMedia([1], "originals/a.mp4")
    try await anna.sync()
    try await bench.local.deleteAll(in: RemotePath("anna"))
    #expect(try await anna.sync().uploaded.isEmpty)
    anna.options.looksThroughStorage = true
    #expect(try await anna.sync().uploaded.map(\.place) == ["anna/backups", "anna/originals/a.mp4"])
  }

  @Test("A dry run changes nothing")
  func dryRun() async throws {
    var (anna, ben) = (try bench.person("anna"), try bench.person("ben"))
    try anna.run("INSERT INTO note VALUES (1,'x')")
    try anna.write()
    try await anna.sync(to: ["ben"])
    try ben.addMedia([1], "originals/a.mp4")
    bench.watched.forgetCalls()
    ben.options.isDryRun = true
    let result = try await ben.sync()
    #expect(result.downloaded.count == 1)
    #expect(result.uploaded.map(\.place) == ["ben/originals/a.mp4"])
    #expect(result.backedUp)
    #expect(!bench.watched.calls.contains { !$0.hasPrefix("list") })
    #expect(try ben.notes().isEmpty)
    anna.options.isDryRun = true
    #expect(try await anna.sync().isIdle)
  }

  // MARK: Progress and folders

  @Test("Each step is reported")
  func progress() async throws {
    let anna = try bench.person("anna")
    try anna.addMedia([1, 2], "originals/a.mp4")
    let client = try BuckiaClient(anna.configuration())
    let state = await SyncState()
    let stream = client.progress
    let last = Task {
      var seen: [SyncProgress.Step] = []
      for await progress in stream {
        seen.append(progress.step)
        if progress.step == .done { break }
      }
      return seen
    }
    _ = try await client.sync(observing: state)
    #expect(await last.value.last == .done)
    #expect(await state.result?.uploaded.count == 2)
    #expect(await !state.isRunning)
  }

  @Test("The person's folder moves to the other place, and is found there")
  func places() async throws {
    var anna = try bench.person("anna")
    let other = bench.folder.file("stick")
    anna.change = { $0.folders.other = other }
    try anna.addMedia([1], "originals/a.mp4")
    let client = try BuckiaClient(anna.configuration())
    #expect(try await client.folders().place == .main)
    try await client.moveFolders(to: .other)
    #expect(FileManager.default.fileExists(atPath: "\(other)/anna/originals/a.mp4"))
    #expect(!FileManager.default.fileExists(atPath: anna.place))
    // Another client, as after reinstalling the app.
    #expect(try await BuckiaClient(anna.configuration()).folders().place == .other)
    // A volume that is not mounted is no reason to start again.
    try FileManager.default.moveItem(atPath: other, toPath: "\(other) unplugged")
    let error = try await #require(throws: StorageError.self) { try await anna.sync() }
    #expect(error.code == .notFound)
    try FileManager.default.moveItem(atPath: "\(other) unplugged", toPath: other)
    try FileManager.default.createDirectory(atPath: anna.place, withIntermediateDirectories: true)
    #expect(try await BuckiaClient(anna.configuration()).folders().place == .other)
  }
}
