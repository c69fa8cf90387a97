import Crypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The signature of a manifest: Ed25519 over `buckia/manifest/v1\n` and the manifest's exact bytes.
///
/// The prefix keeps the signature from being used for anything else that the same key signs.
/// See [RFC 8032](https://www.rfc-editor.org/rfc/rfc8032).
enum ManifestSignature {
  static let byteCount = 64
  private static let prefix = Array("buckia/manifest/v1\n".utf8)

  static func message(_ manifest: [UInt8]) -> [UInt8] { prefix + manifest }

  /// Whether `signature` is the key's over the manifest.
  static func isValid(_ signature: [UInt8], of manifest: [UInt8], by key: SigningKey) -> Bool {
    do {
      let publicKey = try Curve25519.Signing.PublicKey(rawRepresentation: key.bytes)
      return publicKey.isValidSignature(signature, for: message(manifest))
    } catch {
      // Not a point of the curve: no signature is by such a key.
      return false
    }
  }
}

/// Signs manifests with a person's private key.
package struct ManifestSigner: Sendable {
  /// The public half, which goes into the manifest as `sender.identity`.
  package let identity: SigningKey
  private let key: Curve25519.Signing.PrivateKey

  /// Takes a private key.
  ///
  /// - Parameter seed: The 32 bytes of an Ed25519 private key.
  /// - Throws: `DiffFileError` with code `badSignature` when they are no key.
  package init(seed: [UInt8]) throws(DiffFileError) {
    do {
      key = try Curve25519.Signing.PrivateKey(rawRepresentation: seed)
    } catch {
      throw DiffFileError(.badSignature, "the signing key is no Ed25519 key of 32 bytes")
    }
    guard let identity = SigningKey(Array(key.publicKey.rawRepresentation)) else {
      throw DiffFileError(.badSignature, "the signing key has no public half of 32 bytes")
    }
    self.identity = identity
  }

  /// Signs as a person.
  ///
  /// - Throws: `DiffFileError` with code `badSignature` when the identity holds no key.
  package init(_ identity: Identity) throws(DiffFileError) { try self.init(seed: identity.signingSeed) }

  func signature(of manifest: [UInt8]) throws(DiffFileError) -> [UInt8] {
    do {
      return Array(try key.signature(for: ManifestSignature.message(manifest)))
    } catch {
      throw DiffFileError(.badSignature, "the manifest cannot be signed: \(error)")
    }
  }
}
