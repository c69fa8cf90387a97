import BuckiaSync
import NIOConcurrencyHelpers

/// A storage that claims to have done what it has not done.
final class LyingStorage: StorageProvider {
  /// The operation that it lies about.
  enum Lie: String, Sendable {
    /// It accepts a backup, and keeps none of it.
    case keepsNothing
    /// It accepts a backup, and keeps all but the last byte.
    case keepsLess
    /// It accepts a backup, and has other bytes, with their digest.
    case keepsOthers
    /// It claims to have deleted an object, and keeps it.
    case deletesNothing
  }

  private let inner: any StorageProvider
  private let lie: NIOLockedValueBox<Lie?>

  init(_ inner: any StorageProvider, _ lie: Lie) {
    self.inner = inner
    self.lie = NIOLockedValueBox(lie)
  }

  /// Stops lying.
  func repent() { lie.withLockedValue { $0 = nil } }

  private var present: Lie? { lie.withLockedValue { $0 } }

  var name: String { inner.name }
  var capabilities: StorageCapabilities { inner.capabilities }

  func list(_ request: ListRequest) async throws -> ListPage { try await inner.list(request) }

  func stat(_ path: RemotePath) async throws -> StoredObject? {
    var object = try await inner.stat(path)
    if present == .keepsOthers {
      object?.checksums = [ContentChecksum(.sha256, hex: String(repeating: "0", count: 64))]
    }
    return object
  }

  func get(_ path: RemotePath, _ request: GetRequest) async throws -> StorageDownload {
    try await inner.get(path, request)
  }

  func put(_ contents: StorageContents, to path: RemotePath, _ condition: PutCondition) async throws -> StoredObject {
    let claimed = StoredObject(path: path, byteCount: contents.byteCount, version: ObjectVersion("\"claimed\""))
    switch present {
    case .keepsNothing where path.name.hasSuffix(".backup"): return claimed
    case .keepsLess where path.name.hasSuffix(".backup"):
      let bytes = try await contents.chunks(in: 0..<contents.byteCount - 1).bytes(upTo: 1 << 24)
      try await inner.put(StorageContents(bytes), to: path, condition)
      return claimed
    default: return try await inner.put(contents, to: path, condition)
    }
  }

  func delete(_ path: RemotePath) async throws {
    if present != .deletesNothing { try await inner.delete(path) }
  }

  func move(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool) async throws {
    try await inner.move(path, to: newPath, replacing: isReplacing)
  }
}
