import BuckiaStorage
import Foundation
import TestSupport
import Testing

/// A storage with answers that a test chooses.
struct ScriptedStorage: StorageProvider {
  var name = "scripted"
  var capabilities = StorageCapabilities(readsRanges: true)
  var pages: @Sendable (ListRequest) throws -> ListPage = { _ in ListPage(objects: []) }
  var read: @Sendable (GetRequest) throws -> StorageDownload = { _ in throw StorageError(.notFound, "nothing") }

  func list(_ request: ListRequest) async throws -> ListPage { try pages(request) }
  func stat(_ path: RemotePath) async throws -> StoredObject? { nil }
  func get(_ path: RemotePath, _ request: GetRequest) async throws -> StorageDownload { try read(request) }
  func put(_ contents: StorageContents, to path: RemotePath, _ condition: PutCondition) async throws -> StoredObject {
    StoredObject(path: path, byteCount: contents.byteCount)
  }
  func delete(_ path: RemotePath) async throws {}
}

@Suite("Complete listings and downloads from any storage")
struct TransferTests {
  private let folder: TemporaryFolder
  private let path: RemotePath

  init() throws {
    folder = try TemporaryFolder()
    path = try RemotePath("folder/object")
  }

  private func object(_ name: String, bytes: Int64 = 1) throws -> StoredObject {
    StoredObject(path: try RemotePath(name), byteCount: bytes, version: ObjectVersion("\"1\""))
  }

  // MARK: Listings

  @Test("A listing in another order, and with duplicates, has each object once, sorted by name")
  func unsorted() async throws {
    let pages = [["f/c", "f/a"], ["f/b", "f/a", "f/d"]]
    var storage = ScriptedStorage()
    storage.pages = { request in
      let number = request.continuation.flatMap { Int($0) } ?? 0
      return ListPage(
        objects: try pages[number].map { StoredObject(path: try RemotePath($0), byteCount: Int64(number)) },
        continuation: number == 0 ? "1" : nil)
    }
    let listing = try await storage.listAll(RemotePath("f"))
    #expect(listing.objects.map(\.path.text) == ["f/a", "f/b", "f/c", "f/d"])
    // The later page is newer.
    #expect(listing.objects[0].byteCount == 1)
  }

  @Test("A listing with ever new pages is given up, with objects and without", arguments: [0, 50_000])
  func unbounded(objects: Int) async throws {
    var storage = ScriptedStorage()
    let page = Array(repeating: try object("f/a"), count: objects)
    storage.pages = { request in
      ListPage(objects: page, continuation: "\((request.continuation.flatMap { Int($0) } ?? 0) + 1)")
    }
    let error = try await #require(throws: StorageError.self) { try await storage.listAll(nil) }
    #expect(error.code == .invalidAnswer)
    #expect(error.message.contains("does not end"))
  }

  @Test("A listing that repeats itself is given up")
  func endless() async throws {
    var storage = ScriptedStorage()
    storage.pages = { _ in ListPage(objects: [], continuation: "again") }
    let error = try await #require(throws: StorageError.self) { try await storage.listAll(nil) }
    #expect(error.code == .invalidAnswer)
  }

  @Test("A listing of another folder is refused")
  func otherFolder() async throws {
    var storage = ScriptedStorage()
    storage.pages = { _ in ListPage(objects: [StoredObject(path: try RemotePath("other/x"), byteCount: 1)]) }
    let error = try await #require(throws: StorageError.self) { try await storage.listAll(RemotePath("f")) }
    #expect(error.code == .invalidAnswer)
  }

  // MARK: Downloads

  /// Returns an object in pieces, and breaks off at the given offsets.
  private func storage(_ bytes: [UInt8], breakingAt breaks: [Int], announcing announced: Int64? = nil) -> (
    ScriptedStorage, Requests
  ) {
    let requests = Requests()
    var storage = ScriptedStorage()
    let object = StoredObject(
      path: path, byteCount: announced ?? Int64(bytes.count), version: ObjectVersion("\"1\""))
    storage.read = { request in
      let number = requests.add(request)
      let end = number < breaks.count ? breaks[number] : bytes.count
      return StorageDownload(
        object: object,
        chunks: ByteChunks {
          var offset = Int(request.offset)
          return {
            if offset >= end {
              if number < breaks.count { throw StorageError(.interrupted, "the connection broke") }
              return nil
            }
            let next = min(end, offset + 3)
            defer { offset = next }
            return Array(bytes[offset..<next])
          }
        })
    }
    return (storage, requests)
  }

  /// The requests so far.
  final class Requests: @unchecked Sendable {
    // The lock guards `all`.
    private let lock = NSLock()
    private var all: [GetRequest] = []
    func add(_ request: GetRequest) -> Int {
      lock.withLock {
        all.append(request)
        return all.count - 1
      }
    }
    var made: [GetRequest] { lock.withLock { all } }
  }

  @Test("An interrupted download continues where it stopped, with the same version")
  func resumed() async throws {
    let bytes = Array(0..<UInt8(50))
    let (storage, requests) = storage(bytes, breakingAt: [10, 10, 30])
    let file = folder.file("object")
    try await storage.download(path, to: file)
    #expect(try fileBytes(file) == bytes)
    #expect(requests.made.map(\.offset) == [0, 10, 10, 30])
    #expect(requests.made.dropFirst().allSatisfy { $0.version == ObjectVersion("\"1\"") })
  }

  @Test("A download without progress is given up, and leaves no file")
  func givenUp() async throws {
    let (storage, requests) = storage(Array(0..<50), breakingAt: Array(repeating: 10, count: 20))
    let error = try await #require(throws: StorageError.self) {
      try await storage.download(path, to: folder.file("object"))
    }
    #expect(error.code == .interrupted)
    #expect(error.path == path)
    #expect(requests.made.count == 4)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
  }

  @Test("An object with fewer or more bytes than announced is refused", arguments: [40, 60] as [Int64])
  func wrongLength(announced: Int64) async throws {
    let (storage, _) = storage(Array(0..<50), breakingAt: [], announcing: announced)
    let error = try await #require(throws: StorageError.self) {
      try await storage.download(path, to: folder.file("object"), attempts: 1)
    }
    #expect(error.code == .truncated)
    #expect(!folder.has("object"))
  }

  @Test("An object other than the listed one is not downloaded")
  func replaced() async throws {
    let (storage, _) = storage(Array(0..<50), breakingAt: [])
    for expected in [
      StoredObject(path: path, byteCount: 50, version: ObjectVersion("\"2\"")), StoredObject(path: path, byteCount: 49),
    ] {
      let error = try await #require(throws: StorageError.self) {
        try await storage.download(path, to: folder.file("object"), expecting: expected)
      }
      #expect(error.code == .changed)
    }
    #expect(!folder.has("object"))
  }

  @Test("A folder that cannot be written is named")
  func unwritable() async throws {
    let (storage, _) = storage(Array(0..<50), breakingAt: [])
    let error = try await #require(throws: StorageError.self) {
      try await storage.download(path, to: folder.file("no such folder/object"))
    }
    #expect(error.code == .unwritable)
    #expect(error.description.contains("no such folder"))
  }
}
