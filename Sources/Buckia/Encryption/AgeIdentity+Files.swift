import BuckiaFormat
import BuckiaBytes

extension AgeIdentity {
  /// Reads an identity.
  ///
  /// - Parameter text: The identity as `age-keygen` prints it, `AGE-SECRET-KEY-1…`.
  /// - Throws: `BuckiaError` with code ``BuckiaErrorCode/invalidIdentity``.
  public init(_ text: String) throws {
    self = try BuckiaError.wrapping { try AgeIdentity(parsing: text) }
  }

  /// Who can encrypt for this identity.
  ///
  /// - Throws: `BuckiaError` for a quantum-safe one on a system that has no such keys.
  public func recipient() throws -> AgeRecipient { try BuckiaError.wrapping { try makeRecipient() } }

  /// The keys that a person decrypts with: the present one, and those before it.
  public static func identities(of identity: Identity) -> [AgeIdentity] {
    identity.decryptionSeeds.compactMap { AgeIdentity(x25519: $0) }
  }

  /// Reads a file of identities: one that `age-keygen` writes, or the identity of a person, with the keys before the present ones.
  ///
  /// - Parameters:
  ///   - path: The file. Of `age-keygen`'s, one identity a line; lines that begin with # are comments. At most 1 MB.
  ///   - passphrase: What opens the file where it is itself encrypted with one.
  /// - Throws: `BuckiaError` with code ``BuckiaErrorCode/invalidIdentity``, or when the file cannot be read; as
  ///   ``BuckiaHome/identity()`` for a person's.
  public static func identities(inFile path: String, passphrase: IdentityPassphrase? = nil) throws -> [AgeIdentity] {
    try BuckiaError.wrapping {
      let bytes = try SecretFile.bytes(of: .path(path), limit: IdentityLines.maximumBytes)
      if bytes.first == UInt8(ascii: "{") { return identities(of: try Identity(contentsOf: path)) }
      guard SealedIdentity.begins(bytes) else { return try parse(bytes, path: path) }
      guard let passphrase else {
        throw IdentityError(.passphraseNeeded, "it is protected by a passphrase, which was not given", path: path)
      }
      let opened = try passphrase.open(bytes)
      if opened.first == UInt8(ascii: "{") { return identities(of: try Identity(document: opened)) }
      return try parse(opened, path: path)
    }
  }

  private static func parse(_ bytes: [UInt8], path: String) throws(AgeError) -> [AgeIdentity] {
    do { return try IdentityLines.parse(bytes) } catch { throw AgeError(error.code, "\(path): \(error)") }
  }
}
