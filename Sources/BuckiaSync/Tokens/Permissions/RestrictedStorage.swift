import BuckiaStorage

/// A storage of which only a part may be used. Every call is checked before it reaches the storage behind.
///
/// What is forbidden throws `StorageError` with `forbidden`, whether or not there is such an object. A listing leaves out what may not be
/// listed; one of which nothing may be listed is refused.
public struct RestrictedStorage: StorageProvider {
  private let storage: any StorageProvider
  /// What may be done.
  public let permissions: StoragePermissions
  private let expires: Int64?
  private let clock: TokenClock

  /// Restricts a storage.
  ///
  /// - Parameters:
  ///   - storage: The storage.
  ///   - permissions: What may be done with it.
  ///   - expires: Until when, in milliseconds since 1970; nil for no end.
  ///   - clock: What time it is.
  public init(
    _ storage: any StorageProvider, allowing permissions: StoragePermissions, until expires: Int64? = nil,
    clock: TokenClock = .system
  ) {
    self.storage = storage
    self.permissions = permissions
    self.expires = expires
    self.clock = clock
  }

  /// The name of the storage behind.
  public var name: String { storage.name }
  /// What the storage behind can do.
  public var capabilities: StorageCapabilities { storage.capabilities }

  private func requireTime(_ path: RemotePath?) throws(StorageError) {
    guard expires.map({ clock.now() < $0 }) ?? true else {
      throw StorageError(.unauthorized, "what was allowed here has ended; get a new token", path: path)
    }
  }

  private func require(_ actions: StorageActions, _ path: RemotePath) throws(StorageError) {
    try requireTime(path)
    let missing = actions.subtracting(permissions.allowed(path))
    guard missing.isEmpty else {
      throw StorageError(
        .forbidden, "this is not allowed here: \(missing); nothing was done. Ask for a token that allows it", path: path
      )
    }
  }

  /// Lists what may be listed. A page can be shorter than asked for, or empty, and others still follow.
  public func list(_ request: ListRequest) async throws -> ListPage {
    try requireTime(request.folder)
    let listing = permissions.listing(of: request.folder)
    guard listing != .nothing else {
      throw StorageError(
        .forbidden, "this is not allowed here: list; ask for a token that allows it", path: request.folder)
    }
    var page = try await storage.list(request)
    page.objects.removeAll { !permissions.allow(.list, $0.path) }
    // How many strange names there are says something of what may not be seen.
    if listing == .some { page.unusableNames = 0 }
    return page
  }

  /// Needs the permission to read.
  public func stat(_ path: RemotePath) async throws -> StoredObject? {
    try require(.read, path)
    return try await storage.stat(path)
  }

  /// Needs the permission to read.
  public func get(_ path: RemotePath, _ request: GetRequest) async throws -> StorageDownload {
    try require(.read, path)
    return try await storage.get(path, request)
  }

  /// Needs the permission to write.
  public func put(
    _ contents: StorageContents, to path: RemotePath, _ condition: PutCondition
  ) async throws -> StoredObject {
    try require(.write, path)
    return try await storage.put(contents, to: path, condition)
  }

  /// Needs the permission to delete.
  public func delete(_ path: RemotePath) async throws {
    try require(.delete, path)
    try await storage.delete(path)
  }

  /// Moving needs all that copying and deleting would need.
  public func move(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool) async throws {
    try require([.read, .delete], path)
    try require(.write, newPath)
    try await storage.move(path, to: newPath, replacing: isReplacing)
  }
}
