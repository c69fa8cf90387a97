import BuckiaSync
import Foundation
import NIOConcurrencyHelpers
import TestSupport

/// A person with a database, media and diffs to send, who syncs with a storage.
struct SyncPerson {
  let name: String
  let folder: TemporaryFolder
  var storage: any StorageProvider
  var options = SyncOptions()
  var change: @Sendable (inout BuckiaConfiguration) -> Void = { _ in }

  static let schema = "CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT)"

  init(_ name: String, in folder: TemporaryFolder, _ storage: any StorageProvider) throws {
    self.name = name
    self.folder = folder
    self.storage = storage
    try FileManager.default.createDirectory(atPath: folder.file(name), withIntermediateDirectories: true)
    try TestDatabases.run(Self.schema, on: database)
    try TestDatabases.run(Self.schema, on: shared)
  }

  /// One of several devices of a person.
  static func device(_ name: String, of user: String, in folder: TemporaryFolder, _ storage: any StorageProvider)
    throws -> SyncPerson
  {
    var device = try SyncPerson(name, in: folder, storage)
    device.change = {
      $0.userID = user
      $0.hasSeveralDevices = true
    }
    try DatabaseManager(device.database, home: device.home).initialize()
    return device
  }

  /// A person whose folder exists already.
  init(existing name: String, in folder: TemporaryFolder, _ storage: any StorageProvider) {
    self.name = name
    self.folder = folder
    self.storage = storage
  }

  var database: String { folder.file("\(name)/notes.sqlite") }
  /// The state of the database that others know.
  var shared: String { folder.file("\(name)/shared.sqlite") }
  var outbox: String { folder.file("\(name)/outbox") }
  var home: BuckiaHome { BuckiaHome(path: folder.file("\(name)/home")) }
  /// The person's folder on this device.
  var place: String { folder.file("\(name)/files/\(name)") }

  func configuration(to others: [String] = []) -> BuckiaConfiguration {
    var configuration = BuckiaConfiguration(
      userID: name, database: DatabaseManager(database, home: home),
      folders: FolderStructureConfiguration(main: folder.file("\(name)/files")),
      storage: StorageAccount(.custom(storage)))
    configuration.deliveries = others.map { BuckiaConfiguration.Delivery(from: outbox, to: $0) }
    change(&configuration)
    return configuration
  }

  @discardableResult
  func sync(to others: [String] = []) async throws -> SyncResult {
    try await BuckiaClient(configuration(to: others)).sync(options)
  }

  /// Restores the newest point of the person's backups, or another one.
  ///
  /// - Returns: The file.
  @discardableResult
  func restored(_ name: String = "restored.sqlite", _ selection: PointSelection = .newest) async throws -> String {
    let path = folder.file(name)
    try await BuckiaClient(configuration()).restoreBackup(to: path, at: selection)
    return path
  }

  /// The points of the person's backups.
  func points() async throws -> [BackupPoint] {
    try await BuckiaClient(configuration()).backups.history(home: home).points.map(\.point)
  }

  func run(_ sql: String) throws { try TestDatabases.run(sql, on: database) }

  /// Writes the changes since the last call to the outbox.
  @discardableResult
  func write() throws -> DiffReport {
    let report = try DatabaseManager(database, home: home).createDatabaseDiff(since: shared, output: .folder(outbox))
    try FileManager.default.removeItem(atPath: shared)
    try FileManager.default.copyItem(atPath: database, toPath: shared)
    return report
  }

  func notes() throws -> [String] { try TestDatabases.rows("SELECT text FROM note ORDER BY id", on: database) }

  func addMedia(_ bytes: [UInt8], _ path: String) throws {
    let file = "\(place)/\(path)"
    try FileManager.default.createDirectory(
      atPath: (file as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
    try Data(bytes).write(to: URL(fileURLWithPath: file))
  }
}

extension StorageProvider {
  /// The objects in the storage, or in a folder of it, and the folders of backups.
  func places(in folder: RemotePath? = nil) async throws -> [String] {
    try await listAll(folder).objects.reduce(into: []) { places, object in
      if places.last != object.path.place { places.append(object.path.place) }
    }
  }
}

extension RemotePath {
  /// The path; of a backup, which is named by a random id, its folder.
  var place: String { text.hasSuffix(".backup") ? folder?.text ?? "" : text }
}

extension SyncResult.Transfer {
  /// The path; of a backup its folder.
  var place: String { path.place }
}

/// A watched folder as a storage, and the people who sync with it.
struct SyncBench {
  let folder: TemporaryFolder
  let local: LocalFolder
  let watched: WatchedStorage

  init() throws {
    folder = try TemporaryFolder()
    local = LocalFolder(folder.file("storage"))
    watched = WatchedStorage(local)
  }

  func person(_ name: String) throws -> SyncPerson { try SyncPerson(name, in: folder, watched) }

  /// The objects in the storage, or in a folder of it, and the folders of backups.
  func objects(_ path: String? = nil) async throws -> [String] {
    try await local.places(in: path.map { try RemotePath($0) })
  }
}

/// A storage that records calls, and fails on demand.
final class WatchedStorage: StorageProvider {
  private let inner: any StorageProvider
  private let state = NIOLockedValueBox<(calls: [String], failing: (@Sendable (Int, String) -> StorageError?)?)>(
    ([], nil))

  init(_ inner: any StorageProvider) { self.inner = inner }

  var name: String { inner.name }
  var capabilities: StorageCapabilities { inner.capabilities }
  /// The calls, such as `put anna/originals/a.jpg`.
  var calls: [String] { state.withLockedValue { $0.calls } }
  func forgetCalls() { state.withLockedValue { $0.calls = [] } }
  /// Lets calls fail, given their number from 0 and their description.
  func fail(_ when: (@Sendable (Int, String) -> StorageError?)?) { state.withLockedValue { $0.failing = when } }

  private func note(_ call: String) throws {
    let error = state.withLockedValue { state in
      state.calls.append(call)
      return state.failing?(state.calls.count - 1, call)
    }
    if let error { throw error }
  }

  func list(_ request: ListRequest) async throws -> ListPage {
    try note("list \(request.folder?.text ?? "")")
    return try await inner.list(request)
  }

  func stat(_ path: RemotePath) async throws -> StoredObject? {
    try note("stat \(path)")
    return try await inner.stat(path)
  }

  func get(_ path: RemotePath, _ request: GetRequest) async throws -> StorageDownload {
    try note("get \(path)")
    return try await inner.get(path, request)
  }

  func put(_ contents: StorageContents, to path: RemotePath, _ condition: PutCondition) async throws -> StoredObject {
    try note("put \(path)")
    return try await inner.put(contents, to: path, condition)
  }

  func delete(_ path: RemotePath) async throws {
    try note("delete \(path)")
    try await inner.delete(path)
  }

  func move(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool) async throws {
    try note("move \(path)")
    try await inner.move(path, to: newPath, replacing: isReplacing)
  }
}
