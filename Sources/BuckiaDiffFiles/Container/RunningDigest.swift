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
  var digest: ContentDigest {
    let bytes = hasher.finalize().withUnsafeBytes { Array($0) }
    guard let digest = ContentDigest(bytes) else { preconditionFailure("SHA-256 has 32 bytes") }
    return digest
  }

  static func of(_ bytes: [UInt8]) -> ContentDigest {
    var running = RunningDigest()
    running.update(bytes)
    return running.digest
  }
}
