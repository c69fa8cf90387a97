import BuckiaBytes

/// An untrusted file, open for reading: everything about it is read through one descriptor, even if its name then
/// belongs to another file.
package struct OpenedFile {
  /// Its bytes, from the first.
  package let input: any RandomAccessInput
  /// The size when it was opened.
  package let byteCount: Int64
  /// Its name, with or without its folder: it may have to hold the diff's id.
  package let name: String
  /// What errors call it.
  package let path: String
  /// The identity and state of the opened file; nil if it is no separate file.
  package let identity: FileIdentity?

  /// Describes bytes that are there already.
  package init(_ input: any RandomAccessInput, byteCount: Int64, name: String) {
    self.input = input
    self.byteCount = byteCount
    self.name = name
    path = name
    identity = nil
  }

  /// Opens a regular file, without following links.
  ///
  /// - Parameters:
  ///   - path: The path.
  ///   - name: The name that is checked; nil for its own.
  /// - Throws: `DiffFileError` with the path, and code `notRegularFile` or one of the system's.
  package init(at path: String, as name: String? = nil) throws(DiffFileError) {
    let file: PosixFile
    do throws(ByteStreamError) { file = try PosixFile(reading: path) } catch { throw DiffFileError(error) }
    input = file
    byteCount = file.initialByteCount
    self.name = name ?? path
    self.path = path
    identity = file.identity
  }

  private init(_ file: OpenedFile, readThrough input: any RandomAccessInput) {
    self.input = input
    byteCount = file.byteCount
    name = file.name
    path = file.path
    identity = file.identity
  }

  /// The same file, which calls `observe` with the number of read bytes after each read.
  package func observed(_ observe: @escaping (Int) -> Void) -> OpenedFile {
    OpenedFile(self, readThrough: ObservedInput(input, observe))
  }

  /// The first bytes, or fewer if the file is shorter. A later read still begins with them.
  ///
  /// - Throws: `DiffFileError` when they cannot be read.
  package func beginning(_ count: Int) throws(DiffFileError) -> [UInt8] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
    defer { buffer.deallocate() }
    do throws(ByteStreamError) {
      return Array(buffer.prefix(try input.read(into: buffer, at: 0)))
    } catch {
      throw DiffFileError(error).naming(path: path)
    }
  }
}

/// What identifies a file that could not be opened as a diff: SHA-256 of its bytes.
///
/// A refused file's manifest proves nothing. A ledger therefore records the file by this digest.
package struct FileDigest: Equatable, Sendable {
  /// The digest.
  package let sha256: ContentDigest
  /// The size of the file in bytes.
  package let byteCount: Int64
  /// True if the digest covers the whole file; otherwise it covers the first `limit` bytes, the text `…` and the size.
  package let isWhole: Bool

  /// Hashes a file, in bounded memory and time.
  ///
  /// - Parameters:
  ///   - path: The file; links are not followed.
  ///   - limit: The maximum number of read bytes, 1 GiB unless given.
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
