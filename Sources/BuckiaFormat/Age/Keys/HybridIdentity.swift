import BuckiaBytes
import Crypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The private key of a ``HybridRecipient``: the 32 bytes that X-Wing makes both of its keys from.
struct HybridIdentity: IdentityKind {
  static let stanzaKind = "mlkem768x25519"
  /// What the text begins with, in small letters.
  static let prefix = "age-secret-key-pq-"
  /// How many bytes a sender's share has.
  static let shareByteCount = 1120

  private let seed: SymmetricKey

  /// A new key.
  init() { seed = SymmetricKey(size: .bits256) }

  /// Takes the bytes of a key; nil unless there are 32.
  init?(_ bytes: [UInt8]) {
    guard bytes.count == 32 else { return nil }
    seed = SymmetricKey(data: bytes)
  }

  var bytes: [UInt8] { seed.withUnsafeBytes { Array($0) } }

  /// The public key.
  ///
  /// - Throws: `AgeError` with code `unsupportedKey`.
  func recipient() throws(AgeError) -> HybridRecipient {
    guard #available(macOS 26, iOS 26, *) else {
      throw AgeError(.unsupportedKey, "identities that begin with AGE-SECRET-KEY-PQ-1 need macOS 26 or iOS 26")
    }
    do { return HybridRecipient(bytes: Array(try privateKey().publicKey.rawRepresentation)) } catch {
      throw AgeError(.invalidIdentity, "an identity that begins with AGE-SECRET-KEY-PQ-1 has no valid key: \(error)")
    }
  }

  @available(macOS 26, iOS 26, *)
  private func privateKey() throws -> XWingMLKEM768X25519.PrivateKey {
    try XWingMLKEM768X25519.PrivateKey(seedRepresentation: bytes, publicKey: nil)
  }

  static func check(_ stanza: Stanza) throws(ByteStreamError) {
    guard stanza.arguments.count == 1, bytes(stanza.arguments[0], count: shareByteCount) != nil else {
      throw malformed("does not name one share of \(shareByteCount) bytes")
    }
    try checkBody(of: stanza)
  }

  func unwrap(_ stanza: Stanza) throws(ByteStreamError) -> FileKey? {
    guard #available(macOS 26, iOS 26, *) else {
      throw ByteStreamError(
        .unsupportedEncryption, "it is encrypted for quantum-safe keys, which need macOS 26 or iOS 26")
    }
    guard let share = Self.bytes(stanza.arguments[0], count: Self.shareByteCount) else { return nil }
    var recipient: HPKE.Recipient
    do {
      recipient = try HPKE.Recipient(
        privateKey: privateKey(), ciphersuite: HybridRecipient.suite, info: HybridRecipient.info,
        encapsulatedKey: Data(share))
    } catch { throw Self.malformed("has a share that is none") }
    do { return FileKey(SymmetricKey(data: try recipient.open(Data(stanza.body)))) } catch {
      // A share for somebody else yields a key, too, which opens nothing.
      return nil
    }
  }
}
