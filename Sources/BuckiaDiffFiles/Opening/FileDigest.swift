/// What identifies a file that could not be opened as a diff: SHA-256 of its bytes.
///
/// A refused file's manifest proves nothing, so a ledger remembers the file by this.
public struct FileDigest: Equatable, Sendable {
  /// The digest.
  public let sha256: ContentDigest
  /// The size of the file in bytes.
  public let byteCount: Int64
  /// Whether the digest covers the whole file; else it covers the first `limit` bytes, then the text `…` and the size.
  public let isWhole: Bool

  /// Hashes a file, in bounded memory and time.
  ///
  /// - Parameters:
  ///   - path: The file; links are not followed.
  ///   - limit: How many bytes are read at most, 1 GiB unless given.
  /// - Throws: `DiffFileError` with code `notRegularFile` or one of the system's.
  public static func sha256(at path: String, limit: Int64 = 1 << 30) throws(DiffFileError) -> FileDigest {
    let file = try InboundFile(at: path)
    while file.offset < limit {
      let bytes = try file.read(upTo: Int(clamping: limit - file.offset))
      if bytes.isEmpty { return FileDigest(sha256: file.digest.digest, byteCount: file.offset, isWhole: true) }
    }
    if try file.isAtEnd() { return FileDigest(sha256: file.digest.digest, byteCount: file.offset, isWhole: true) }
    var digest = file.digest
    digest.update(Array("…\(file.size)".utf8))
    return FileDigest(sha256: digest.digest, byteCount: file.size, isWhole: false)
  }
}
