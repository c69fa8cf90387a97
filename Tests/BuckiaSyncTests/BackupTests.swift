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

  private func restored(_ name: String = "restored.sqlite", _ configuration: BuckiaConfiguration? = nil) async throws
    -> RestoredBackup
  {
    try await BuckiaClient(configuration ?? anna.configuration()).restoreBackup(to: folder.file(name))
  }

  /// The copy that was uploaded last.
  private var copy: String { "\(anna.place)/backup.sqlite" }

  @Test("A few changed rows cost a few kilobytes, and the restored database is equal byte for byte")
  func history() async throws {
    try fill()
    try await anna.sync()
    let whole = try await local.stat(RemotePath("anna/backup.sqlite"))
    for round in 1...5 {
      try anna.run("UPDATE note SET text = 'round \(round)' WHERE id = \(round * 700)")
      let result = try await anna.sync()
      #expect(result.backedUp)
      #expect(result.uploaded.count == 1)
      #expect(result.uploaded[0].path.text.hasPrefix("anna/history/backup.sqlite/"))
      #expect(result.uploaded[0].byteCount < 10_000)
    }
    #expect(try await local.stat(RemotePath("anna/backup.sqlite"))?.version == whole?.version)
    let backup = try await restored()
    #expect(backup.deltaCount == 5)
    #expect(try TestDatabases.content(of: backup.path) == TestDatabases.content(of: anna.database))
    #expect(try fileBytes(backup.path) == fileBytes(copy))
  }

  @Test("After many changes the whole database is uploaded, and the history deleted")
  func again() async throws {
    try fill()
    try await anna.sync()
    try anna.run("UPDATE note SET text = 'x' WHERE id = 1")
    try await anna.sync()
    #expect(try await local.listAll(RemotePath("anna/history")).objects.count == 1)
    try anna.run("UPDATE note SET text = hex(randomblob(60))")
    #expect(try await anna.sync().uploaded.map(\.path.text) == ["anna/backup.sqlite"])
    #expect(try await local.listAll(RemotePath("anna/history")).objects.isEmpty)
    #expect(try fileBytes(try await restored().path) == fileBytes(copy))
  }

  @Test("A database that grows and shrinks is restored unchanged")
  func sizes() async throws {
    try fill()
    try await anna.sync()
    try anna.run("INSERT INTO note(text) SELECT hex(randomblob(50)) FROM note LIMIT 300")
    try await anna.sync()
    try anna.run("DELETE FROM note WHERE id > 4000; VACUUM")
    try await anna.sync()
    #expect(try fileBytes(try await restored().path) == fileBytes(copy))
  }

  @Test("A round interrupted after the upload of a delta does not mix up states")
  func lostNote() async throws {
    try fill()
    try await anna.sync()
    let index = try #require(
      try FileManager.default.contentsOfDirectory(atPath: folder.file("anna/home/sync")).first {
        $0.hasSuffix(".sqlite")
      })
    let path = folder.file("anna/home/sync/\(index)")
    try anna.run("UPDATE note SET text = 'first' WHERE id = 1")
    _ = try folder.copy(path, to: "index before")
    let backup = try folder.copy("\(anna.place)/backup.sqlite", to: "backup before")
    try await anna.sync()
    // As if the process had been killed before it recorded the upload.
    try FileManager.default.removeItem(atPath: path)
    _ = try folder.copy("index before", to: "anna/home/sync/\(index)")
    try FileManager.default.removeItem(atPath: "\(anna.place)/backup.sqlite")
    try FileManager.default.copyItem(atPath: backup, toPath: "\(anna.place)/backup.sqlite")
    try anna.run("UPDATE note SET text = 'second' WHERE id = 4000")
    try await anna.sync()
    #expect(try await local.listAll(RemotePath("anna/history")).objects.count == 2)
    #expect(try fileBytes(try await restored().path) == fileBytes(copy))
  }

  @Test("The backup of another device is not overwritten")
  func otherDevice() async throws {
    try await local.put(StorageContents(Array("another device's".utf8)), to: RemotePath("anna/backup.sqlite"), .none)
    try DatabaseManager(anna.database, home: anna.home).initialize()
    let result = try await anna.sync()
    #expect(result.notes.count == 1)
    let names = try await local.listAll(RemotePath("anna")).objects.map(\.path.name)
    #expect(names.count == 2)
    #expect(names.contains("backup.sqlite"))
    let own = try #require(names.first { $0 != "backup.sqlite" })
    let backup = try await BuckiaClient(anna.configuration()).restoreBackup(to: folder.file("r.sqlite"), named: own)
    #expect(try fileBytes(backup.path) == fileBytes(copy))
    try anna.run("INSERT INTO note VALUES (1,'x')")
    // The backup stays at its own path from now on.
    #expect(try await anna.sync().notes.isEmpty)
  }

  @Test("An altered delta is detected, and leaves no file", arguments: [0, 40, 200, -5])
  func altered(offset: Int) async throws {
    try fill()
    try await anna.sync()
    try anna.run("UPDATE note SET text = 'x' WHERE id = 1")
    try await anna.sync()
    let object = try #require(try await local.listAll(RemotePath("anna/history")).objects.first)
    var bytes = try await local.get(object.path, GetRequest()).chunks.bytes(upTo: 1 << 20)
    bytes[offset < 0 ? bytes.count + offset : min(offset, bytes.count - 1)] ^= 0x10
    try await local.put(StorageContents(bytes), to: object.path, .none)
    let error = try await #require(throws: StorageError.self) { try await restored() }
    #expect(error.code == .damaged)
    #expect(!folder.has("restored.sqlite"))
    #expect(!folder.has("restored.sqlite.buckia-restore"))
  }

  @Test("An existing file is never replaced")
  func existing() async throws {
    try await anna.sync()
    try folder.write([1], to: "restored.sqlite")
    let error = try await #require(throws: StorageError.self) { try await restored() }
    #expect(error.code == .alreadyExists)
    #expect(try fileBytes(folder.file("restored.sqlite")) == [1])
  }

  @Test("A database in use is copied in one consistent state")
  func inUse() async throws {
    try anna.run("PRAGMA journal_mode = WAL")
    let writer = try SQLiteConnection(opening: anna.database, as: .readWrite)
    try writer.execute("INSERT INTO note VALUES (1,'committed'); BEGIN; INSERT INTO note VALUES (2,'not yet')")
    try await anna.sync()
    let backup = try await restored()
    #expect(try TestDatabases.rows("SELECT id FROM note", on: backup.path) == ["1"])
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
    #expect(try await local.listAll(RemotePath("ben")).objects.filter { $0.path.name.hasPrefix("backup") }.count == 2)
  }
}
