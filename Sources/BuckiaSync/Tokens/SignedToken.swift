import BuckiaBytes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Makes signed bearer tokens (JWT, RFC 7519) that carry their permissions. ``SignedTokenVerifier`` reads them.
///
/// ```swift
/// let key = try await TokenSigningKey.ed25519(seed: seed, id: "2026")
/// let factory = SignedTokenFactory(key: key, issuer: "https://share.example", audience: "storage.example")
/// let token = try factory.makeToken(AccessTokenOptions(.readingAll(writing: try RemotePath("7f3a/inbound")), name: "anna"))
/// ```
public struct SignedTokenFactory: Sendable {
  private let key: TokenSigningKey
  private let issuer: String
  private let audience: String
  private let clock: TokenClock

  /// Prepares a factory.
  ///
  /// - Parameters:
  ///   - key: What signs.
  ///   - issuer: Who issues the tokens (`iss`).
  ///   - audience: Who accepts them (`aud`).
  ///   - clock: What time it is.
  public init(key: TokenSigningKey, issuer: String, audience: String, clock: TokenClock = .system) {
    self.key = key
    self.issuer = issuer
    self.audience = audience
    self.clock = clock
  }

  /// The claim that holds the permissions.
  static let permissionsClaim = "buckia_permissions"
  /// Ten years, in seconds.
  private static let secondsLimit: Int64 = 10 * 366 * 86_400

  /// Creates a token. The name of the options is its subject (`sub`).
  public func makeToken(_ options: AccessTokenOptions) throws -> AccessToken {
    let now = clock.now()
    let expires = try options.expiry(from: now, limit: Self.secondsLimit)
    var claims = JSONObject()
    claims.append("iss", .string(issuer))
    claims.append("sub", .string(options.name))
    claims.append("aud", .string(audience))
    claims.append("iat", .integer(now / 1000))
    claims.append("nbf", .integer(now / 1000))
    claims.append("exp", .integer(expires / 1000))
    claims.append("jti", .string(SecretText.random().value))
    claims.append(Self.permissionsClaim, options.permissions.document)
    return AccessToken(
      SecretText(try CompactToken.text(claims, signedBy: key)), issued: now, expires: expires / 1000 * 1000)
  }
}

extension SignedTokenFactory {
  /// Something that renews the same token again and again, for a ``TokenManager``.
  public func source(_ options: AccessTokenOptions) -> some TokenSource {
    FunctionTokenSource { _ in try makeToken(options) }
  }
}

extension SecretText {
  /// Unguessable text: 256 bits from the system's secure generator, encoded for use in addresses.
  static func random() -> SecretText {
    var generator = SystemRandomNumberGenerator()
    return SecretText(Base64URL.text((0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) }))
  }
}

/// Reads tokens of a ``SignedTokenFactory``: who has signed them, for whom, until when, and what they allow.
public struct SignedTokenVerifier: Sendable {
  /// What a token says that was accepted.
  public struct Grant: Sendable, Hashable {
    /// Whose token it is.
    public let subject: String
    /// What they may do.
    public let permissions: StoragePermissions
    /// Until when, in milliseconds since 1970.
    public let expires: Int64
    /// What names this one token, for lists of those that were withdrawn; nil if nothing does.
    public let id: String?
  }

  private let keys: [TokenVerificationKey]
  private let issuer: String
  private let audience: String
  private let leeway: Int64
  private let clock: TokenClock

  /// Prepares a verifier.
  ///
  /// - Parameters:
  ///   - keys: The issuer's keys.
  ///   - issuer: Who has to have issued the tokens.
  ///   - audience: For whom they have to be.
  ///   - leewaySeconds: How far the issuer's clock may differ, in seconds.
  ///   - clock: What time it is.
  public init(
    keys: [TokenVerificationKey], issuer: String, audience: String, leewaySeconds: Int64 = 60,
    clock: TokenClock = .system
  ) {
    self.keys = keys
    self.issuer = issuer
    self.audience = audience
    leeway = max(0, min(leewaySeconds, 3600)) * 1000
    self.clock = clock
  }

