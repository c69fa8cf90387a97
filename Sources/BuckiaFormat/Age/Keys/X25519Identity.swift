import BuckiaBytes
import Crypto

/// A private key on Curve25519.
struct X25519Identity: IdentityKind {
  static let stanzaKind = "X25519"
  /// What the text begins with, in small letters.
  static let prefix = "age-secret-key-"

  private let key: Curve25519.KeyAgreement.PrivateKey

  /// A new key.
  init() { key = Curve25519.KeyAgreement.PrivateKey() }

  /// Takes the bytes of a key; nil unless there are 32.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == X25519Recipient.byteCount else { return nil }
    do { key = try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: bytes) } catch { return nil }
  }

  var bytes: [UInt8] { Array(key.rawRepresentation) }

  var recipient: X25519Recipient { X25519Recipient(bytes: Array(key.publicKey.rawRepresentation)) }

  static func check(_ stanza: Stanza) throws(ByteStreamError) {
    guard stanza.arguments.count == 1, bytes(stanza.arguments[0], count: X25519Recipient.byteCount) != nil else {
      throw malformed("does not name one share of 32 bytes")
    }
    try checkBody(of: stanza)
  }

  func unwrap(_ stanza: Stanza) throws(ByteStreamError) -> FileKey? {
    guard let share = Self.bytes(stanza.arguments[0], count: X25519Recipient.byteCount),
      let wrappingKey = X25519Recipient.wrappingKey(of: key, with: share, share: share, recipient: recipient.bytes)
    else { throw Self.malformed("has a share that hides nothing") }
    return KeyWrapping.unwrap(stanza.body, with: wrappingKey)
  }
}
