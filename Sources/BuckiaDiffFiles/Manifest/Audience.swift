/// Whom a diff is for.
public enum Audience: Equatable, Sendable {
  /// People, known by salted hashes of their keys: readers find themselves, others learn only how many there are.
  case recipients(salt: Salt, hashes: [ContentDigest])
  /// Whoever follows a stream.
  case broadcast(StreamID)

  /// 16 random bytes, new for each diff, so that one recipient looks different in each.
  public struct Salt: FixedBytes {
    /// 16
    public static let byteCount = 16
    /// The salt.
    public let bytes: [UInt8]
    /// Takes 16 bytes.
    public init?(_ bytes: [UInt8]) {
      guard bytes.count == Self.byteCount else { return nil }
      self.bytes = bytes
    }
  }

  /// The entry of one recipient: SHA-256 over `buckia/audience/v1\n`, the salt and the X25519 public key.
  public static func hash(of key: [UInt8], salt: Salt) -> ContentDigest {
    var hasher = RunningDigest()
    hasher.update(Array("buckia/audience/v1\n".utf8) + salt.bytes + key)
    return hasher.digest
  }

  /// Whether the owner of an X25519 key is among the recipients. False for a broadcast.
  public func addresses(_ key: [UInt8]) -> Bool {
    guard case .recipients(let salt, let hashes) = self else { return false }
    return hashes.contains(Self.hash(of: key, salt: salt))
  }
}
