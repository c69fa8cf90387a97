import BuckiaBytes

/// What identifies a file that could not be opened as a diff: SHA-256 of its bytes.
///
/// A refused file's manifest proves nothing, so a ledger remembers the file by this.
package struct FileDigest: Equatable, Sendable {
  /// The digest.
  package let sha256: ContentDigest
  /// The size of the file in bytes.
  package let byteCount: Int64
  /// Whether the digest covers the whole file; else it covers the first `limit` bytes, then the text `…` and the size.
  package let isWhole: Bool

  /// Hashes a file, in bounded memory and time.
  ///
  /// - Parameters:
  ///   - path: The file; links are not followed.
  ///   - limit: How many bytes are read at most, 1 GiB unless given.
  /// - Throws: `DiffFileError` with code `notRegularFile` or one of the system's.
  package static func sha256(at path: String, limit: Int64 = 1 << 30) throws(DiffFileError) -> FileDigest {
    try sha256(of: OpenedFile(at: path), limit: limit)
  }

  /// Hashes an open file from its first byte on, whatever has been read of it.
  package static func sha256(of file: OpenedFile, limit: Int64 = 1 << 30) throws(DiffFileError) -> FileDigest {
    do throws(ByteStreamError) {
      return try FileDigest(PositionedInput(file.input), byteCount: file.byteCount, limit: limit)
    } catch {
      throw DiffFileError(error)
    }
  }

  private init(_ source: any ByteInput, byteCount: Int64, limit: Int64) throws(ByteStreamError) {
    let file = DigestingInput(source, ContentHasher())
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: streamChunkBytes, alignment: 16)
    defer { buffer.deallocate() }
    var left = limit
    var isAtEnd = false
    while left > 0, !isAtEnd {
      let window = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(buffer.count, Int(clamping: left))])
      let count = try file.read(into: window)
      left -= Int64(count)
      isAtEnd = count == 0
    }
    var hasher = file.hasher
    if !isAtEnd { isAtEnd = try source.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<1])) == 0 }
    isWhole = isAtEnd
    if !isWhole { hasher.update(Array("…\(byteCount)".utf8)) }
    sha256 = hasher.digest
    self.byteCount = isWhole ? file.byteCount : byteCount
  }
}
