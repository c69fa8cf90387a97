import Crypto

/// The key that one file is encrypted with and that its header wraps for each recipient.
struct FileKey {
  /// Its length.
  static let byteCount = 16

  /// The bytes, wiped when the last copy goes.
  let secret: SymmetricKey

  /// A new key, from the system's randomness: no other source is good enough for a key.
  init() { secret = SymmetricKey(size: .bits128) }

  /// A key that was unwrapped.
  init(_ secret: SymmetricKey) { self.secret = secret }

  /// The seal of a header.
  func seal(of header: [UInt8]) -> [UInt8] {
    Array(HMAC<SHA256>.authenticationCode(for: header, using: derivedKey(salt: [], info: "header")))
  }

  /// Whether a header carries the seal of whoever knows this key.
  func hasSealed(_ header: AgeHeader) -> Bool {
    // Compared in constant time.
    HMAC<SHA256>.isValidAuthenticationCode(
      header.seal, authenticating: header.sealed, using: derivedKey(salt: [], info: "header"))
  }

  /// The key of everything behind the header.
  ///
  /// - Parameter nonce: What follows the header.
  func payloadKey(nonce: [UInt8]) -> SymmetricKey { derivedKey(salt: nonce, info: "payload") }

  private func derivedKey(salt: [UInt8], info: String) -> SymmetricKey {
    HKDF<SHA256>.deriveKey(inputKeyMaterial: secret, salt: salt, info: Array(info.utf8), outputByteCount: 32)
  }
}
