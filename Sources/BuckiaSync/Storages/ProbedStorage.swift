import BuckiaStorage

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
    guard try await !keeps(condition, in: path.folder) else {
      return try await inner.put(contents, to: path, condition)
    }
    try condition.require(of: await inner.stat(path), at: path)
    return try await inner.put(contents, to: path, .none)
  }

  /// Whether the storage keeps a condition, and not only says so.
  private func keeps(_ condition: PutCondition, in folder: RemotePath?) async throws -> Bool {
    switch condition {
    case .none: return true
    case .ifAbsent:
      guard inner.capabilities.putsIfAbsent else { return false }
      return try await found(in: folder).putsIfAbsent
    case .ifVersion:
      guard inner.capabilities.putsIfVersion else { return false }
      return try await found(in: folder).putsIfVersion
    }
  }

  /// What was found, now or before.
  private func found(in folder: RemotePath?) async throws -> Conditions {
    let setting = "conditions \(name)"
    if let known = try await index.setting(setting).flatMap({ Conditions(text: $0) }) { return known }
    let conditions = try await tried(in: folder)
    try await index.set(setting, to: conditions.text)
    return conditions
  }

  private func tried(in folder: RemotePath?) async throws -> Conditions {
    do {
      // What cannot be deleted again is not written.
      let name = "buckia-probe-\(String(UInt64.random(in: 0...UInt64.max), radix: 36))"
      try await inner.delete(folder?.appending(name) ?? RemotePath(name))
      let found = try await StorageProbe.run(on: inner, in: folder)
      return Conditions(putsIfAbsent: found.putsIfAbsent, putsIfVersion: found.putsIfVersion)
    } catch let error as StorageError where [.forbidden, .unsupported].contains(error.code) {
      // Who may write there need not be allowed to read or delete. What the storage says of itself has to do.
      return Conditions(putsIfAbsent: true, putsIfVersion: true)
    }
  }

  /// Which conditions are kept.
  private struct Conditions {
    let putsIfAbsent: Bool
    let putsIfVersion: Bool

    init(putsIfAbsent: Bool, putsIfVersion: Bool) {
      self.putsIfAbsent = putsIfAbsent
      self.putsIfVersion = putsIfVersion
    }

    init?(text: String) {
      let words = text.split(separator: " ")
      guard words.first == "kept:" else { return nil }
      putsIfAbsent = words.contains("ifAbsent")
      putsIfVersion = words.contains("ifVersion")
    }

    var text: String {
      "kept:\(putsIfAbsent ? " ifAbsent" : "")\(putsIfVersion ? " ifVersion" : "")"
    }
  }
}
