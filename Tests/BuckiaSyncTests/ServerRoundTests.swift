import BuckiaSync
import Foundation
import ServerTestSupport
import TestSupport
import Testing

@Suite("Rounds of sync with real servers")
struct ServerRoundTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Writes a note by Anna to her outbox.
  ///
  /// - Returns: The name of the diff.
  private func write(_ anna: SyncPerson) throws -> String {
    try anna.run("INSERT INTO note VALUES (1,'from Anna')")
    let file = try #require(try anna.write().path)
    return (file as NSString).lastPathComponent
  }

  @Test(
    "A sent diff is applied once, and a round with nothing to do is one request",
    arguments: ServerPlace.Kind.allCases)
  func exchange(kind: ServerPlace.Kind) async throws {
    let place = try await ServerPlace(kind)
    defer { withExtendedLifetime(place) {} }
    let (anna, ben) = (try place.person("anna", in: folder), try place.person("ben", in: folder))
    let diff = "ben/inbound/\(try write(anna))"
    try anna.addMedia([1, 2, 3], "originals/film.mp4")
    try anna.addMedia([4], "reworked/film.jpg")
    let sent = try await place.sync(anna, to: ["ben"])
    #expect(sent.failures.isEmpty, "\(sent.failures)")
    #expect(sent.delivered.map(\.path.text) == [diff])
    let files = ["anna/backups", "anna/originals/film.mp4", "anna/reworked/film.jpg"]
    #expect(sent.uploaded.map(\.place).sorted() == files)

    let received = try await place.sync(ben)
    #expect(received.failures.isEmpty, "\(received.failures)")
    #expect(received.downloaded.map(\.path.text) == [diff])
    #expect(received.applied?.applied.count == 1)
    #expect(received.uploaded.map(\.place) == ["ben/backups"])
    #expect(received.dropped.map(\.text) == [diff])
    #expect(try ben.notes() == anna.notes())

    let storage = try place.storage()
    #expect(try await storage.places() == files + ["ben/backups"])
    let film = try await storage.get(RemotePath("anna/originals/film.mp4"), GetRequest())
    #expect(try await film.chunks.bytes(upTo: 10) == [1, 2, 3])
    let restored = folder.file("restored.sqlite")
    try await place.client(ben).restoreBackup(to: restored)
    #expect(try TestDatabases.content(of: restored) == TestDatabases.content(of: ben.database))

    for (person, others) in [(anna, ["ben"]), (ben, [])] as [(SyncPerson, [String])] {
      place.transport.forget()
      let again = try await place.sync(person, to: others)
      #expect(again.isIdle, "\(again)")
      // If nothing has been sent to a person, their backup is looked up, too: the address may lead elsewhere now.
      let looks = person.name == "anna" && kind != .s3 && kind != .bunny ? 2 : 1
      #expect(place.transport.requests.count == looks, "\(place.transport.requests.map(\.method))")
    }
    #expect(
      try TestDatabases.rows("SELECT count(*) FROM buckia_ledger WHERE state = 'applied'", on: ben.database) == ["1"])
  }

  @Test(
    "A few changed rows are uploaded as a delta, and can be restored", arguments: ServerPlace.Kind.allCases)
  func delta(kind: ServerPlace.Kind) async throws {
    let place = try await ServerPlace(kind)
    defer { withExtendedLifetime(place) {} }
    let anna = try place.person("anna", in: folder)
    let numbers = "WITH n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000)"
    try anna.run("\(numbers) INSERT INTO note SELECT i, hex(randomblob(50)) FROM n")
    try await place.sync(anna)
    try anna.run("UPDATE note SET text = 'changed' WHERE id = 700")
    let changed = try await place.sync(anna)
    #expect(changed.failures.isEmpty, "\(changed.failures)")
    #expect(changed.uploaded.count == 1)
    #expect(try #require(changed.uploaded.first).byteCount < 10_000)
    let restored = folder.file("restored.sqlite")
    try await place.client(anna).restoreBackup(to: restored)
    #expect(try fileBytes(restored) == fileBytes(anna.database))
  }

  @Test(
    "A diff replaces no other file with its name, however the server treats conditions",
    arguments: ServerPlace.Kind.allCases)
  func takenName(kind: ServerPlace.Kind) async throws {
    let place = try await ServerPlace(kind)
    defer { withExtendedLifetime(place) {} }
    let anna = try place.person("anna", in: folder)
    let name = try write(anna)
    let path = try RemotePath("ben/inbound/\(name)")
    let storage = try place.storage()
    try await storage.put(StorageContents(Array("another file".utf8)), to: path, .none)
    let result = try await place.sync(anna, to: ["ben"])
    #expect(result.delivered.isEmpty)
    #expect(result.failures.map(\.step) == [.delivering])
    #expect(result.failures.first?.code == StorageError.Code.alreadyExists.rawValue)
    #expect(FileManager.default.fileExists(atPath: "\(anna.outbox)/\(name)"))
    #expect(try await storage.get(path, GetRequest()).chunks.bytes(upTo: 100) == Array("another file".utf8))
    #expect(try await storage.places() == ["anna/backups", path.text])
  }

  @Test("The rest of a broken delivery is replaced by the whole diff", arguments: ServerPlace.Kind.allCases)
  func brokenDelivery(kind: ServerPlace.Kind) async throws {
    let place = try await ServerPlace(kind)
    defer { withExtendedLifetime(place) {} }
    let anna = try place.person("anna", in: folder)
    let name = try write(anna)
    let bytes = try fileBytes("\(anna.outbox)/\(name)")
    let path = try RemotePath("ben/inbound/\(name)")
    let storage = try place.storage()
    try await storage.put(StorageContents(Array(bytes.prefix(100))), to: path, .none)
    let result = try await place.sync(anna, to: ["ben"])
    #expect(result.failures.isEmpty, "\(result.failures)")
    #expect(result.delivered.map(\.path) == [path])
    #expect(try await storage.get(path, GetRequest()).chunks.bytes(upTo: bytes.count + 1) == bytes)
  }

  @Test(
    "With permission to read all and write one inbound folder, a round delivers and writes nothing else",
    arguments: ServerPlace.Kind.allCases)
  func onlyDelivering(kind: ServerPlace.Kind) async throws {
    let place = try await ServerPlace(kind)
    defer { withExtendedLifetime(place) {} }
    var anna = try place.person("anna", in: folder)
    var account = place.account
    account.permissions = .readingAll(writing: try RemotePath("ben/inbound"))
    let restricted = account
    anna.change = { $0.storage = restricted }
    anna.options.backsUp = false
    let diff = "ben/inbound/\(try write(anna))"
    let result = try await place.sync(anna, to: ["ben"])
    #expect(result.failures.isEmpty, "\(result.failures)")
    #expect(result.delivered.map(\.path.text) == [diff])
    #expect(try await place.storage().places() == [diff])
  }

  @Test(
    "A server without the inbound folder and the backup counts as another place, until a person confirms it",
    arguments: [ServerPlace.Kind.apache, .nginx])
  func otherPlace(kind: ServerPlace.Kind) async throws {
    let place = try await ServerPlace(kind)
    defer { withExtendedLifetime(place) {} }
    var anna = try place.person("anna", in: folder)
    try await place.sync(anna)
    #expect(try await place.sync(anna).isIdle)
    let storage = try place.storage()
    try await storage.deleteAll(in: RemotePath("anna"))
    let error = try await #require(throws: StorageError.self) { try await place.sync(anna) }
    #expect(error.code == .notFound)
    #expect(error.message.contains("buckia sync --check"))
    anna.options.looksThroughStorage = true
    #expect(try await place.sync(anna).backedUp)
    anna.options.looksThroughStorage = false
    #expect(try await place.sync(anna).isIdle)
  }
}
