import BuckiaSync
import NIOConcurrencyHelpers

/// A storage in memory with its own clock. It fails, truncates, lies, or kills the process that uses it, on demand.
final class ModelStorage: StorageProvider {
  /// What happens at one call of a round.
  enum Accident: CustomStringConvertible, Sendable {
    /// The call fails, with or without having had its effect.
    case failure(StorageError.Code, isDone: Bool)
    /// A put stores only the beginning, and reports success or an error.
    case cut(isTold: Bool)
    /// Nothing is put or deleted, but success is reported.
    case lie
    /// The process ends, before or after the call.
    case kill(isDone: Bool)

    var description: String {
      switch self {
      case .failure(let code, let isDone): "\(code.rawValue)\(isDone ? " behind it" : "")"
      case .cut(let isTold): isTold ? "cut with an error" : "cut in silence"
      case .lie: "a lie"
      case .kill(let isDone): isDone ? "killed behind it" : "killed before it"
      }
    }
  }

  struct Object: Sendable {
    var bytes: [UInt8]
    var version: String
    var time: Int64
  }

  private struct State {
    var objects: [RemotePath: Object] = [:]
    var time: Int64 = 1_700_000_000_000
    var calls = 0
    var accident: (call: Int, what: Accident)?
    var isDead = false
    var tells = false
  }

  private let state = NIOLockedValueBox(State())

  var name: String { "model" }
  var capabilities: StorageCapabilities {
    StorageCapabilities(putsIfAbsent: true, putsIfVersion: true, readsRanges: true)
  }

  /// All objects.
  var objects: [RemotePath: Object] {
    get { state.withLockedValue { $0.objects } }
    set { state.withLockedValue { $0.objects = newValue } }
  }

  /// Moves its clock forward or back.
  func pass(_ milliseconds: Int64) { state.withLockedValue { $0.time += milliseconds } }

  /// Begins a round, with an accident at one of its calls if given.
  func begin(_ accident: (call: Int, what: Accident)? = nil) {
    state.withLockedValue { state in
      state.calls = 0
      state.accident = accident
      state.isDead = false
    }
  }

  /// Ends the process that uses the storage: later calls are not answered.
  func die() { state.withLockedValue { $0.isDead = true } }

  /// What happens at this call.
  private func accident() throws -> Accident? {
    try state.withLockedValue { state in
      state.time += 1
      state.calls += 1
      if state.isDead { throw CancellationError() }
      guard let accident = state.accident, accident.call == state.calls else { return nil }
      if case .kill(let isDone) = accident.what {
        state.isDead = true
        if !isDone { throw CancellationError() }
      }
      if case .failure(let code, isDone: false) = accident.what { throw StorageError(code, "an accident") }
      return accident.what
    }
  }

  private func conclude(_ accident: Accident?) throws {
    switch accident {
    case .kill: throw CancellationError()
    case .failure(let code, _): throw StorageError(code, "an accident")
    case .cut(isTold: true): throw StorageError(.interrupted, "an accident")
    default: return
    }
  }

  private func described(_ path: RemotePath, _ object: Object) -> StoredObject {
    StoredObject(
      path: path, byteCount: Int64(object.bytes.count), version: ObjectVersion(object.version),
      modifiedAt: object.time)
  }

  func list(_ request: ListRequest) async throws -> ListPage {
    let accident = try accident()
    try conclude(accident)
    let found = objects.filter { path, _ in request.folder.map { path.isIn($0) } ?? true }
    return ListPage(objects: found.map { described($0, $1) }.sorted { $0.path < $1.path })
  }

  func stat(_ path: RemotePath) async throws -> StoredObject? {
    try conclude(accident())
    return objects[path].map { described(path, $0) }
  }

  func get(_ path: RemotePath, _ request: GetRequest) async throws -> StorageDownload {
    try conclude(accident())
    guard let object = objects[path] else { throw StorageError(.notFound, "it is not there", path: path) }
    if let version = request.version, version.text != object.version { throw StorageError(.changed, "changed") }
    let rest = object.bytes.dropFirst(Int(request.offset))
    return StorageDownload(
      object: described(path, object), chunks: ByteChunks(Array(rest.prefix(request.count.map { Int($0) } ?? .max))))
  }

  @discardableResult
  func put(_ contents: StorageContents, to path: RemotePath, _ condition: PutCondition) async throws -> StoredObject {
    let accident = try accident()
    var bytes = try await contents.chunks().bytes(upTo: 1 << 24)
    let claimed = StoredObject(path: path, byteCount: contents.byteCount)
    try condition.require(of: objects[path].map { described(path, $0) }, at: path)
    if case .lie = accident { return claimed }
    if case .cut = accident { bytes = Array(bytes.prefix(bytes.count / 2)) }
    let stored = bytes
    state.withLockedValue { state in
      state.objects[path] = Object(bytes: stored, version: "\"\(state.time)\"", time: state.time)
    }
    try conclude(accident)
    return claimed
  }

  func delete(_ path: RemotePath) async throws {
    let accident = try accident()
    if case .lie = accident { return }
    state.withLockedValue { $0.objects[path] = nil }
    try conclude(accident)
  }
}
