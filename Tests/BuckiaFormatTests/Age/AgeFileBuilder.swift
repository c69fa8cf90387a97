import Crypto
import Foundation

/// Writes files in age's format, well-formed or not, without using any of the tested code.
///
/// Each part can be replaced; the seal covers the actual bytes, so that a test fails by the rule and not by the seal.
struct AgeFileBuilder {
  var intro = "age-encryption.org/v1\n"
  /// The header between the first line and the last, line feeds included.
  var stanzas = ""
  var end = "---"
  /// The text after the three dashes; nil for the right seal.
  var seal: String?
  var fileKey = Data((0..<16).map { UInt8($0) })
  var nonce = Data((0..<16).map { UInt8(100 + $0) })
  /// The plain chunks, each with its index and whether it is marked as the last.
  var chunks: [(plain: Data, index: UInt8, isLast: Bool)] = [(Data("hello".utf8), 0, true)]
  var trailing = Data()

  /// The identity's secret bytes for which X25519 stanzas are made.
  static let secret = Data([UInt8](repeating: 0x42, count: 32))
  static let passphrase = "swordfish"

  /// A file for ``secret``.
  static func x25519() throws -> AgeFileBuilder {
    var file = AgeFileBuilder()
    file.stanzas = try file.x25519Stanza()
    return file
  }

  /// A file for ``passphrase``.
  static func scrypt() throws -> AgeFileBuilder {
    var file = AgeFileBuilder()
    file.stanzas = file.scryptStanza
    return file
  }

  /// Unpadded base64.
  static func base64(_ data: Data) -> String {
    data.base64EncodedString().replacingOccurrences(of: "=", with: "")
  }

  func x25519Parts() throws -> (share: Data, body: Data) {
    let recipient = try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: Self.secret).publicKey
    let ephemeral = try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: Data([UInt8](repeating: 7, count: 32)))
    let share = ephemeral.publicKey.rawRepresentation
    let key = try ephemeral.sharedSecretFromKeyAgreement(with: recipient).hkdfDerivedSymmetricKey(
      using: SHA256.self, salt: share + recipient.rawRepresentation,
      sharedInfo: Data("age-encryption.org/v1/X25519".utf8), outputByteCount: 32)
    return (share, try Self.wrap(fileKey, key))
  }

  func x25519Stanza(kind: String = "X25519") throws -> String {
    let (share, body) = try x25519Parts()
    return "-> \(kind) \(Self.base64(share))\n\(Self.base64(body))\n"
  }

  /// Made with Python's `hashlib.scrypt` from the passphrase, N = 2¹⁰, and the builder's file key.
  var scryptStanza: String { "-> scrypt \(Self.scryptSalt) 10\n\(Self.scryptBody)\n" }
  static let scryptSalt = "AAAAAAAAAAAAAAAAAAAAAA"
  static let scryptBody = "92l77+8jNBRVFOIE9aKLpk2luAFDzoh4RS7e4lihgJQ"

  static func wrap(_ fileKey: Data, _ key: SymmetricKey) throws -> Data {
    let box = try ChaChaPoly.seal(fileKey, using: key, nonce: .init(data: Data(count: 12)))
    return box.ciphertext + box.tag
  }

  var bytes: [UInt8] {
    get throws {
      let key = SymmetricKey(data: fileKey)
      let header = Data((intro + stanzas + end).utf8)
      let headerKey = HKDF<SHA256>.deriveKey(
        inputKeyMaterial: key, info: Data("header".utf8), outputByteCount: 32)
      let code = Data(HMAC<SHA256>.authenticationCode(for: header, using: headerKey))
      let payloadKey = HKDF<SHA256>.deriveKey(
        inputKeyMaterial: key, salt: nonce, info: Data("payload".utf8), outputByteCount: 32)
      var bytes = header + Data((seal ?? " \(Self.base64(code))\n").utf8) + nonce
      for chunk in chunks {
        let nonce = Data(count: 10) + [chunk.index, chunk.isLast ? 1 : 0]
        let box = try ChaChaPoly.seal(chunk.plain, using: payloadKey, nonce: .init(data: nonce))
        bytes += box.ciphertext + box.tag
      }
      return [UInt8](bytes + trailing)
    }
  }
}
