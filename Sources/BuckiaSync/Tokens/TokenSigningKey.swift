import Crypto
import JWTKit

/// A key that signs tokens.
public struct TokenSigningKey: Sendable {
  /// Which key, where those who verify know several.
  public let id: String?
  let algorithm: SignatureAlgorithm
  private let signer: any JWTAlgorithm
  /// The key that shows what this one has signed. For a shared secret it is the secret itself.
  public let verificationKey: TokenVerificationKey

  private init(
    _ algorithm: SignatureAlgorithm, _ signer: any JWTAlgorithm, id: String?, verifier: (any JWTAlgorithm)? = nil
  ) {
    self.id = id
    self.algorithm = algorithm
    self.signer = signer
    verificationKey = TokenVerificationKey(id: id, algorithm, verifier ?? signer)
  }

  /// A shared secret, for HMAC with SHA-256.
  ///
  /// - Parameters:
  ///   - secret: At least 32 bytes (RFC 7518, section 3.2).
  ///   - id: Which key.
  /// - Throws: `StorageError` with `invalidSetting`.
  public static func hmacSHA256(secret: [UInt8], id: String? = nil) async throws -> Self {
    guard secret.count >= SHA256.byteCount else {
      throw StorageError(
        .invalidSetting, "a secret that signs tokens has at least 32 bytes; this one has \(secret.count)")
    }
    let keys = await JWTKeyCollection().add(hmac: HMACKey(from: secret), digestAlgorithm: .sha256)
    do { return Self(.hs256, try await keys.getKey(), id: id) } catch {
      throw StorageError(.invalidSetting, "this secret cannot sign tokens", cause: error)
    }
  }

  /// A private key for Ed25519.
  ///
  /// - Parameters:
  ///   - seed: The 32 bytes of the key.
  ///   - id: Which key.
  /// - Throws: `StorageError` with `invalidSetting`.
  public static func ed25519(seed: [UInt8], id: String? = nil) async throws -> Self {
    do {
      let key = EdDSA.PrivateKey(backing: try Curve25519.Signing.PrivateKey(rawRepresentation: seed))
      let signer = try await JWTKeyCollection().add(eddsa: key).getKey()
      let verifier = try await JWTKeyCollection().add(eddsa: key.publicKey).getKey()
      return Self(.edDSA, signer, id: id, verifier: verifier)
    } catch { throw StorageError(.invalidSetting, "these bytes are no private key for Ed25519", cause: error) }
  }

  /// A private key for ECDSA with the curve P-256.
  ///
  /// - Parameters:
  ///   - pem: The key in PEM format.
  ///   - id: Which key.
  /// - Throws: `StorageError` with `invalidSetting`.
  public static func ecdsaP256(pem: SecretText, id: String? = nil) async throws -> Self {
    do {
      let key = try ES256PrivateKey(pem: pem.value)
      let signer = try await JWTKeyCollection().add(ecdsa: key).getKey()
      let verifier = try await JWTKeyCollection().add(ecdsa: key.publicKey).getKey()
      return Self(.es256, signer, id: id, verifier: verifier)
    } catch {
      throw StorageError(.invalidSetting, "this is no private key for ECDSA with P-256 in PEM format", cause: error)
    }
  }

  func signature(of bytes: [UInt8]) throws(StorageError) -> [UInt8] {
    do { return try signer.sign(bytes) } catch {
      throw StorageError(.invalidSetting, "the key cannot sign tokens", cause: error)
    }
  }
}

extension TokenSigningKey: CustomStringConvertible, CustomReflectable {
  /// The id and the algorithm: keys are not printed.
  public var description: String { "\(algorithm.rawValue) key\(id.map { " \($0)" } ?? "")" }
  /// Shows the id and the algorithm alone.
  public var customMirror: Mirror { Mirror(self, children: ["id": id as Any, "algorithm": algorithm.rawValue]) }
}

extension TokenVerificationKey: CustomStringConvertible, CustomReflectable {
  /// The id and the algorithm: a shared secret is not printed.
  public var description: String { "\(algorithm.rawValue) key\(id.map { " \($0)" } ?? "")" }
  /// Shows the id and the algorithm alone.
  public var customMirror: Mirror { Mirror(self, children: ["id": id as Any, "algorithm": algorithm.rawValue]) }
}

/// A key that verifies the signature of a token. Each is for one algorithm: a public key cannot pass for a shared
/// secret.
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
  /// - Throws: `StorageError` with `invalidSetting`.
  public static func hmacSHA256(secret: [UInt8], id: String? = nil) async throws -> Self {
    try await TokenSigningKey.hmacSHA256(secret: secret, id: id).verificationKey
  }

  /// A public key for Ed25519.
  ///
  /// - Parameters:
  ///   - bytes: The 32 bytes of the key.
  ///   - id: Which key.
  /// - Throws: `StorageError` with `invalidSetting`.
  public static func ed25519(_ bytes: [UInt8], id: String? = nil) async throws -> Self {
    do {
      let key = EdDSA.PublicKey(backing: try Curve25519.Signing.PublicKey(rawRepresentation: bytes))
      return Self(id: id, .edDSA, try await JWTKeyCollection().add(eddsa: key).getKey())
    } catch { throw StorageError(.invalidSetting, "these bytes are no public key for Ed25519", cause: error) }
  }

  /// A public key for ECDSA with the curve P-256.
  ///
  /// - Parameters:
  ///   - pem: The key in PEM format.
  ///   - id: Which key.
  /// - Throws: `StorageError` with `invalidSetting`.
  public static func ecdsaP256(pem: String, id: String? = nil) async throws -> Self {
    do {
      return Self(id: id, .es256, try await JWTKeyCollection().add(ecdsa: try ES256PublicKey(pem: pem)).getKey())
    } catch {
      throw StorageError(.invalidSetting, "this is no public key for ECDSA with P-256 in PEM format", cause: error)
    }
  }

  /// True if this key has signed bytes. A signature of another form is none.
  func hasSigned(_ bytes: [UInt8], _ signature: [UInt8]) -> Bool {
    do { return try verifier.verify(signature, signs: bytes) } catch { return false }
  }
}

/// How a token is signed (RFC 7518, section 3.1; RFC 8037). `none` is not one of them.
enum SignatureAlgorithm: String, Sendable, CaseIterable {
  case hs256 = "HS256"
  case es256 = "ES256"
  case es384 = "ES384"
  case es512 = "ES512"
  case rs256 = "RS256"
  case rs384 = "RS384"
  case rs512 = "RS512"
  case ps256 = "PS256"
  case ps384 = "PS384"
  case ps512 = "PS512"
  case edDSA = "EdDSA"
}
