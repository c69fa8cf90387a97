import BuckiaBytes

/// What decrypts files: a private key, written `AGE-SECRET-KEY-1…` or `AGE-SECRET-KEY-PQ-1…`.
///
/// It is a secret; neither `description` nor errors show it.
public struct AgeIdentity: Sendable, CustomStringConvertible, CustomDebugStringConvertible {
  let kind: any IdentityKind

  /// A placeholder: the secret is never printed.
  public var description: String { "an identity" }
  /// The same for debuggers.
  public var debugDescription: String { description }

  /// Generates a new identity.
  ///
  /// - Parameter isQuantumSafe: True for a post-quantum key. Only age 1.3 and later know such identities; on Apple
  ///   systems they need macOS 26 or iOS 26.
  public init(quantumSafe isQuantumSafe: Bool = false) {
    kind = isQuantumSafe ? HybridIdentity() : X25519Identity()
  }

  /// Creates an identity from the 32 bytes of a private key on Curve25519; nil for other bytes.
  package init?(x25519 bytes: [UInt8]) {
    guard let key = X25519Identity(bytes) else { return nil }
    kind = key
  }

  /// Reads an identity.
  ///
  /// - Throws: `IdentityError` with code `invalidIdentity`.
  package init(parsing text: String) throws(IdentityError) {
    guard let (prefix, isUppercase, bytes) = Bech32.decode(text), isUppercase else {
      throw IdentityError(
        .invalidIdentity, "it is no identity: those begin with AGE-SECRET-KEY-1 or AGE-SECRET-KEY-PQ-1")
    }
    if prefix == X25519Identity.prefix, let key = X25519Identity(bytes) {
      kind = key
    } else if prefix == HybridIdentity.prefix, let key = HybridIdentity(bytes) {
      kind = key
    } else {
      throw IdentityError(.invalidIdentity, "it is an identity of a kind that is not known here")
    }
  }

  /// The public key of the identity, for encryption.
  ///
  /// - Throws: `IdentityError` with code `unsupportedKey` for a quantum-safe one on a system that has no such keys.
  package func makeRecipient() throws(IdentityError) -> AgeRecipient {
    if let key = kind as? HybridIdentity { return AgeRecipient(try key.recipient()) }
    if let key = kind as? X25519Identity { return AgeRecipient(key.recipient) }
    throw IdentityError(.invalidIdentity, "a passphrase has no recipient")
  }

  /// The secret as text, for its file. It decrypts everything that is encrypted for the identity.
  public var secretText: String {
    switch kind {
    case let key as HybridIdentity: Bech32.encode(key.bytes, prefix: HybridIdentity.prefix).uppercased()
    case let key as X25519Identity: Bech32.encode(key.bytes, prefix: X25519Identity.prefix).uppercased()
    default: ""
    }
  }
}

/// A recipient of encrypted files: a public key, written `age1…`.
///
/// Those that begin with `age1pq1` are post-quantum keys; on Apple systems they need macOS 26 or iOS 26.
public struct AgeRecipient: Sendable, Hashable, CustomStringConvertible {
  /// The key as text, in small letters.
  public let description: String

  let kind: any RecipientKind

  /// True if it stays safe when there are quantum computers.
  public var isQuantumSafe: Bool { kind is HybridRecipient }

  /// Reads a recipient.
  ///
  /// - Throws: `IdentityError` with code `invalidRecipient`.
  package init(parsing text: String) throws(IdentityError) {
    guard let (prefix, isUppercase, bytes) = Bech32.decode(text) else {
      throw IdentityError(
        .invalidRecipient, "\(Self.shortened(text)) is no recipient: it is mistyped, or not as age writes them")
    }
    switch (prefix, bytes.count, isUppercase) {
    case (X25519Recipient.prefix, X25519Recipient.byteCount, false): self.init(X25519Recipient(bytes: bytes))
    case (HybridRecipient.prefix, HybridRecipient.byteCount, false): self.init(HybridRecipient(bytes: bytes))
    case (X25519Identity.prefix, _, _), (HybridIdentity.prefix, _, _):
      // Not shown: it may be somebody's.
      throw IdentityError(
        .invalidRecipient, "this is a secret identity and no recipient: use the age1… that belongs to it")
    default:
      throw IdentityError(.invalidRecipient, "\(Self.shortened(text)) is a recipient of a kind that is not known here")
    }
  }

  /// Creates a recipient from the 32 bytes of a public key on Curve25519; nil for another number.
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

  /// True if two recipients are one key.
  public static func == (one: Self, other: Self) -> Bool { one.description == other.description }

  /// Hashes the key.
  public func hash(into hasher: inout Hasher) { hasher.combine(description) }

  private static func shortened(_ text: String) -> String {
    text.utf8.count <= 70 ? "\"\(text)\"" : "\"\(text.prefix(30))…\""
  }
}

/// A file of identities as `age-keygen` writes it: one a line, with comments and empty lines between them.
extension AgeIdentity {
  /// The maximum size of such a file in bytes.
  package static let fileByteLimit = 1 << 20

  /// Reads all identities of a file.
  ///
  /// - Throws: `IdentityError` that names the line and does not show it.
  package static func all(inFile bytes: [UInt8]) throws(IdentityError) -> [AgeIdentity] {
    var identities: [AgeIdentity] = []
    for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
      let text = String(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
      if text.isEmpty || text.utf8.first == UInt8(ascii: "#") { continue }
      do { identities.append(try AgeIdentity(parsing: text)) } catch {
        throw IdentityError(error.code, "line \(index + 1): \(error)")
      }
    }
    guard !identities.isEmpty else { throw IdentityError(.invalidIdentity, "there is no identity in it") }
    return identities
  }
}
