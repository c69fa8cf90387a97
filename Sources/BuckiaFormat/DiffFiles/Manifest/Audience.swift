import BuckiaBytes

/// Whom a diff is for.
package enum Audience: Equatable, Sendable {
  /// People, known by salted hashes of their keys: readers find themselves, others learn only how many there are.
  case recipients(salt: Salt, hashes: [ContentDigest])
  /// Whoever follows a stream.
  case broadcast(StreamID)

  /// 16 random bytes, new for each diff, so that one recipient looks different in each.
  package struct Salt: FixedBytes {
    /// 16
    package static let byteCount = 16
    /// The salt.
    package let bytes: [UInt8]
    /// Takes 16 bytes.
    package init?(_ bytes: [UInt8]) {
      guard bytes.count == Self.byteCount else { return nil }
      self.bytes = bytes
    }
  }

  /// The entry of one recipient: SHA-256 over `buckia/audience/v1\n`, the salt and the public key.
  package static func hash(of key: [UInt8], salt: Salt) -> ContentDigest {
    var hasher = ContentHasher()
    hasher.update(Array("buckia/audience/v1\n".utf8) + salt.bytes + key)
    return hasher.digest
  }

  /// Hides who the owners of some public keys are; nil for no keys.
  package init?(of keys: [[UInt8]]) {
    var random = SystemRandomNumberGenerator()
    let bytes = (0..<Salt.byteCount).map { _ in UInt8.random(in: 0...255, using: &random) }
    guard !keys.isEmpty, let salt = Salt(bytes) else { return nil }
    // In an order that says nothing of who they are.
    let hashes = keys.map { Self.hash(of: $0, salt: salt) }.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    self = .recipients(salt: salt, hashes: hashes)
  }

  /// Whether the owner of a public key is among the recipients. False for a broadcast.
  package func addresses(_ key: [UInt8]) -> Bool {
    guard case .recipients(let salt, let hashes) = self else { return false }
    return hashes.contains(Self.hash(of: key, salt: salt))
  }
}
