import BuckiaBytes
import Crypto

/// A public key on Curve25519.
struct X25519Recipient: RecipientKind, Equatable {
  static let prefix = "age"
  static let byteCount = 32
  private static let info = Array("age-encryption.org/v1/X25519".utf8)

  let bytes: [UInt8]

  func wrap(_ key: FileKey) throws(AgeError) -> Stanza {
    let ephemeral = Curve25519.KeyAgreement.PrivateKey()
    let share = Array(ephemeral.publicKey.rawRepresentation)
    guard let wrappingKey = Self.wrappingKey(of: ephemeral, with: bytes, share: share, recipient: bytes) else {
      throw AgeError(
        .invalidRecipient, "\(Bech32.encode(bytes, prefix: Self.prefix)) is a key that hides nothing: ask for another")
    }
    do {
      let body = try KeyWrapping.wrap(key, with: wrappingKey)
      return Stanza(
        kind: X25519Identity.stanzaKind, arguments: [String(decoding: Base64.encode(share), as: UTF8.self)], body: body)
    } catch { throw AgeError(.encryptionFailed, "the file's key cannot be wrapped: \(error)") }
  }

  /// The key that wraps a file's key.
  ///
  /// - Parameters:
  ///   - mine: The private key.
  ///   - other: The other's public key.
  ///   - share: The sender's public key, made for this file.
  ///   - recipient: The recipient's public key.
  /// - Returns: The key; nil when the public key is one of the few that yield the same whatever the private key is.
  static func wrappingKey(
    of mine: Curve25519.KeyAgreement.PrivateKey, with other: [UInt8], share: [UInt8], recipient: [UInt8]
  ) -> SymmetricKey? {
    do {
      let key = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: other)
      let secret = try mine.sharedSecretFromKeyAgreement(with: key)
      guard secret.withUnsafeBytes({ bytes in bytes.contains { $0 != 0 } }) else { return nil }
      return secret.hkdfDerivedSymmetricKey(
        using: SHA256.self, salt: share + recipient, sharedInfo: info, outputByteCount: 32)
    } catch {
      // The libraries refuse such keys, too.
      return nil
    }
  }
}
