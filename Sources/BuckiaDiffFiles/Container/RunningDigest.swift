import Crypto

/// SHA-256 of bytes as they pass by.
struct RunningDigest {
  private var hasher = SHA256()

  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    if !bytes.isEmpty { hasher.update(bufferPointer: bytes) }
  }

  mutating func update(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { update($0) }
  }

  /// The digest of everything so far; more may follow.
  var digest: ContentDigest { ContentDigest(hasher.finalize()) }

  static func of(_ bytes: [UInt8]) -> ContentDigest {
    var running = RunningDigest()
    running.update(bytes)
    return running.digest
  }
}

extension ContentDigest {
  /// Takes a digest as the library gives it, which always has 32 bytes.
  init(_ digest: SHA256Digest) { bytes = digest.withUnsafeBytes { Array($0) } }
}
