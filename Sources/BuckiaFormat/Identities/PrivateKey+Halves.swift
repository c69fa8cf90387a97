import Crypto

extension PrivateKey {
  /// The public half of an Ed25519 key.
  func signingKey() throws(IdentityError) -> SigningKey {
    let half: SigningKey?
    do {
      half = SigningKey(Array(try Curve25519.Signing.PrivateKey(rawRepresentation: bytes).publicKey.rawRepresentation))
    } catch {
      throw Self.isNoKey
    }
    guard let half else { throw Self.isNoKey }
    return half
  }

  /// The public half of an X25519 key.
  func encryptionKey() throws(IdentityError) -> EncryptionKey {
    let half: EncryptionKey?
    do {
      half = EncryptionKey(
        Array(try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: bytes).publicKey.rawRepresentation))
    } catch {
      throw Self.isNoKey
    }
    guard let half else { throw Self.isNoKey }
    return half
  }

  private static var isNoKey: IdentityError { IdentityError(.invalidFile, "it holds 32 bytes that are no key") }
}