  /// Reads a token.
  ///
  /// - Parameter text: The token, as it came.
  /// - Throws: `StorageError` with `invalidToken`, `expired` or `notYetValid`.
  public func verify(_ text: String) throws(StorageError) -> Grant {
    let token = try CompactToken(text)
    try token.require(signatureBy: keys)
    let expires = try token.claims.require(issuer: issuer, audience: audience, now: clock.now(), leeway: leeway)
    guard let subject = token.claims.text("sub") else { throw CompactToken.fault("it does not say whose it is") }
    guard let document = token.claims.object[SignedTokenFactory.permissionsClaim],
      let permissions = StoragePermissions(document)
    else { throw CompactToken.fault("its permissions are not understood") }
    return Grant(subject: subject, permissions: permissions, expires: expires, id: token.claims.text("jti"))
  }
}

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
  /// - Throws: `StorageError` with `invalidToken`.
  init(_ text: String) throws(StorageError) {
    guard text.utf8.count <= Self.byteLimit else { throw Self.fault("it is too long") }
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3 else { throw Self.fault("it does not consist of three parts") }
    let header = try Self.object(parts[0], "header")
    guard case .string(let name)? = header["alg"] else { throw Self.fault("it does not say how it is signed") }
    guard let algorithm = SignatureAlgorithm(rawValue: name) else {
      throw Self.fault(
        name.lowercased() == "none"
          ? "it is not signed" : "it is signed in a way that is not known (\(name.shown))")
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
    claims = TokenClaims(object: try Self.object(parts[1], "claims"))
    signed = Array(parts[0]) + [UInt8(ascii: ".")] + Array(parts[1])
  }

  static func fault(_ reason: String, _ cause: (any Error)? = nil) -> StorageError {
    StorageError(.invalidToken, "the token was not accepted: \(reason)", cause: cause)
  }

  private static func object(_ part: Substring.UTF8View, _ name: String) throws(StorageError) -> JSONObject {
    guard let bytes = Base64URL.bytes(Substring(part)) else { throw fault("its \(name) is damaged") }
    do {
      if case .object(let object) = try JSONParser.parse(bytes, numbers: .all) { return object }
    } catch { throw fault("its \(name) is no JSON (\(error))", error) }
    throw fault("its \(name) is no JSON object")
  }

  /// Checks the signature with the keys of the issuer that are for its algorithm.
  ///
  /// - Throws: `StorageError` with `invalidToken`.
  func require(signatureBy keys: [TokenVerificationKey]) throws(StorageError) {
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
  static func text(_ claims: JSONObject, signedBy key: TokenSigningKey) throws(StorageError) -> String {
    var header = JSONObject([.init("alg", .string(key.algorithm.rawValue)), .init("typ", "JWT")])
    if let id = key.id { header.append("kid", .string(id)) }
    let signed =
      Base64URL.text(JSONValue.object(header).bytes()) + "." + Base64URL.text(JSONValue.object(claims).bytes())
    return "\(signed).\(Base64URL.text(try key.signature(of: Array(signed.utf8))))"
  }
}

/// What a signed token claims (RFC 7519, section 4.1).
struct TokenClaims: Sendable {
  let object: JSONObject

  /// A claim's text; nil if it is something else.
  func text(_ name: String) -> String? { object.text(name) }

  /// For whom the token is: one text, or a list of them.
  var audiences: [String] {
    switch object["aud"] {
    case .string(let text)?: [text]
    case .array(let items)?: items.compactMap { if case .string(let text) = $0 { text } else { nil } }
    default: []
    }
  }

  /// The latest time that tokens have, in seconds since 1970: the year 9999. So milliseconds fit 64 bits.
  private static let latest: Int64 = 253_402_300_799

  /// A time in milliseconds since 1970; nil if there is none.
  ///
  /// - Throws: `StorageError` with `invalidToken` when it is no time.
  func time(_ name: String) throws(StorageError) -> Int64? {
    let seconds: Int64?
    switch object[name] {
    case nil: return nil
    case .integer(let number)?: seconds = number
    case .real(let number)?: seconds = Int64(exactly: number.rounded(.down))
    default: seconds = nil
    }
    guard let seconds, (0...Self.latest).contains(seconds) else { throw CompactToken.fault("\"\(name)\" is no time") }
    return seconds * 1000
  }

  /// Checks issuer, audience and times.
  ///
  /// - Parameters:
  ///   - now: The present time in milliseconds since 1970.
  ///   - leeway: How far the issuer's clock may differ, in milliseconds.
  /// - Returns: When the token ends, in milliseconds since 1970.
  /// - Throws: `StorageError` with `invalidToken`, `expired` or `notYetValid`.
  @discardableResult
  func require(issuer: String, audience: String, now: Int64, leeway: Int64) throws(StorageError) -> Int64 {
    guard text("iss") == issuer else { throw CompactToken.fault("another than \(issuer) has issued it") }
    guard audiences.contains(audience) else { throw CompactToken.fault("it is for somebody else") }
    guard let expires = try time("exp") else { throw CompactToken.fault("it does not say when it ends") }
    guard now < expires + leeway else {
      throw StorageError(.expired, "the token has expired; get a new one, and check the clock of this device")
    }
    let begins = try time("nbf") ?? 0
    let issued = try time("iat") ?? 0
    guard max(begins, issued) <= now + leeway else {
      throw StorageError(
        .notYetValid, "the token is not valid yet; the clock of this device, or the issuer's, is wrong")
    }
    return expires
  }
}

/// Base 64 for addresses, without padding (RFC 4648, section 5).
package enum Base64URL {
  /// The text of bytes.
  package static func text(_ bytes: [UInt8]) -> String {
    let text = Data(bytes).base64EncodedString().utf8.compactMap { byte -> UInt8? in
      switch byte {
      case UInt8(ascii: "+"): UInt8(ascii: "-")
      case UInt8(ascii: "/"): UInt8(ascii: "_")
      case UInt8(ascii: "="): nil
      default: byte
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// The bytes of text; nil if it is none.
  package static func bytes(_ text: some StringProtocol) -> [UInt8]? {
    var standard = text.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "-"): UInt8(ascii: "+")
      case UInt8(ascii: "_"): UInt8(ascii: "/")
      default: byte
      }
    }
    while !standard.count.isMultiple(of: 4) { standard.append(UInt8(ascii: "=")) }
    return Data(base64Encoded: String(decoding: standard, as: UTF8.self)).map { Array($0) }
  }
}
