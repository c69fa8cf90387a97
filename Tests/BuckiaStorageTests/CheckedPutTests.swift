import BuckiaStorage
import TestSupport
import Testing

/// A folder that declares no support for conditions, and would ignore one.
private struct UnconditionalStorage: StorageProvider {
  let folder: LocalFolder
  var name: String { folder.name }
  var capabilities: StorageCapabilities { StorageCapabilities(readsRanges: true) }

  func list(_ request: ListRequest) async throws -> ListPage { try await folder.list(request) }
  func stat(_ path: RemotePath) async throws -> StoredObject? { try await folder.stat(path) }
  func get(_ path: RemotePath, _ request: GetRequest) async throws -> StorageDownload {
    try await folder.get(path, request)
  }
  func put(_ contents: StorageContents, to path: RemotePath, _ condition: PutCondition) async throws -> StoredObject {
    #expect(condition == .none, "a condition that is not kept is not asked for")
    return try await folder.put(contents, to: path, .none)
  }
  func delete(_ path: RemotePath) async throws { try await folder.delete(path) }
}

@Suite("Storages that do not support conditions")
struct CheckedPutTests {
  private let folder: TemporaryFolder
  private let storage: UnconditionalStorage
  private let path: RemotePath

  init() throws {
    folder = try TemporaryFolder()
    storage = UnconditionalStorage(folder: LocalFolder(folder.file("storage")))
    path = try RemotePath("folder/object")
  }

  private func contents(_ text: String) -> StorageContents { StorageContents(Array(text.utf8)) }

  private func text() async throws -> String {
    String(decoding: try await storage.get(path, GetRequest()).chunks.bytes(upTo: 100), as: UTF8.self)
  }

  private func code(_ condition: PutCondition) async throws -> StorageError.Code {
    let error = try await #require(throws: StorageError.self) {
      try await storage.putChecked(contents("refused"), to: path, condition)
    }
    return error.code
  }

  @Test("With a condition for a new object, nothing is replaced")
  func ifAbsent() async throws {
    try await storage.putChecked(contents("first"), to: path, .ifAbsent)
    #expect(try await text() == "first")
    #expect(try await code(.ifAbsent) == .alreadyExists)
    #expect(try await text() == "first")
    let file = try folder.write(Array("from a file".utf8), to: "file")
    let error = try await #require(throws: StorageError.self) {
      try await storage.upload(file: file, to: path, .ifAbsent)
    }
    #expect(error.code == .alreadyExists)
    #expect(try await text() == "first")
  }

  @Test("Only the expected version is replaced")
  func ifVersion() async throws {
    try await storage.putChecked(contents("first"), to: path, .none)
    let first = try #require(try await storage.stat(path)?.version)
    try await storage.putChecked(contents("the second"), to: path, .ifVersion(first))
    #expect(try await text() == "the second")
    #expect(try await code(.ifVersion(first)) == .changed)
    #expect(try await text() == "the second")
    try await storage.delete(path)
    #expect(try await code(.ifVersion(first)) == .changed)
    #expect(try await storage.stat(path) == nil)
  }
}
