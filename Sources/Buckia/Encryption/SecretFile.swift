import BuckiaBytes

/// A small file whose content is a secret: identities, a passphrase.
package enum SecretFile {
  /// How many bytes a passphrase in a file may have.
  private static let maximumPassphraseBytes = 64 << 10

  /// Reads a passphrase. One end of line after it does not belong to it.
  ///
  /// - Throws: `BuckiaError`.
  package static func passphrase(in source: CipherSource) throws -> [UInt8] {
    var bytes = try BuckiaError.wrapping { try Self.bytes(of: source, limit: maximumPassphraseBytes) }
    if bytes.last == UInt8(ascii: "\n") {
      bytes.removeLast()
      if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    }
    return bytes
  }

  /// Reads all of a file.
  ///
  /// - Throws: `ByteStreamError`; with code `unreadable` when it is larger than it may be.
  static func bytes(of source: CipherSource, limit: Int) throws(ByteStreamError) -> [UInt8] {
    let input = try source.opened()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: limit + 1, alignment: 16)
    defer {
      buffer.initializeMemory(as: UInt8.self, repeating: 0)
      buffer.deallocate()
    }
    let count = try input.readFully(into: buffer)
    guard count <= limit else {
      throw source.named(ByteStreamError(.unreadable, "it is larger than \(limit >> 10) KB, and holds something else"))
    }
    return Array(buffer[..<count])
  }
}
