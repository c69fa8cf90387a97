import Foundation
import NIOConcurrencyHelpers
import TestSupport
import Testing

@testable import BuckiaSync

@Suite("Accidents to backups and storages")
struct BackupSafetyTests {
  private let folder: TemporaryFolder
  private let local: LocalFolder
  private let anna: SyncPerson

  init() throws {
    folder = try TemporaryFolder()
    local = LocalFolder(folder.file("storage"))
    anna = try SyncPerson("anna", in: folder, local)
  }

  private func names() async throws -> [String] {
    try await local.places()
  }

  @Test("After rounds that were killed at any call, the newest state is restored", arguments: 1...9)
  func killedAgain(call: Int) async throws {
    let storage = ModelStorage()
    var anna = anna
    anna.storage = storage
    for number in 0..<4 {
      try anna.run("INSERT INTO note VALUES (\(number), hex(randomblob(20000)))")
      storage.begin((call: call + number / 2, what: .kill(isDone: true)))
      do { try await anna.sync() } catch is CancellationError {}
    }
    storage.begin()
    try await anna.sync()
    #expect(try fileBytes(try await anna.restored()) == fileBytes(anna.database))
  }

  @Test("A full check finds damage in the history, and the backup is made again", arguments: [0, 1, 2])
  func damagedHistory(number: Int) async throws {
    try anna.run("INSERT INTO note VALUES (0, hex(randomblob(300000)))")
    try await anna.sync()
    for number in 1...2 {
      try anna.run("INSERT INTO note VALUES (\(number),'x')")
      try await anna.sync()
    }
    let path = try await local.listAll(RemotePath("anna/backups")).objects[number].path
    var bytes = try await local.get(path, GetRequest()).chunks.bytes(upTo: 1 << 20)
    bytes[bytes.count - 10] ^= 1
    try await local.put(StorageContents(bytes), to: path, .none)
    var anna = anna
    #expect(try await anna.sync().isIdle)
    anna.options.looksThroughStorage = true
    let result = try await anna.sync()
    #expect(result.backedUp)
    #expect(result.notes.contains { $0.contains("made again") })
    #expect(try await anna.sync().isIdle)
    #expect(try fileBytes(try await anna.restored()) == fileBytes(anna.database))
  }

  @Test("A removed backup is made again before any diff is dropped")
  func removedBackup() async throws {
    let ben = try SyncPerson("ben", in: folder, local)
    try await ben.sync()
    try anna.run("INSERT INTO note VALUES (1,'x')")
    try anna.write()
    try await anna.sync(to: ["ben"])
    let watched = WatchedStorage(local)
    var careful = ben
    careful.storage = watched
    watched.fail { _, call in call.hasPrefix("delete ben/inbound") ? StorageError(.forbidden, "no") : nil }
    try await careful.sync()
    try await local.deleteAll(in: RemotePath("ben/backups"))
    watched.fail { _, call in call.hasPrefix("put ben/backups/") ? StorageError(.fullStorage, "full") : nil }
    #expect(try await careful.sync().dropped.isEmpty)
    watched.fail(nil)
    #expect(try await careful.sync().dropped.count == 1)
    #expect(try await names().contains("ben/backups"))
  }

