import BuckiaBytes
import Crypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A public key that stays safe when there are quantum computers: X-Wing, which is ML-KEM-768 and X25519 in one.
struct HybridRecipient: RecipientKind, Equatable {
  static let prefix = "age1pq"
  static let byteCount = 1216
  static let info = Data("age-encryption.org/mlkem768x25519".utf8)

  let bytes: [UInt8]

  @available(macOS 26, iOS 26, *)
  static var suite: HPKE.Ciphersuite { .init(kem: .XWingMLKEM768X25519, kdf: .HKDF_SHA256, aead: .chaChaPoly) }

  func wrap(_ key: FileKey) throws(AgeError) -> Stanza {
    guard #available(macOS 26, iOS 26, *) else {
      throw AgeError(.unsupportedKey, "recipients that begin with age1pq1 need macOS 26 or iOS 26")
    }
    do {
      let recipient = try XWingMLKEM768X25519.PublicKey(rawRepresentation: bytes)
      var sender = try HPKE.Sender(recipientKey: recipient, ciphersuite: Self.suite, info: Self.info)
      let body = try sender.seal(key.secret.withUnsafeBytes { Data($0) })
      let share = String(decoding: Base64.encode(sender.encapsulatedKey), as: UTF8.self)
      return Stanza(kind: HybridIdentity.stanzaKind, arguments: [share], body: Array(body))
    } catch {
      throw AgeError(.invalidRecipient, "a recipient that begins with age1pq1 has no valid key: \(error)")
    }
  }
}
