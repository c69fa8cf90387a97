import Buckia
import BuckiaBytes
import BuckiaFormat
import BuckiaStorage
import SQLiteConnections

/// Which point is meant.
public enum PointSelection: Hashable, Sendable {
  /// The newest point.
  case newest
  /// The newest point at or before a time, in milliseconds since 1970.
  case time(Int64)
  /// The point with an id.
  case id(KSUID)
}

extension BackupStore {
  /// Restores a point to a file.
  ///
  /// The file appears under its name complete and checked, or not at all. Only its owner can read it. The database is
  /// another incarnation of its replica, which Buckia notices; see <doc:Replicas>.
  ///
  /// - Parameters:
  ///   - path: The file. One of that name is never replaced.
  ///   - selection: The point.
  ///   - history: The history of the point; nil for any.
  ///   - identities: The secret keys, of which one opens an encrypted backup.
  /// - Returns: The point.
  /// - Throws: `StorageError`: `notFound` if there is no such point, `alreadyExists` if there is a file of that name,
  ///   `damaged` if an object is missing, damaged or altered; `BuckiaError` if no key opens the backup.
  @discardableResult
  public func restore(
    to path: String, at selection: PointSelection = .newest, of history: String? = nil,
    with identities: [AgeIdentity] = []
  ) async throws -> BackupPoint {
    let isTaken = try await runBlocking { try FileIdentity.current(at: path) != nil }
    guard !isTaken else { throw StorageError.taken(path) }
    let files = try await runBlocking { try WorkingFiles(besides: path) }
    let point = try await assemble(selection, of: history, with: identities, in: files)
    try await runBlocking { try files.publish(at: path) }
    return point
  }

  /// Replaces the content of a database by a point, also while other connections have it open. What it was becomes a
  /// point first.
  ///
  /// - Parameters:
  ///   - database: The database.
  ///   - selection: The point.
  ///   - history: The history of the point; nil for any.
  ///   - identities: The secret keys, of which one opens an encrypted backup.
  ///   - options: How the present state is backed up.
  /// - Returns: The point.
  /// - Throws: As ``restore(to:at:of:with:)`` and ``backUp(_:_:)``. The database then has its former content.
  @discardableResult
  public func restore(
    into database: DatabaseManager, at selection: PointSelection = .newest, of history: String? = nil,
    with identities: [AgeIdentity] = [], keeping options: BackupOptions = BackupOptions()
  ) async throws -> BackupPoint {
    let own = try await runBlocking { try knownHistory(of: database) }
    let object = try await chain(to: selection, of: history ?? own)[0]
    let id = object.id
    var options = options
    if object.payload.isEncrypted, options.recipients.isEmpty {
      options.recipients = try identities.map { try $0.recipient() }
    }
    // From here on, the newest point is the present state.
    options.acceptsDamage = true
    options.note = options.note ?? "before \(id) was restored"
    options.isBeforeRestore = true
    try await backUp(database, options)
    let files = try await runBlocking { try WorkingFiles(besides: database.path) }
    let point = try await assemble(.id(id), of: nil, with: identities, in: files)
    try await CancellationFlag.onThreadOfItsOwn { _ in try database.replaceContent(byFile: files.assembly) }
    return point
  }

  /// Restores a point to the working file.
  func assemble(
    _ selection: PointSelection, of history: String?, with identities: [AgeIdentity], in files: WorkingFiles
  ) async throws -> BackupPoint {
    let decryption = try identities.isEmpty ? nil : Decryption(identities: identities)
    var attempts = 3
    while true {
      let chain = try await chain(to: selection, of: history)
      let assembly = try await runBlocking { try HandedOver(PageAssembly(at: files.assembly, chain[0].point)) }
      do {
        for object in chain where try await runBlocking({ assembly.value.missingCount > 0 }) {
          try await storage.download(object.path, to: files.object, isPrivate: true)
          try await CancellationFlag.onThreadOfItsOwn { _ in
            try assembly.value.add(files.object, object, decryption)
          }
        }
        try await CancellationFlag.onThreadOfItsOwn { _ in try assembly.value.finish() }
        return chain[0].point
      } catch let error as StorageError where error.code == .notFound && attempts > 1 {
        // A pruning has moved an object meanwhile.
        attempts -= 1
      }
    }
  }

  /// The history of some objects; nil for none.
  ///
  /// - Throws: `BuckiaError` with `misuse` if there are several.
  func onlyHistory(of objects: [BackupObject]) throws -> String? {
    let histories = Set(objects.map(\.point.history))
    guard histories.count < 2 else {
      throw BuckiaError(
        .misuse,
        "the store has \(histories.count) histories, as of several databases; name one with --history, or a point by its id"
      )
    }
    return histories.first
  }

