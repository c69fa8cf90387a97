import BuckiaStorage
import NIOConcurrencyHelpers
import TestSupport
import Testing

@testable import BuckiaSync

@Suite("A storage with restricted permissions")
struct RestrictedStorageTests {
  /// Records the calls that reach the storage.
  private struct Watched: StorageProvider {
    let storage: LocalFolder
    let calls = NIOLockedValueBox<[String]>([])
    var name: String { "watched" }
    var capabilities: StorageCapabilities { storage.capabilities }
    func note(_ call: String) { calls.withLockedValue { $0.append(call) } }

    func list(_ request: ListRequest) async throws -> ListPage {
      note("list \(request.folder?.text ?? "")")
      return try await storage.list(request)
    }
    func stat(_ path: RemotePath) async throws -> StoredObject? {
      note("stat \(path)")
      return try await storage.stat(path)
    }
    func get(_ path: RemotePath, _ request: GetRequest) async throws -> StorageDownload {
      note("get \(path)")
      return try await storage.get(path, request)
    }
    func put(_ contents: StorageContents, to path: RemotePath, _ condition: PutCondition) async throws -> StoredObject {
      note("put \(path)")
      return try await storage.put(contents, to: path, condition)
    }
    func delete(_ path: RemotePath) async throws {
      note("delete \(path)")
      try await storage.delete(path)
    }
    func move(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool) async throws {
      note("move \(path) \(newPath)")
      try await storage.move(path, to: newPath, replacing: isReplacing)
    }
  }

  private let folder: TemporaryFolder
  private let watched: Watched

  init() async throws {
    folder = try TemporaryFolder()
    watched = Watched(storage: LocalFolder(folder.path))
    for name in ["a/inbound/1", "a/inbound/2", "a/secret", "b/inbound/1", "top"] {
      _ = try await watched.storage.put(StorageContents(Array(name.utf8)), to: RemotePath(name), .none)
    }
  }

  private func restricted(_ permissions: StoragePermissions) -> RestrictedStorage {
    RestrictedStorage(watched, allowing: permissions)
  }

  private func forbidden(_ body: () async throws -> Void) async -> Bool {
    do { try await body() } catch { return (error as? StorageError)?.code == .forbidden }
    return false
  }

  @Test("Each call needs its permission, and never reaches the storage without it")
  func calls() async throws {
    let path = try RemotePath("a/inbound/1")
    let new = try RemotePath("a/inbound/9")
    let all: [(StorageActions, @Sendable (RestrictedStorage) async throws -> Void)] = [
      (.read, { _ = try await $0.stat(path) }),
      (.read, { _ = try await $0.get(path, GetRequest()) }),
      (.write, { _ = try await $0.put(StorageContents([1]), to: new, .none) }),
      (.delete, { try await $0.delete(new) }),
      (.list, { _ = try await $0.list(ListRequest(folder: try RemotePath("a/inbound"))) }),
    ]
    for (needed, call) in all {
      watched.calls.withLockedValue { $0 = [] }
      let others = StoragePermissions.none.adding(StorageActions.all.subtracting(needed), in: try RemotePath("a"))
        .adding(.all, in: try RemotePath("b"))
      #expect(await forbidden { try await call(restricted(others)) }, "\(needed)")
      #expect(watched.calls.withLockedValue { $0 } == [], "\(needed)")
      try await call(restricted(StoragePermissions.none.adding(needed, in: try RemotePath("a"))))
      #expect(watched.calls.withLockedValue { $0.count } == 1, "\(needed)")
    }
  }

  @Test("A move needs permission to read and delete the source and write the target")
  func move() async throws {
    let old = try RemotePath("a/inbound/1")
    let new = try RemotePath("b/inbound/2")
    let (a, b) = (try RemotePath("a"), try RemotePath("b"))
    for short: StoragePermissions in [
      .none.adding(.all, in: a), .none.adding(.all, in: b), .none.adding(.read, in: a).adding(.write, in: b),
      .none.adding(.delete, in: a).adding(.write, in: b), .none.adding([.read, .delete], in: a).adding(.read, in: b),
    ] {
      #expect(await forbidden { try await restricted(short).move(old, to: new, replacing: true) })
    }
    #expect(watched.calls.withLockedValue { $0 } == [])
    try await restricted(.none.adding([.read, .delete], in: a).adding(.write, in: b)).move(
      old, to: new, replacing: true)
    #expect(try await watched.storage.stat(new) != nil)
  }

  @Test("A listing leaves out forbidden objects, and a listing without permitted ones is refused")
  func listing() async throws {
    let inbound = restricted(StoragePermissions.none.adding(.list, in: try RemotePath("a/inbound")))
    #expect(try await inbound.listAll(nil).objects.map(\.path.text) == ["a/inbound/1", "a/inbound/2"])
    #expect(try await inbound.listAll(try RemotePath("a")).objects.count == 2)
    #expect(try await inbound.listAll(try RemotePath("a/inbound")).objects.count == 2)
    #expect(await forbidden { _ = try await inbound.listAll(try RemotePath("b")) })
    #expect(await forbidden { _ = try await restricted(.none.adding(.read, in: nil)).listAll(nil) })
    let one = restricted(StoragePermissions.none.adding(.list, to: try RemotePath("a/secret")))
    #expect(try await one.listAll(try RemotePath("a")).objects.map(\.path.text) == ["a/secret"])
  }

  @Test("With permission to read all and write one inbound folder, a sender can deliver, and no more")
  func sender() async throws {
    let storage = restricted(.readingAll(writing: try RemotePath("b/inbound")))
    _ = try await storage.put(StorageContents([1]), to: RemotePath("b/inbound/new"), .none)
    #expect(try await storage.listAll(nil).objects.count == 6)
    #expect(await forbidden { _ = try await storage.put(StorageContents([1]), to: RemotePath("b/inbound"), .none) })
    #expect(await forbidden { try await storage.delete(RemotePath("b/inbound/new")) })
    let error = await #expect(throws: StorageError.self) { try await storage.delete(RemotePath("a/secret")) }
    #expect(
      error?.description
        == "a/secret: this is not allowed here: delete; nothing was done. Ask for a token that allows it")
  }

  @Test("A forbidden path is refused whether or not an object exists")
  func existence() async throws {
    let storage = restricted(.none.adding(.read, in: try RemotePath("a/inbound")))
    #expect(await forbidden { _ = try await storage.stat(RemotePath("a/secret")) })
    #expect(await forbidden { _ = try await storage.stat(RemotePath("a/nothing")) })
  }

  @Test("After the permissions expire, nothing is allowed")
  func expiry() async throws {
    let time = TestClock()
    let storage = RestrictedStorage(watched, allowing: .full, until: time.now + 1000, clock: time.clock)
    #expect(try await storage.stat(RemotePath("top")) != nil)
    time.advance(1000)
    let errors: [@Sendable () async throws -> Void] = [
      { _ = try await storage.stat(RemotePath("top")) }, { _ = try await storage.list(ListRequest()) },
      { try await storage.delete(RemotePath("top")) },
    ]
    for call in errors {
      let error = await #expect(throws: StorageError.self) { try await call() }
      #expect(error?.code == .unauthorized)
    }
    #expect(try await watched.storage.stat(RemotePath("top")) != nil)
  }
}
