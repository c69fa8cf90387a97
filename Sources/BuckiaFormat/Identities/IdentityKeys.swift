import BuckiaBytes
import Crypto

/// The secret half of a key: 32 bytes. It never shows in a message.
package struct PrivateKey: Equatable, Sendable, CustomStringConvertible, CustomReflectable {
  package static let byteCount = 32
  /// The secret.
  let bytes: [UInt8]

  init?(hex: String) {
    guard hex.utf8.count == 2 * Self.byteCount, let bytes = HexText.bytes(hex) else { return nil }
    self.bytes = bytes
  }

  /// A new one.
  ///
  /// - Parameter generator: A cryptographically secure generator.
  init(using generator: inout some RandomNumberGenerator) {
    bytes = (0..<Self.byteCount).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }

  package var description: String { "(secret)" }
  /// Nothing: a dump shows no secret either.
  package var customMirror: Mirror { Mirror(self, children: []) }
}

extension PrivateKey {
  /// The public half of an Ed25519 key.
  func signingKey() throws(IdentityError) -> SigningKey {
    do {
      let key = try Curve25519.Signing.PrivateKey(rawRepresentation: bytes)
      return SigningKey(checked: Array(key.publicKey.rawRepresentation))
    } catch {
      throw Self.isNoKey
    }
  }

  /// The public half of an X25519 key.
  func encryptionKey() throws(IdentityError) -> EncryptionKey {
    do {
      let key = try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: bytes)
      return EncryptionKey(checked: Array(key.publicKey.rawRepresentation))
    } catch {
      throw Self.isNoKey
    }
  }

  private static var isNoKey: IdentityError { IdentityError(.invalidFile, "it holds 32 bytes that are no key") }
}

/// A person's public Ed25519 key: 32 bytes ([RFC 8032](https://www.rfc-editor.org/rfc/rfc8032)).
package struct SigningKey: FixedBytes {
  /// 32
  package static let byteCount = 32
  /// The key.
  package let bytes: [UInt8]
  package init(checked bytes: [UInt8]) { self.bytes = bytes }
}

extension SigningKey {
  /// True if a signature is this key's over a message.
  package func hasSigned(_ message: [UInt8], _ signature: [UInt8]) -> Bool {
    do {
      return try Curve25519.Signing.PublicKey(rawRepresentation: bytes).isValidSignature(signature, for: message)
    } catch {
      // Not a point of the curve: no signature is by such a key.
      return false
    }
  }
}

/// A person's public X25519 key: 32 bytes ([RFC 7748](https://www.rfc-editor.org/rfc/rfc7748)).
package struct EncryptionKey: FixedBytes {
  /// 32
  package static let byteCount = 32
  /// The key.
  package let bytes: [UInt8]
  package init(checked bytes: [UInt8]) { self.bytes = bytes }
}

/// A short form of a person's keys for comparing them by voice or on paper: 20 letters and digits in groups of four.
///
/// The first 100 bits of SHA-256 over `buckia/fingerprint/v1\n`, the signing key and the encryption key, in the alphabet of
/// [RFC 4648](https://www.rfc-editor.org/rfc/rfc4648#section-6), in small letters: it has no 0, 1, 8 or 9, which read out loud or
/// written by hand pass for letters.
///
/// ```
/// mzxw-6ytb-oi5d-2qkr-7a3e
/// ```
public struct Fingerprint: Hashable, Sendable, CustomStringConvertible {
  /// The groups, with hyphens between them.
  public let description: String

  private static let prefix = Array("buckia/fingerprint/v1\n".utf8)
  private static let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)
  private static let groupCount = 5
  private static let groupLength = 4

  init(signing: SigningKey, encryption: EncryptionKey) {
    var bits = SHA256.hash(data: Self.prefix + signing.bytes + encryption.bytes).makeIterator()
    var buffer = 0
    var bitCount = 0
    let letters = (0..<(Self.groupCount * Self.groupLength)).map { _ in
      if bitCount < 5 {
        buffer = (buffer << 8 | Int(bits.next() ?? 0)) & 0xffff
        bitCount += 8
      }
      bitCount -= 5
      return Self.alphabet[buffer >> bitCount & 31]
    }
    description = Self.grouped(letters)
  }

  /// Reads a typed fingerprint, and ignores hyphens, spaces and case; nil for other text.
  public init?(_ text: some StringProtocol) {
    let letters = text.lowercased().utf8.filter { $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: " ") }
    guard letters.count == Self.groupCount * Self.groupLength, letters.allSatisfy(Self.alphabet.contains) else {
      return nil
    }
    description = Self.grouped(letters)
  }

  private static func grouped(_ letters: [UInt8]) -> String {
    stride(from: 0, to: letters.count, by: groupLength).map {
      String(decoding: letters[$0..<($0 + groupLength)], as: UTF8.self)
    }.joined(separator: "-")
  }
}
