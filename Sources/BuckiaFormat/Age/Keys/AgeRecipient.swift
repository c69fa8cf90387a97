/// Who can decrypt a file: a public key, written `age1…`.
///
/// Those that begin with `age1pq1` stay safe when there are quantum computers; on Apple systems they need macOS 26 or iOS 26.
public struct AgeRecipient: Sendable, Hashable, CustomStringConvertible {
  /// The key as text, in small letters.
  public let description: String

  let kind: any RecipientKind

  /// Whether it stays safe when there are quantum computers.
  public var isQuantumSafe: Bool { kind is HybridRecipient }

  /// Reads a recipient.
  ///
  /// - Throws: `AgeError` with code `invalidRecipient`.
  package init(parsing text: String) throws(AgeError) {
    guard let (prefix, isUppercase, bytes) = Bech32.decode(text) else {
      throw AgeError(
        .invalidRecipient, "\(Self.shortened(text)) is no recipient: it is mistyped, or not as age writes them")
    }
    switch (prefix, bytes.count, isUppercase) {
    case (X25519Recipient.prefix, X25519Recipient.byteCount, false): self.init(X25519Recipient(bytes: bytes))
    case (HybridRecipient.prefix, HybridRecipient.byteCount, false): self.init(HybridRecipient(bytes: bytes))
    case (X25519Identity.prefix, _, _), (HybridIdentity.prefix, _, _):
      // Not shown: it may be somebody's.
      throw AgeError(.invalidRecipient, "this is a secret identity and no recipient: use the age1… that belongs to it")
    default:
      throw AgeError(.invalidRecipient, "\(Self.shortened(text)) is a recipient of a kind that is not known here")
    }
  }

  /// Takes the 32 bytes of a public key on Curve25519; nil for any other number of bytes.
  package init?(x25519 bytes: [UInt8]) {
    guard bytes.count == X25519Recipient.byteCount else { return nil }
    self.init(X25519Recipient(bytes: bytes))
  }

  /// The bytes of the public key: 32 of an X25519 key, 1216 of one that is safe from quantum computers.
  package var keyBytes: [UInt8] {
    switch kind {
    case let key as X25519Recipient: key.bytes
    case let key as HybridRecipient: key.bytes
    default: []
    }
  }

  init(_ key: X25519Recipient) {
    kind = key
    description = Bech32.encode(key.bytes, prefix: X25519Recipient.prefix)
  }

  init(_ key: HybridRecipient) {
    kind = key
    description = Bech32.encode(key.bytes, prefix: HybridRecipient.prefix)
  }

  /// Whether two recipients are one key.
  public static func == (one: Self, other: Self) -> Bool { one.description == other.description }

  /// Hashes the key.
  public func hash(into hasher: inout Hasher) { hasher.combine(description) }

  private static func shortened(_ text: String) -> String {
    text.utf8.count <= 70 ? "\"\(text)\"" : "\"\(text.prefix(30))…\""
  }
}
