import BuckiaBytes

/// A signed token in its compact form: header, claims and signature with dots in between (RFC 7515, section 7.1; RFC 7519).
struct CompactToken: Sendable {
  let algorithm: SignatureAlgorithm
  let keyID: String?
  let claims: TokenClaims
  private let signed: [UInt8]
  private let signature: [UInt8]

  /// How long a token may be, in bytes.
  private static let byteLimit = 64 << 10

  /// Takes a token apart; nothing in it is to be trusted before ``isSigned(by:)``.
  ///
  /// - Throws: `TokenError` with `invalidToken`.
  init(_ text: String) throws(TokenError) {
    guard text.utf8.count <= Self.byteLimit else { throw Self.fault("it is too long") }
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3 else { throw Self.fault("it does not consist of three parts") }
    let header = try Self.object(parts[0], "header")
    guard case .string(let name)? = header["alg"] else { throw Self.fault("it does not say how it is signed") }
    guard let algorithm = SignatureAlgorithm(rawValue: name) else {
      throw Self.fault(
        name.lowercased() == "none"
          ? "it is not signed" : "it is signed in a way that is not known (\(ShownText.shown(name)))")
    }
    // What a token wants to be critical has to be understood, and nothing of the kind is (RFC 7515, section 4.1.11).
    guard header["crit"] == nil else { throw Self.fault("it demands an extension that is not known") }
    switch header["kid"] {
    case nil: keyID = nil
    case .string(let id)?: keyID = id
    default: throw Self.fault("it names its key in a way that is not known")
    }
    guard let signature = Base64URL.bytes(Substring(parts[2])), !signature.isEmpty else {
      throw Self.fault("its signature is damaged")
    }
    self.algorithm = algorithm
    self.signature = signature
    claims = TokenClaims(try Self.object(parts[1], "claims"))
    signed = Array(parts[0]) + [UInt8(ascii: ".")] + Array(parts[1])
  }

  static func fault(_ reason: String, _ cause: (any Error)? = nil) -> TokenError {
    TokenError(.invalidToken, "the token was not accepted: \(reason)", cause: cause)
  }

  private static func object(_ part: Substring.UTF8View, _ name: String) throws(TokenError) -> JSONObject {
    guard let bytes = Base64URL.bytes(Substring(part)) else { throw fault("its \(name) is damaged") }
    do {
      if case .object(let object) = try JSONParser.parse(bytes, numbers: .all) { return object }
    } catch { throw fault("its \(name) is no JSON (\(error))", error) }
    throw fault("its \(name) is no JSON object")
  }

  /// Checks the signature with the keys of the issuer that are for its algorithm.
  ///
  /// - Throws: `TokenError` with `invalidToken`.
  func require(signatureBy keys: [TokenVerificationKey]) throws(TokenError) {
    let fitting = keys.filter { $0.algorithm == algorithm && ($0.id == nil || keyID == nil || $0.id == keyID) }
    guard !fitting.isEmpty else {
      throw Self.fault(
        "it is signed with a key, or in a way (\(algorithm.rawValue)), that does not belong to its issuer")
    }
    guard fitting.contains(where: { $0.hasSigned(signed, signature) }) else {
      throw Self.fault("its signature is wrong")
    }
  }

  /// Signs claims.
  static func text(_ claims: JSONObject, signedBy key: TokenSigningKey) throws(TokenError) -> String {
    var header = JSONObject([.init("alg", .string(key.algorithm.rawValue)), .init("typ", "JWT")])
    if let id = key.id { header.append("kid", .string(id)) }
    let signed =
      Base64URL.text(JSONValue.object(header).bytes()) + "." + Base64URL.text(JSONValue.object(claims).bytes())
    return "\(signed).\(Base64URL.text(try key.signature(of: Array(signed.utf8))))"
  }
}
