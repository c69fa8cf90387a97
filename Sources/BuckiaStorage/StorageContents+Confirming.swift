import BuckiaBytes
import Crypto

extension StorageProvider {
  /// Looks up the delivered object. With write permission alone, the check by the storage on arrival has to be enough.
  package func lookUp(_ contents: StorageContents, at path: RemotePath) async throws -> StoredObject? {
    do { return try await stat(path) } catch let error as StorageError
      where error.code == .forbidden && capabilities.checksums.contains(.sha256)
    {
      let digest = try await contents.digest(of: .sha256)
      return StoredObject(
        path: path, byteCount: contents.byteCount, checksums: [ContentChecksum(.sha256, hex: digest)])
    }
  }

  /// Writes an object, and confirms that the storage has it: by its size and the digests that the storage tells.
  ///
  /// - Returns: The object as the storage has it.
  /// - Throws: `StorageError`: as ``putChecked(_:to:_:)``; `damaged` when the storage has something else.
  @discardableResult
  package func putConfirmed(
    _ contents: StorageContents, to path: RemotePath, _ condition: PutCondition
  ) async throws -> StoredObject {
    try await putChecked(contents, to: path, condition)
    return try await confirm(lookUp(contents, at: path), is: contents, at: path)
  }

  /// Confirms that a storage has the sent contents.
  ///
  /// - Parameter readsBack: True to read the object back if the storage reports no digest.
  /// - Throws: `StorageError`: `damaged` when the storage has something else.
  @discardableResult
  package func confirm(
    _ found: StoredObject?, is contents: StorageContents, at path: RemotePath, readsBack: Bool = false
  ) async throws -> StoredObject {
    guard let found, found.byteCount == contents.byteCount else {
      throw StorageError(
        .damaged, "the storage has taken it, and does not have it whole; nothing was removed because of it", path: path)
    }
    var isSame = true
    for checksum in found.checksums where isSame {
      isSame = try await checksum.hex == contents.digest(of: checksum.algorithm)
    }
    if found.checksums.isEmpty, readsBack {
      isSame = try await contents.objectWithBeginning(at: path, in: self)?.byteCount == contents.byteCount
    }
    guard isSame else {
      throw StorageError(
        .damaged, "the storage has other bytes than were sent; nothing was removed because of it", path: path)
    }
    return found
  }
}

extension StorageContents {
  /// The digest of the bytes in lower-case hexadecimal.
  ///
  /// - Parameters:
  ///   - function: How it is computed.
  ///   - range: Of which bytes; nil for all.
  /// - Throws: `StorageError` when they cannot be read.
  package func digest<Function: HashFunction>(_ function: Function.Type, in range: Range<Int64>? = nil) async throws
    -> String
  {
    var hash = Function()
    for try await chunk in chunks(in: range) { hash.update(data: chunk) }
    return HexText.lowercase(hash.finalize())
  }

  /// The SHA-256 in lower-case hexadecimal, which is computed unless it is known.
  package func knownSHA256() async throws -> String {
    if let sha256 { return sha256 }
    return try await digest(SHA256.self)
  }

  /// The digest of the bytes in lower-case hexadecimal.
  package func digest(of algorithm: ContentChecksum.Algorithm) async throws -> String {
    switch algorithm {
    case .md5: try await digest(Insecure.MD5.self)
    case .sha1: try await digest(Insecure.SHA1.self)
    case .sha256: try await digest(SHA256.self)
    }
  }
}
