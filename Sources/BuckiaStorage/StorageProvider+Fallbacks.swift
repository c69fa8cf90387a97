extension StorageProvider {
  /// Whether there is an object of that name.
  ///
  /// - Throws: `StorageError`.
  public func exists(_ path: RemotePath) async throws -> Bool { try await stat(path) != nil }

  /// Writes an object on a condition, also where the storage cannot check it in one step: then the object is looked up first, and of two who
  /// write at the same moment, the later one wins.
  ///
  /// - Parameters:
  ///   - contents: The bytes.
  ///   - condition: What must be so.
  /// - Throws: `StorageError` with `alreadyExists` or `changed` when the condition does not hold.
  @discardableResult
  public func putChecked(
    _ contents: StorageContents, to path: RemotePath, _ condition: PutCondition
  ) async throws -> StoredObject {
    if capabilities.keeps(condition) { return try await put(contents, to: path, condition) }
    return try await putLookingFirst(contents, to: path, condition)
  }

  /// Writes an object on a condition that the storage does not keep: the object is looked up first.
  package func putLookingFirst(
    _ contents: StorageContents, to path: RemotePath, _ condition: PutCondition
  ) async throws -> StoredObject {
    try condition.require(of: await stat(path), at: path)
    return try await put(contents, to: path, .none)
  }

  /// Moves an object, also where the storage cannot: then it is copied and the original deleted. A stop in between leaves both.
  ///
  /// - Parameter isReplacing: Whether an object that has the new name is replaced.
  /// - Throws: `StorageError` with `notFound`, `alreadyExists`, or another.
  public func moveOrCopy(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool = false) async throws {
    if capabilities.moves {
      do { return try await move(path, to: newPath, replacing: isReplacing) } catch let error as StorageError
        where error.code == .unsupported
      {
        // It moves objects, but not this one: too large, say.
      }
    }
    guard path != newPath else { return }
    let download = try await get(path, GetRequest())
    let spool = try StorageSpool()
    for try await chunk in download.chunks { try spool.write(chunk) }
    guard spool.byteCount == download.object.byteCount else {
      throw StorageError(.truncated, "\(spool.byteCount) of \(download.object.byteCount) bytes came", path: path)
    }
    try await putChecked(spool.contents(), to: newPath, isReplacing ? .none : .ifAbsent)
    try await delete(path)
  }

  /// Deletes all objects in a folder.
  ///
  /// - Returns: How many.
  /// - Throws: `StorageError`; some are deleted then.
  @discardableResult
  public func deleteAll(in folder: RemotePath) async throws -> Int {
    let objects = try await listAll(folder).objects
    for object in objects { try await delete(object.path) }
    return objects.count
  }
}

extension PutCondition {
  /// Checks whether an object is as the condition wants it.
  ///
  /// - Parameter object: What is there; nil for nothing.
  /// - Throws: `StorageError` with `alreadyExists` or `changed`.
  public func require(of object: StoredObject?, at path: RemotePath) throws(StorageError) {
    switch self {
    case .none: return
    case .ifAbsent:
      if object != nil { throw .alreadyExists(path) }
    case .ifVersion(let version):
      if object?.version != version { throw .changed(path) }
    }
  }
}

extension StorageError {
  /// There is an object of that name.
  package static func alreadyExists(_ path: RemotePath) -> StorageError {
    StorageError(.alreadyExists, "an object of that name is there already, and was not replaced", path: path)
  }

  /// The object is another than the one that was expected.
  package static func changed(_ path: RemotePath) -> StorageError {
    StorageError(
      .changed, "somebody has replaced or removed it meanwhile; nothing was written over it", path: path)
  }

  /// There is no such object.
  package static func notFound(_ path: RemotePath) -> StorageError {
    StorageError(.notFound, "there is no such object", path: path)
  }
}
