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
    /// What names this one token, for lists of those that were withdrawn; nil when nothing does.
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
  /// - Throws: `TokenError` with `invalidToken`, `expired` or `notYetValid`.
  public func verify(_ text: String) throws(TokenError) -> Grant {
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
