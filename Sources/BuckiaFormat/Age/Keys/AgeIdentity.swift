import BuckiaBytes

/// What decrypts files: a private key, written `AGE-SECRET-KEY-1…` or `AGE-SECRET-KEY-PQ-1…`.
///
/// It is a secret; neither `description` nor errors show it.
public struct AgeIdentity: Sendable, CustomStringConvertible, CustomDebugStringConvertible {
  let kind: any IdentityKind

  /// What is shown of it, which is not the secret.
  public var description: String { "an identity" }
  /// The same for debuggers.
  public var debugDescription: String { description }

  /// Makes a new identity.
  ///
  /// - Parameter isQuantumSafe: Whether what is encrypted for it stays safe when there are quantum computers. Only age 1.3
  ///   and later know such identities; on Apple systems they need macOS 26 or iOS 26.
  public init(quantumSafe isQuantumSafe: Bool = false) {
    kind = isQuantumSafe ? HybridIdentity() : X25519Identity()
  }

  /// Takes the 32 bytes of a private key on Curve25519; nil when they are none.
  package init?(x25519 bytes: [UInt8]) {
    guard let key = X25519Identity(bytes) else { return nil }
    kind = key
  }

  /// Reads an identity.
  ///
  /// - Throws: `AgeError` with code `invalidIdentity`.
  package init(parsing text: String) throws(AgeError) {
    guard let (prefix, isUppercase, bytes) = Bech32.decode(text), isUppercase else {
      throw AgeError(.invalidIdentity, "it is no identity: those begin with AGE-SECRET-KEY-1 or AGE-SECRET-KEY-PQ-1")
    }
    if prefix == X25519Identity.prefix, let key = X25519Identity(bytes) {
      kind = key
    } else if prefix == HybridIdentity.prefix, let key = HybridIdentity(bytes) {
      kind = key
    } else {
      throw AgeError(.invalidIdentity, "it is an identity of a kind that is not known here")
    }
  }

  /// Who can encrypt for it.
  ///
  /// - Throws: `AgeError` with code `unsupportedKey` for a quantum-safe one on a system that has no such keys.
  package func makeRecipient() throws(AgeError) -> AgeRecipient {
    if let key = kind as? HybridIdentity { return AgeRecipient(try key.recipient()) }
    if let key = kind as? X25519Identity { return AgeRecipient(key.recipient) }
    throw AgeError(.invalidIdentity, "a passphrase has no recipient")
  }

  /// The secret as text, for the file that keeps it. Whoever sees it can read everything that is encrypted for it.
  public var secretText: String {
    switch kind {
    case let key as HybridIdentity: Bech32.encode(key.bytes, prefix: HybridIdentity.prefix).uppercased()
    case let key as X25519Identity: Bech32.encode(key.bytes, prefix: X25519Identity.prefix).uppercased()
    default: ""
    }
  }
}