  @Test(
    "A database that is an empty file, or has damaged pages, does not replace its backup", arguments: [true, false])
  func unusableDatabase(isEmpty: Bool) async throws {
    try anna.run("INSERT INTO note VALUES (0, hex(randomblob(300000)))")
    try await anna.sync()
    let backups = try await local.listAll(RemotePath("anna/backups")).objects
    var bytes = try fileBytes(anna.database)
    if isEmpty { bytes = [] } else { for index in 4096..<4196 { bytes[index] = 0xFF } }
    try Data(bytes).write(to: URL(fileURLWithPath: anna.database))
    try FileManager.default.createDirectory(atPath: anna.outbox, withIntermediateDirectories: true)
    let diff = "3MOszSZz3uTLnb7JQCqVqYrLuuY.bdiff"
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: "\(anna.outbox)/\(diff)"))
    let result = try await anna.sync(to: ["ben"])
    #expect(result.failures.map(\.step) == [.backingUp])
    #expect(!result.backedUp)
    #expect(try #require(result.failures.first).message.contains("restore a point"))
    #expect(result.delivered.count == 1)
    #expect(try await local.listAll(RemotePath("anna/backups")).objects == backups)
    #expect(try await names() == ["anna/backups", "ben/inbound/\(diff)"])
  }

  @Test("A backup whose upload failed does not count as made")
  func failedUpload() async throws {
    let watched = WatchedStorage(local)
    var anna = anna
    anna.storage = watched
    watched.fail { _, call in call.hasPrefix("put") ? StorageError(.fullStorage, "full") : nil }
    #expect(try await !anna.sync().backedUp)
    watched.fail(nil)
    #expect(try await anna.sync().backedUp)
  }

  @Test("After the home was lost, the newest state is restored, and the older backup stays")
  func lostHome() async throws {
    try anna.run("INSERT INTO note VALUES (1,'x')")
    try await anna.sync()
    for path in ["anna/home", "anna/files"] { try FileManager.default.removeItem(atPath: folder.file(path)) }
    for number in 2...4 {
      try anna.run("INSERT INTO note VALUES (\(number),'x')")
      try await anna.sync()
    }
    let points = try await anna.points()
    #expect(Set(points.map(\.history)).count == 2)
    for (place, count) in [(0, "1"), (points.count - 1, "4")] {
      let restored = try await anna.restored("restored \(place)", .id(points[place].id))
      #expect(try TestDatabases.rows("SELECT count(*) FROM note", on: restored) == [count])
    }
    #expect(try TestDatabases.rows("SELECT count(*) FROM note", on: try await anna.restored()) == ["4"])
  }

  @Test("The rest of a broken upload does not count as a backup")
  func brokenUpload() async throws {
    try anna.run("INSERT INTO note VALUES (0, hex(randomblob(30000)))")
    try await anna.sync()
    let object = try #require(try await local.listAll(RemotePath("anna/backups")).objects.first)
    let bytes = try await local.get(object.path, GetRequest()).chunks.bytes(upTo: 1 << 20)
    try await local.put(StorageContents(Array(bytes.dropLast())), to: object.path, .none)
    let error = try await #require(throws: StorageError.self) { try await anna.restored() }
    #expect(error.code == .truncated)
    try anna.run("INSERT INTO note VALUES (1, 'x')")
    try await anna.sync()
    #expect(try fileBytes(try await anna.restored()) == fileBytes(anna.database))
  }

  // MARK: Folders as storages

  private func atFolder(_ path: String) -> SyncPerson {
    var anna = anna
    anna.change = { $0.storage = StorageAccount(.localFolder(path)) }
    return anna
  }

  @Test("A storage on an unmounted volume is not created on another volume")
  func unmounted() async throws {
    let stick = folder.file("stick")
    let anna = atFolder("\(stick)/buckia")
    // Its volume is not mounted the first time.
    #expect(try await anna.sync().failures.map(\.step) == [.backingUp])
    #expect(!folder.has("stick"))
    try folder.makeFolder("stick")
    #expect(try await anna.sync().failures.isEmpty)
    #expect(folder.has("stick/buckia/.buckia-storage"))
    // The volume is unmounted, and its mount point is left.
    try FileManager.default.moveItem(atPath: stick, toPath: folder.file("unplugged"))
    try folder.makeFolder("stick")
    let error = try await #require(throws: StorageError.self) { try await anna.sync() }
    #expect(error.code == .unreachable)
    #expect(error.message.contains("--adopt-folders"))
    #expect(try folder.names(in: "stick").isEmpty)
    // Another stick is another storage.
    try folder.makeFolder("stick/buckia")
    try folder.write(Array("another\n".utf8), to: "stick/buckia/.buckia-storage")
    await #expect(throws: StorageError.self) { try await anna.sync() }
    try FileManager.default.removeItem(atPath: stick)
    try FileManager.default.moveItem(atPath: folder.file("unplugged"), toPath: stick)
    #expect(try await anna.sync().failures.isEmpty)
    // The folder was emptied on purpose.
    try FileManager.default.removeItem(atPath: "\(stick)/buckia")
    await #expect(throws: StorageError.self) { try await anna.sync() }
    try await BuckiaClient(anna.configuration()).adoptFolders()
    var checking = anna
    checking.options.looksThroughStorage = true
    #expect(try await checking.sync().backedUp)
  }

  // MARK: Permissions

  /// True if others may read a file.
  private func isOpen(_ path: String) throws -> Bool {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return try #require(attributes[.posixPermissions] as? Int) & 0o077 != 0
  }

  @Test("No copy of a private database or diff can be read by others")
  func permissions() async throws {
    let ben = try SyncPerson("ben", in: folder, local)
    for person in [anna, ben] {
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: person.database)
    }
    try anna.run("INSERT INTO note VALUES (0, hex(randomblob(300000)))")
    let diff = try #require(try anna.write().path)
    #expect(try !isOpen(diff))
    try await local.put(
      StorageContents(Array("no diff".utf8)), to: RemotePath("ben/inbound/3MOszSZz3uTLnb7JQCqVqYrLuuY.bdiff"), .none)
    try await anna.sync(to: ["ben"])
    let delivered = try #require(try await names().first { $0.hasSuffix((diff as NSString).lastPathComponent) })
    #expect(try !isOpen(folder.file("storage/\(delivered)")))
    try await ben.sync()
    try ben.run("INSERT INTO note VALUES (1,'x')")
    try await ben.sync()
    for object in try await local.listAll(nil).objects where !object.path.text.contains("inbound") {
      #expect(try !isOpen(folder.file("storage/\(object.path)")), "\(object.path)")
    }
    #expect(try await ben.points().count == 2)
    for name in try folder.names(in: "ben/home/backups") {
      #expect(try !isOpen(folder.file("ben/home/backups/\(name)")), "\(name)")
    }
    // The refused file is still here.
    for name in try FileManager.default.contentsOfDirectory(atPath: "\(ben.place)/inbound") {
      #expect(try !isOpen("\(ben.place)/inbound/\(name)"), "\(name)")
    }
    let restored = folder.file("restored.sqlite")
    try await BuckiaClient(ben.configuration()).restoreBackup(to: restored)
    #expect(try !isOpen(restored))
    for name in try folder.names(in: "ben/home/sync") where name.hasSuffix(".sqlite") {
      #expect(try !isOpen(folder.file("ben/home/sync/\(name)")), "\(name)")
    }
  }

  @Test("A round killed at any step leaves no file that others can read", arguments: [0, 1])
  func permissionsBehindKills(part: Int) async throws {
    var anna = anna
    let mirror = folder.file("mirror")
    anna.change = { $0.mirrors = [StorageAccount(.localFolder(mirror))] }
    anna.options.apply.snapshot = folder.file("anna/known.sqlite")
    anna.options.fetches = ["**"]
    try anna.addMedia([1], "originals/a.jpg")
    try anna.run("INSERT INTO note VALUES (0, hex(randomblob(30000)))")
    let diff = try #require(try anna.write().path)
    // Existing files keep the permissions they were made with, except these.
    for file in [anna.database, diff, "\(anna.place)/originals/a.jpg"] {
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
    }
    let known = try Set(FileManager.default.subpathsOfDirectory(atPath: folder.path))
    for step in 0..<40 {
      if step % 8 == 7 { try anna.run("INSERT INTO note(text) VALUES ('x')") }
      let passed = NIOLockedValueBox(0)
      let end: @Sendable () throws -> Void = {
        let count = passed.withLockedValue { count -> Int in
          count += 1
          return count
        }
        if count > step * 2 + part { throw CancellationError() }
      }
      do { _ = try await LocalStep.$end.withValue(end) { try await anna.sync(to: ["ben"]) } } catch is CancellationError
      {}
      for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path) where !known.contains(path) {
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.file(path))
        // Locks and markers contain nothing private.
        if attributes[.type] as? FileAttributeType == .typeDirectory || path.hasSuffix("lock") { continue }
        if path.hasSuffix("/.buckia-storage") { continue }
        #expect(try !isOpen(folder.file(path)), "\(path), killed at step \(step * 2 + part)")
      }
    }
    try await anna.sync(to: ["ben"])
    #expect(try await names().contains { $0.hasPrefix("ben/inbound/") })
    #expect(folder.has("mirror/anna/originals/a.jpg") && folder.has("anna/known.sqlite"))
  }
}
