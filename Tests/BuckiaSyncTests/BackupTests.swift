import BuckiaSync
import Foundation
import SQLiteConnections
import TestSupport
import Testing

@Suite("Backups in a storage")
struct BackupTests {
  private let folder: TemporaryFolder
  private let local: LocalFolder
  private let anna: SyncPerson

  init() throws {
    folder = try TemporaryFolder()
    local = LocalFolder(folder.file("storage"))
    anna = try SyncPerson("anna", in: folder, local)
  }

  /// Rows that make the database some hundred pages large.
  private func fill() throws {
    try anna.run(
      "WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO note SELECT i, hex(randomblob(50)) FROM n"
    )
  }

  @Test("A few changed rows cost a few kilobytes, and the restored database is equal byte for byte")
  func history() async throws {
    try fill()
    try await anna.sync()
    for round in 1...5 {
      try anna.run("UPDATE note SET text = 'round \(round)' WHERE id = \(round * 700)")
      let result = try await anna.sync()
      #expect(result.backedUp)
      #expect(result.uploaded.map(\.place) == ["anna/backups"])
      #expect(result.uploaded[0].byteCount < 10_000)
    }
    #expect(try await anna.points().map(\.sequence) == [1, 2, 3, 4, 5, 6])
    #expect(try fileBytes(try await anna.restored()) == fileBytes(anna.database))
  }

  @Test("After many changes the whole database is uploaded")
  func again() async throws {
    try fill()
    let first = try await anna.sync().uploaded[0].byteCount
    try anna.run("UPDATE note SET text = hex(randomblob(60))")
    for number in 0..<3 {
      try anna.run("UPDATE note SET text = \(number) || text")
      #expect(try await anna.sync().uploaded[0].byteCount > first / 2)
    }
    #expect(try fileBytes(try await anna.restored()) == fileBytes(anna.database))
  }

  @Test("A database that grows and shrinks is restored unchanged")
  func sizes() async throws {
    try fill()
    try await anna.sync()
    try anna.run("INSERT INTO note(text) SELECT hex(randomblob(50)) FROM note LIMIT 300")
    try await anna.sync()
    try anna.run("DELETE FROM note WHERE id > 4000; VACUUM")
    try await anna.sync()
    #expect(try fileBytes(try await anna.restored()) == fileBytes(anna.database))
  }

  @Test("A round interrupted after the upload does not mix up states")
  func lostNote() async throws {
    try fill()
    try await anna.sync()
    try anna.run("UPDATE note SET text = 'first' WHERE id = 1")
    _ = try folder.copy("anna/home/backups", to: "records")
    try await anna.sync()
    // As if the process had been killed before it recorded the upload.
    try FileManager.default.removeItem(atPath: folder.file("anna/home/backups"))
    _ = try folder.copy("records", to: "anna/home/backups")
    let first = try await anna.points()[1]
    try anna.run("UPDATE note SET text = 'second' WHERE id = 4000")
    try await anna.sync()
    #expect(try await anna.points().count == 3)
    #expect(try fileBytes(try await anna.restored()) == fileBytes(anna.database))
    let older = try await anna.restored("older.sqlite", .id(first.id))
    #expect(try TestDatabases.texts("SELECT text FROM note WHERE id = 1", on: older) == ["first"])
    #expect(try TestDatabases.texts("SELECT text FROM note WHERE id = 4000", on: older) != ["second"])
  }

  @Test("Two devices have histories of their own")
  func otherDevice() async throws {
    var other = try SyncPerson("laptop", in: folder, local)
    other.change = { $0.userID = "anna" }
    try other.run("INSERT INTO note VALUES (1,'of the laptop')")
    try await other.sync()
    try await anna.sync()
    let points = try await anna.points()
    #expect(Set(points.map(\.history)).count == 2)
    let restored = try await anna.restored("laptop.sqlite", .id(points[0].id))
    #expect(try TestDatabases.texts("SELECT text FROM note", on: restored) == ["of the laptop"])
    #expect(try TestDatabases.rows("SELECT text FROM note", on: try await anna.restored()).isEmpty)
  }

  @Test("Old backups are thinned out once a day, by the rules", arguments: [true, false])
  func retention(hasRules: Bool) async throws {
    var anna = anna
    var rules = RetentionPolicy()
    rules.last = 2
    anna.options.backupRetention = hasRules ? rules : nil
    for number in 0..<4 {
      try anna.run("INSERT INTO note VALUES (\(number),'x')")
      try await anna.sync()
    }
    // Nothing is removed on the first day.
    #expect(try await anna.points().count == 4)
    let index = try #require(try folder.names(in: "anna/home/sync").first { $0.hasSuffix(".sqlite") })
    try TestDatabases.run(
      "UPDATE setting SET value = value - 90000 WHERE name LIKE 'pruned %'", on: folder.file("anna/home/sync/\(index)"))
    try anna.run("INSERT INTO note VALUES (4,'x')")
    try await anna.sync()
    #expect(try await anna.points().map(\.sequence) == (hasRules ? [4, 5] : [1, 2, 3, 4, 5]))
    #expect(try fileBytes(try await anna.restored()) == fileBytes(anna.database))
  }

