import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A storage that is tried out before it first has to keep a condition, because many servers ignore conditions and say that all is well.
///
/// What was found is kept in the index. Where a condition is not kept, the object is looked up first, as ``StorageProvider/putChecked(_:to:_:)``
/// does it.
struct ProbedStorage: StorageProvider {
  private let inner: any StorageProvider
  private let index: SyncIndex

  /// - Parameters:
  ///   - storage: The storage.
  ///   - index: Keeps what was found.
  init(_ storage: any StorageProvider, _ index: SyncIndex) {
    inner = storage
    self.index = index
  }

  var name: String { inner.name }
  var capabilities: StorageCapabilities { inner.capabilities }

  func list(_ request: ListRequest) async throws -> ListPage { try await inner.list(request) }
  func stat(_ path: RemotePath) async throws -> StoredObject? { try await inner.stat(path) }
  func get(_ path: RemotePath, _ request: GetRequest) async throws -> StorageDownload {
    try await inner.get(path, request)
  }
  func delete(_ path: RemotePath) async throws { try await inner.delete(path) }
  func move(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool) async throws {
    try await inner.move(path, to: newPath, replacing: isReplacing)
  }

  func put(_ contents: StorageContents, to path: RemotePath, _ condition: PutCondition) async throws -> StoredObject {
    guard try await keeps(condition, in: path.folder) else {
      return try await inner.putLookingFirst(contents, to: path, condition)
    }
    return try await inner.put(contents, to: path, condition)
  }

  /// Whether the storage keeps a condition, and not only says so.
  private func keeps(_ condition: PutCondition, in folder: RemotePath?) async throws -> Bool {
    if condition == .none { return true }
    guard capabilities.keeps(condition) else { return false }
    let setting = "capabilities \(name)"
    if let known = try await index.setting(setting).flatMap({ Self.read($0) }) { return known.keeps(condition) }
    let found = try await tried(in: folder)
    try await index.set(setting, to: String(decoding: JSONEncoder().encode(found), as: UTF8.self))
    return found.keeps(condition)
  }

  /// What was found before; nil where another version has written it: it is tried out anew.
  private static func read(_ text: String) -> StorageCapabilities? {
    do { return try JSONDecoder().decode(StorageCapabilities.self, from: Data(text.utf8)) } catch { return nil }
  }

  private func tried(in folder: RemotePath?) async throws -> StorageCapabilities {
    do { return try await StorageProbe.run(on: inner, in: folder) } catch let error as StorageError
      where [.forbidden, .unsupported].contains(error.code)
    {
      // Who may write there need not be allowed to read or delete. What the storage says of itself has to do.
      return capabilities
    }
  }
}
