import Crypto
import JWTKit

/// A key that shows who has signed a token. Each is good for one algorithm, so that nobody can have a public key taken for a shared secret.
public struct TokenVerificationKey: Sendable {
  /// Which key, where the issuer has several.
  public let id: String?
  let algorithm: SignatureAlgorithm
  private let verifier: any JWTAlgorithm

  init(id: String?, _ algorithm: SignatureAlgorithm, _ verifier: any JWTAlgorithm) {
    self.id = id
    self.algorithm = algorithm
    self.verifier = verifier
  }

  /// A shared secret, for HMAC with SHA-256: who can verify can sign, too.
  ///
  /// - Parameters:
  ///   - secret: At least 32 bytes.
  ///   - id: Which key.
  /// - Throws: `TokenError` with `invalidSetting`.
  public static func hmacSHA256(secret: [UInt8], id: String? = nil) async throws -> Self {
    try await TokenSigningKey.hmacSHA256(secret: secret, id: id).verificationKey
  }

  /// A public key for Ed25519.
  ///
  /// - Parameters:
  ///   - bytes: The 32 bytes of the key.
  ///   - id: Which key.
  /// - Throws: `TokenError` with `invalidSetting`.
  public static func ed25519(_ bytes: [UInt8], id: String? = nil) async throws -> Self {
    do {
      let key = EdDSA.PublicKey(backing: try Curve25519.Signing.PublicKey(rawRepresentation: bytes))
      return Self(id: id, .edDSA, try await JWTKeyCollection().add(eddsa: key).getKey())
    } catch { throw TokenError(.invalidSetting, "these bytes are no public key for Ed25519", cause: error) }
  }

  /// A public key for ECDSA with the curve P-256.
  ///
  /// - Parameters:
  ///   - pem: The key in PEM format.
  ///   - id: Which key.
  /// - Throws: `TokenError` with `invalidSetting`.
  public static func ecdsaP256(pem: String, id: String? = nil) async throws -> Self {
    do {
      return Self(id: id, .es256, try await JWTKeyCollection().add(ecdsa: try ES256PublicKey(pem: pem)).getKey())
    } catch {
      throw TokenError(.invalidSetting, "this is no public key for ECDSA with P-256 in PEM format", cause: error)
    }
  }

  /// Whether this key has signed bytes. A signature of another form is none.
  func hasSigned(_ bytes: [UInt8], _ signature: [UInt8]) -> Bool {
    do { return try verifier.verify(signature, signs: bytes) } catch { return false }
  }
}
