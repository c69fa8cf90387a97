import BuckiaBytes
import JWTKit

/// A public key of a server (RFC 7517; RFC 7518, section 6).
struct JSONWebKey: Sendable {
  private let members: JSONObject
  private let origin: String

  var id: String? { members.text("kid") }

  /// How many keys of a server are looked at.
  private static let countLimit = 100

  /// The keys of a document that are there to verify signatures.
  ///
  /// - Throws: `StorageError` with `invalidAnswer`.
  static func all(in answer: JSONAnswer) throws(StorageError) -> [JSONWebKey] {
    guard case .array(let items)? = answer.object["keys"], items.count <= countLimit else { throw answer.fault("keys") }
    var keys: [JSONWebKey] = []
    for item in items {
      guard case .object(let members) = item else { throw answer.fault("keys") }
      let key = JSONWebKey(members: members, origin: answer.origin)
      if key.text("use") ?? "sig" == "sig" { keys.append(key) }
    }
    return keys
  }

  private func text(_ name: String) -> String? { members.text(name) }

  /// The key for an algorithm; nil if it is not for that. The key's own type decides, never what a token says, so a public key is no shared secret.
  ///
  /// - Throws: `StorageError` with `invalidAnswer` when it is damaged.
  func verificationKey(for algorithm: SignatureAlgorithm) async throws -> TokenVerificationKey? {
    if let own = text("alg"), own != algorithm.rawValue { return nil }
    do {
      guard let verifier = try await verifier(for: algorithm) else { return nil }
      return TokenVerificationKey(id: id, algorithm, verifier)
    } catch {
      throw StorageError(.invalidAnswer, "\(origin) has a damaged key; the sign-in was not accepted", cause: error)
    }
  }

  private func verifier(for algorithm: SignatureAlgorithm) async throws -> (any JWTAlgorithm)? {
    let keys = JWTKeyCollection()
    switch (algorithm, text("kty"), text("crv")) {
    case (.rs256, "RSA", _): await keys.add(rsa: try rsaKey(), digestAlgorithm: .sha256)
    case (.rs384, "RSA", _): await keys.add(rsa: try rsaKey(), digestAlgorithm: .sha384)
    case (.rs512, "RSA", _): await keys.add(rsa: try rsaKey(), digestAlgorithm: .sha512)
    case (.ps256, "RSA", _): await keys.add(pss: try rsaKey(), digestAlgorithm: .sha256)
    case (.ps384, "RSA", _): await keys.add(pss: try rsaKey(), digestAlgorithm: .sha384)
    case (.ps512, "RSA", _): await keys.add(pss: try rsaKey(), digestAlgorithm: .sha512)
    case (.es256, "EC", "P-256"): await keys.add(ecdsa: try ES256PublicKey(parameters: point))
    case (.es384, "EC", "P-384"): await keys.add(ecdsa: try ES384PublicKey(parameters: point))
    case (.es512, "EC", "P-521"): await keys.add(ecdsa: try ES512PublicKey(parameters: point))
    case (.edDSA, "OKP", "Ed25519"): await keys.add(eddsa: try EdDSA.PublicKey(x: text("x") ?? "", curve: .ed25519))
    default: return nil
    }
    return try await keys.getKey()
  }

  private func rsaKey() throws -> Insecure.RSA.PublicKey {
    try Insecure.RSA.PublicKey(modulus: text("n") ?? "", exponent: text("e") ?? "")
  }

  private var point: ECDSAParameters { (x: text("x") ?? "", y: text("y") ?? "") }
}
