import BuckiaBytes

/// Makes signed bearer tokens (JWT, RFC 7519) that carry their permissions. ``SignedTokenVerifier`` reads them.
///
/// ```swift
/// let key = try await TokenSigningKey.ed25519(seed: seed, id: "2026")
/// let factory = SignedTokenFactory(key: key, issuer: "https://share.example", audience: "storage.example")
/// let token = try factory.makeToken(AccessTokenOptions(.readingAll(writing: try RemotePath("7f3a/inbound")), name: "anna"))
/// ```
public struct SignedTokenFactory: TokenFactory {
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

  /// Makes a token. The name of the options is its subject (`sub`).
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
    claims.append("jti", .string(RandomText.make()))
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

/// Text that nobody can guess.
enum RandomText {
  /// 256 bits from the system's generator, which is one for keys, as text for addresses.
  static func make() -> String {
    var generator = SystemRandomNumberGenerator()
    return Base64URL.text((0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) })
  }
}
