import BuckiaSync
import Foundation
import TestSupport
import Testing

@Suite("Storages whose claims are false")
struct LyingStorageTests {
  private let folder: TemporaryFolder
  private let local: LocalFolder

  init() throws {
    folder = try TemporaryFolder()
    local = LocalFolder(folder.file("storage"))
  }

  /// Ben with a lying storage, to whom Anna has sent a note.
  private func receiver(at storage: LyingStorage) async throws -> SyncPerson {
    let anna = try SyncPerson("anna", in: folder, local)
    try anna.run("INSERT INTO note VALUES (1,'from Anna')")
    try anna.write()
    try await anna.sync(to: ["ben"])
    return try SyncPerson("ben", in: folder, storage)
  }

  private func inboundCount() async throws -> Int {
    try await local.listAll(RemotePath("ben/inbound")).objects.count
  }

  private func appliedCount(_ person: SyncPerson) throws -> [String] {
    try TestDatabases.rows("SELECT count(*) FROM buckia_ledger WHERE state = 'applied'", on: person.database)
  }

  @Test(
    "No diff is dropped until the storage really has the backup that it accepted",
    arguments: [.keepsNothing, .keepsLess, .keepsOthers] as [LyingStorage.Lie])
  func unkeptBackup(lie: LyingStorage.Lie) async throws {
    let storage = LyingStorage(local, lie)
    let ben = try await receiver(at: storage)
    for _ in 0..<2 {
      let result = try await ben.sync()
      #expect(result.failures.map(\.step) == [.backingUp])
      #expect(result.failures.first?.code == StorageError.Code.damaged.rawValue)
      #expect(result.dropped.isEmpty)
      #expect(try await inboundCount() == 1)
    }
    #expect(try ben.notes().count == 1)
    storage.repent()
    let honest = try await ben.sync()
    #expect(honest.failures.isEmpty)
    #expect(honest.dropped.count == 1)
    #expect(try await inboundCount() == 0)
    #expect(try appliedCount(ben) == ["1"])
  }

  @Test("A diff that a storage wrongly claims to have deleted is not applied again")
  func unkeptDeletion() async throws {
    let storage = LyingStorage(local, .deletesNothing)
    let ben = try await receiver(at: storage)
    let first = try await ben.sync()
    #expect(first.applied?.applied.count == 1)
    #expect(first.dropped.count == 1)
    #expect(try await inboundCount() == 1)
    try ben.run("UPDATE note SET text = 'by Ben'")
    for _ in 0..<2 {
      let again = try await ben.sync()
      #expect(again.failures.isEmpty)
      #expect(again.applied?.applied.isEmpty != false)
      #expect(try TestDatabases.rows("SELECT count(*) FROM note WHERE text = 'by Ben'", on: ben.database) == ["1"])
    }
    storage.repent()
    try await ben.sync()
    #expect(try await inboundCount() == 0)
    #expect(try appliedCount(ben) == ["1"])
    #expect(try ben.notes().count == 1)
  }
}