  /// The newest point of all histories. The rest of an upload that was cut off is no point.
  ///
  /// - Throws: As ``object(_:of:in:)``.
  package func newestOfAllHistories() async throws -> BackupPoint {
    var found = try await currentObjects()
    if !found.readable.isEmpty { found.faults = found.faults.filter { $0.value.code != .truncated } }
    let newest = found.readable.last { !$0.point.isBeforeRestore }
    return try object(.newest, of: newest?.point.history, in: found).point
  }

  /// The number of objects after a point that cannot be read.
  package func unreadableCount(after point: BackupPoint) async throws -> Int {
    try await currentObjects().faults.keys.count { $0 > point.id }
  }

  /// The object of a point.
  ///
  /// - Throws: `StorageError` with `notFound` if there is no such point, and `damaged` if its object may be a damaged one.
  func object(
    _ selection: PointSelection, of history: String? = nil,
    in found: (readable: [BackupObject], faults: [KSUID: StorageError])
  ) throws -> BackupObject {
    if case .id = selection {} else if history == nil { _ = try onlyHistory(of: found.readable) }
    func isMeant(_ id: KSUID, _ time: Int64) -> Bool {
      switch selection {
      case .newest: true
      case .time(let limit): time <= limit
      case .id(let wanted): id == wanted
      }
    }
    let wanted = found.readable.last {
      (history == nil || $0.point.isOf(history ?? "")) && isMeant($0.id, $0.point.time)
        && (selection != .newest || !$0.point.isBeforeRestore)
    }
    let damaged = found.faults.filter { isMeant($0.key, Int64($0.key.unixSeconds) * 1_000) }
    if let (id, error) = damaged.max(by: { $0.key < $1.key }), wanted.map({ $0.id < id }) ?? true { throw error }
    guard let wanted else {
      throw StorageError(.notFound, "the store has no such point; `buckia history` lists its points")
    }
    return wanted
  }

  /// The objects with the pages of a point, the newest first.
  ///
  /// - Throws: As ``object(_:of:in:)``; `damaged` if an object that is needed is missing or damaged.
  func chain(to selection: PointSelection, of history: String?) async throws -> [BackupObject] {
    let found = try await currentObjects()
    let wanted = try object(selection, of: history, in: found)
    let byID = Dictionary(uniqueKeysWithValues: found.readable.map { ($0.id, $0) })
    var chain = [wanted]
    while let base = chain[chain.count - 1].payload.base {
      let object = chain[chain.count - 1]
      guard let next = byID[base], next.point.pageSize == wanted.point.pageSize, next.id < object.id else {
        throw StorageError(.damaged, "it needs the pages of \(base), which is missing or damaged", path: object.path)
      }
      chain.append(next)
    }
    return chain
  }
}

/// Files that exist while a point is restored or objects are merged.
final class WorkingFiles: Sendable {
  private let files: [HandedOver<TemporaryDatabase>]
  /// The database in the making.
  var assembly: String { files[0].value.path }
  /// A local copy of an object.
  var object: String { files[1].value.path }

  /// Makes the files beside another one. They are deleted with this instance; those of a killed process by the next one.
  init(besides path: String) throws {
    let folder = FileSystem.folder(of: path)
    files = try (0..<2).map { _ in HandedOver(try TemporaryDatabase(in: folder, permissions: 0o600)) }
  }

  /// Gives the database its name. A file that has got the name meanwhile is not replaced.
  func publish(at path: String) throws(StorageError) {
    guard link(assembly, path) == 0 else {
      throw StorageError(.unwritable, "\(path) cannot be written: \(String(cString: strerror(errno)))")
    }
  }
}

extension StorageError {
  /// The file to restore to exists.
  static func taken(_ path: String) -> StorageError {
    StorageError(.alreadyExists, "\(path) is there already, and is not replaced; move it away, or name another file")
  }
}

extension PointSelection {
  /// Reads an id, or a time in UTC as [RFC 3339](https://www.rfc-editor.org/rfc/rfc3339) has it, of which the end may be
  /// missing: `2026-03-01 12:30`.
  ///
  /// - Throws: `BuckiaError` with `misuse` for other text.
  public init(text: String) throws {
    if let id = KSUID(text) {
      self = .id(id)
    } else if let time = UTCTime(parsing: text) {
      self = .time(time.unixMilliseconds)
    } else {
      throw BuckiaError(.misuse, "\"\(text)\" is no id of a point, and no time such as 2026-03-01 12:30")
    }
  }
}