  @Test("A new backup is restored for a check if the last good check is too old", arguments: [nil, 1])
  func drills(days: Int?) async throws {
    var anna = anna
    anna.options.backupDrillDays = days
    for number in 0..<2 {
      try anna.run("INSERT INTO note VALUES (\(number),'x')")
      try await anna.sync()
    }
    #expect(try await anna.points().count == 2)
    let status = try #require(BackupStore.status(of: anna.configuration().database).first)
    #expect((status.verifiedAt != nil) == (days != nil) && status.fault == nil)
    // Only the first one was: a day has not passed.
    let checked = try await BuckiaClient(anna.configuration()).backups.history(home: anna.configuration().database.home)
    #expect(checked.points.map(\.isVerified) == [days != nil, false])
  }

  @Test("Encrypted backups are opened by the key that they are encrypted for, and by no other one")
  func encrypted() async throws {
    var anna = anna
    let identity = AgeIdentity()
    anna.options.backupRecipients = [try identity.recipient()]
    try anna.run("INSERT INTO note VALUES (1,'secret')")
    try await anna.sync()
    let client = try BuckiaClient(anna.configuration())
    await #expect(throws: (any Error).self) { try await client.restoreBackup(to: folder.file("a")) }
    try await client.restoreBackup(to: folder.file("b"), with: [identity])
    #expect(try fileBytes(folder.file("b")) == fileBytes(anna.database))
    // Later rounds know for whom.
    anna.options.backupRecipients = []
    try anna.run("INSERT INTO note VALUES (2,'secret')")
    try await anna.sync()
    #expect(try await client.backups.history(home: anna.home).points.map(\.isEncrypted) == [true, true])
  }

  @Test("An altered object is detected, and leaves no file", arguments: [0, 40, 200, 4_100, -5])
  func altered(offset: Int) async throws {
    try fill()
    try await anna.sync()
    try anna.run("UPDATE note SET text = 'x' WHERE id = 1")
    try await anna.sync()
    let object = try #require(try await local.listAll(RemotePath("anna/backups")).objects.last)
    var bytes = try await local.get(object.path, GetRequest()).chunks.bytes(upTo: 1 << 20)
    bytes[offset < 0 ? bytes.count + offset : min(offset, bytes.count - 1)] ^= 0x10
    try await local.put(StorageContents(bytes), to: object.path, .none)
    let error = try await #require(throws: StorageError.self) { try await anna.restored() }
    #expect(error.code == .damaged)
    #expect(try folder.names(in: ".").allSatisfy { !$0.contains("restored") && !$0.hasPrefix(".buckia") })
  }

  @Test("An existing file is never replaced")
  func existing() async throws {
    try await anna.sync()
    try folder.write([1], to: "restored.sqlite")
    let error = try await #require(throws: StorageError.self) { try await anna.restored() }
    #expect(error.code == .alreadyExists)
    #expect(try fileBytes(folder.file("restored.sqlite")) == [1])
  }

  @Test("A database in use is copied in one consistent state")
  func inUse() async throws {
    try anna.run("PRAGMA journal_mode = WAL")
    let writer = try SQLiteConnection(opening: anna.database, as: .readWrite)
    try writer.execute("INSERT INTO note VALUES (1,'committed'); BEGIN; INSERT INTO note VALUES (2,'not yet')")
    try await anna.sync()
    #expect(try TestDatabases.rows("SELECT id FROM note", on: try await anna.restored()) == ["1"])
    try writer.execute("COMMIT")
    #expect(try await anna.sync().backedUp)
  }
}

@Suite("Several devices of one person")
struct DeviceTests {
  @Test("A diff stays in the inbound folder until all devices have applied it")
  func all() async throws {
    let folder = try TemporaryFolder()
    let local = LocalFolder(folder.file("storage"))
    let anna = try SyncPerson("anna", in: folder, local)
    func device(_ name: String) throws -> SyncPerson { try .device(name, of: "ben", in: folder, local) }
    let (phone, laptop) = (try device("phone"), try device("laptop"))
    try await phone.sync()
    try await laptop.sync()
    try anna.run("INSERT INTO note VALUES (1,'x')")
    try anna.write()
    try await anna.sync(to: ["ben"])
    func inbound() async throws -> Int { try await local.listAll(RemotePath("ben/inbound")).objects.count }
    #expect(try await phone.sync().applied?.applied.count == 1)
    #expect(try await inbound() == 1)
    #expect(try await phone.sync().downloaded.isEmpty)
    #expect(try await laptop.sync().dropped.count == 1)
    #expect(try await inbound() == 0)
    #expect(try phone.notes() == laptop.notes())
    #expect(try await local.listAll(RemotePath("ben/devices")).objects.allSatisfy { $0.path.name == "device" })
    // Each device has its own backup.
    #expect(try await Set(phone.points().map(\.history)).count == 2)
  }
}
