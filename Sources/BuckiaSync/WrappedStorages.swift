import BuckiaBytes
import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A local folder that is distinguished from an unmounted volume's mount point by a file in it, `.buckia-storage`,
/// whose contents the index has.
///
/// The file is created with the first object. From then on a folder without it, or with another one, counts as
/// unreachable until a person accepts it.
struct MarkedFolder: StorageProvider {
  static let markerName = ".buckia-storage"

  let inner: any StorageProvider
  /// The path of the folder.
  let path: String
  let index: SyncIndex

  private var setting: String { "marker \(path)" }
  private var marker: String { "\(path)/\(Self.markerName)" }

  /// What the file says; nil where there is none.
  private func found() async throws -> String? {
    try await runBlocking { FileManager.default.contents(atPath: marker).map { String(decoding: $0, as: UTF8.self) } }
  }

  /// Requires that the folder is the same as before.
  ///
  /// - Parameter isWritten: True if something is about to be put into the folder, which makes the marker of a new folder.
  private func require(toWrite isWritten: Bool = false) async throws {
    let known = try await index.setting(setting)
    let found = try await found()
    if found != nil, found == known { return }
    guard let known else {
      if let found { return try await index.set(setting, to: found) }
      if isWritten { try await adopt() }
      return
    }
    throw StorageError(
      .unreachable,
      "\(path) is not the folder that was synced with before: \(found == nil ? "its file \(Self.markerName) is missing" : "another storage is there") (\(known.prefix(8))). Connect the volume; or if the folder was emptied, exchanged or moved on purpose, say so: buckia sync --adopt-folders"
    )
  }

  /// Accepts the folder in its present state.
  func adopt() async throws {
    if let found = try await found() { return try await index.set(setting, to: found) }
    try await runBlocking { try make() }
    try await index.set(setting, to: found())
  }

  /// Makes the folder and its marker.
  private func make() throws {
    let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    let parent = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    guard FileManager.default.fileExists(atPath: parent) else {
      throw StorageError(
        .unreachable, "\(parent) does not exist, so \(path) was not made there; connect the volume, or make the folder")
    }
    do {
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      let output = try AtomicFileOutput(at: marker, replacing: false)
      try output.write(Array("\(UUID().uuidString.lowercased())\n".utf8))
      try output.publish()
    } catch let error as ByteStreamError where error.code == .alreadyExists {
      // Another process was faster.
    } catch { throw StorageError(.unwritable, "\(path) cannot be made: \(error)", cause: error) }
  }

  // MARK: As a storage

  var name: String { inner.name }
  var capabilities: StorageCapabilities { inner.capabilities }

  func list(_ request: ListRequest) async throws -> ListPage {
    try await require()
    return try await inner.list(request)
  }

  func stat(_ path: RemotePath) async throws -> StoredObject? {
    try await require()
    return try await inner.stat(path)
  }

  func get(_ path: RemotePath, _ request: GetRequest) async throws -> StorageDownload {
    try await require()
    return try await inner.get(path, request)
  }

  func put(_ contents: StorageContents, to path: RemotePath, _ condition: PutCondition) async throws -> StoredObject {
    try await require(toWrite: true)
    return try await inner.put(contents, to: path, condition)
  }

  func delete(_ path: RemotePath) async throws {
    try await require()
    try await inner.delete(path)
  }

  func move(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool) async throws {
    try await require(toWrite: true)
    try await inner.move(path, to: newPath, replacing: isReplacing)
  }
}

/// A storage that is tested before it first has to honour a condition, because many servers ignore conditions and
/// report success.
///
/// The result is kept in the index. If conditions are not honoured, the object is looked up first, as by
/// ``StorageProvider/putChecked(_:to:_:)``.
struct ProbedStorage: StorageProvider {
  let inner: any StorageProvider
  /// The index for the results.
  let index: SyncIndex

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

  /// True if the storage really honours a condition.
  private func keeps(_ condition: PutCondition, in folder: RemotePath?) async throws -> Bool {
    if condition == .none { return true }
    guard capabilities.keeps(condition) else { return false }
    let setting = "capabilities \(name)"
    if let known: StorageCapabilities = try await index.value(setting) { return known.keeps(condition) }
    let found = try await tried(in: folder)
    try await index.keep(found, as: setting)
    return found.keeps(condition)
  }

  private func tried(in folder: RemotePath?) async throws -> StorageCapabilities {
    do { return try await StorageProbe.run(on: inner, in: folder) } catch let error as StorageError
      where [.forbidden, .unsupported].contains(error.code)
    {
      // Write permission need not include reading or deleting. The storage's own claims have to be enough.
      return capabilities
    }
  }
}
