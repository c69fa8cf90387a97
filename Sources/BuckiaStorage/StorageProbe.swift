/// Tests the capabilities of a storage during its setup: many servers answer a conditional request with 200 and ignore
/// the condition.
public enum StorageProbe {
  /// Tries conditions, ranges and moves with a small object, and removes it again.
  ///
  /// - Parameters:
  ///   - storage: The storage.
  ///   - folder: The folder for the test object; nil for the top.
  /// - Returns: The stated capabilities without those that did not work.
  /// - Throws: `StorageError` when it cannot be written, read or deleted at all.
  public static func run(on storage: some StorageProvider, in folder: RemotePath? = nil) async throws
    -> StorageCapabilities
  {
    let name = "buckia-probe-\(String(UInt64.random(in: 0...UInt64.max), radix: 36))"
    let path = try folder?.appending(name) ?? RemotePath(name)
    let moved = try folder?.appending("\(name)-moved") ?? RemotePath("\(name)-moved")
    // What cannot be deleted again is not written.
    try await storage.delete(path)
    do {
      let found = try await capabilities(of: storage, path, moved)
      try await storage.delete(path)
      return found
    } catch {
      do { try await storage.delete(path) } catch let other {
        throw StorageError(
          (error as? StorageError)?.code ?? .unavailable, "\(error); and \(path) is left behind: \(other)", cause: error
        )
      }
      throw error
    }
  }

  private static func capabilities(
    of storage: some StorageProvider, _ path: RemotePath, _ moved: RemotePath
  ) async throws -> StorageCapabilities {
    var found = storage.capabilities
    let bytes = Array("Buckia tries out what this storage can do.".utf8)
    var object = try await storage.put(StorageContents(bytes), to: path, .none)
    if object.version == nil { object = try await storage.stat(path) ?? object }
    if found.putsIfAbsent {
      found.putsIfAbsent = try await isRefused {
        try await storage.put(StorageContents(bytes), to: path, .ifAbsent)
      }
    }
    if found.putsIfVersion {
      found.putsIfVersion = try await isRefused {
        try await storage.put(StorageContents(bytes), to: path, .ifVersion(ObjectVersion("\"buckia-no-such-version\"")))
      }
    }
    if found.readsRanges {
      let part = try await storage.get(path, GetRequest(offset: 7, count: 5)).chunks.bytes(upTo: bytes.count)
      found.readsRanges = part == Array(bytes[7..<12])
    }
    if found.moves {
      do {
        try await storage.move(path, to: moved, replacing: true)
        let isGone = try await storage.stat(path) == nil
        let isThere = try await storage.stat(moved) != nil
        found.moves = isGone && isThere
        try await storage.delete(moved)
      } catch let error as StorageError where !error.isTransient {
        found.moves = false
      }
    }
    return found
  }

  /// True if a condition that does not hold keeps something from being written.
  private static func isRefused(_ put: () async throws -> Void) async throws -> Bool {
    do {
      try await put()
      return false
    } catch let error as StorageError where [.alreadyExists, .changed].contains(error.code) {
      return true
    } catch let error as StorageError where error.code == .unsupported {
      return false
    }
  }
}
