extension OAuthClient {
  /// Checks an ID token (OpenID Connect Core 1.0, section 3.1.3.7).
  ///
  /// - Parameters:
  ///   - text: The token.
  ///   - nonce: What the sign-in has sent; nil when there was no browser.
  /// - Throws: `TokenError` with `invalidToken`, `expired` or `notYetValid`.
  func identity(_ text: String, nonce: String?) async throws -> SignedInIdentity {
    let token = try CompactToken(text)
    // A shared secret is none in an app that people have: only the server's own keys count.
    guard token.algorithm != .hs256 else { throw CompactToken.fault("it is not signed with a key of the server") }
    try await requireSignature(token)
    let claims = token.claims
    try claims.require(
      issuer: try await metadata().issuer, audience: configuration.clientID, now: clock.now(),
      leeway: max(0, min(configuration.leewaySeconds, 3600)) * 1000)
    let party = claims.text("azp")
    guard party == configuration.clientID || party == nil && claims.object["azp"] == nil && claims.audiences.count == 1
    else {
      throw CompactToken.fault("it is for another app, too")
    }
    guard nonce == nil || claims.text("nonce") == nonce else {
      throw TokenError(.wrongState, "the answer belongs to another sign-in; it was not accepted. Sign in again")
    }
    guard let subject = claims.text("sub"), !subject.isEmpty else {
      throw CompactToken.fault("it does not say who has signed in")
    }
    return SignedInIdentity(
      issuer: try await metadata().issuer, subject: subject, email: claims.text("email"), name: claims.text("name"))
  }

  private func requireSignature(_ token: CompactToken) async throws {
    do {
      try token.require(signatureBy: try await verificationKeys(try await webKeys(), for: token))
    } catch let error as TokenError where error.code == .invalidToken {
      // The server may have new keys. Nobody can make us ask more than once for a token.
      try token.require(signatureBy: try await verificationKeys(try await webKeys(again: true), for: token))
    }
  }

  private func verificationKeys(_ keys: [JSONWebKey], for token: CompactToken) async throws -> [TokenVerificationKey] {
    var found: [TokenVerificationKey] = []
    for key in keys where token.keyID == nil || key.id == nil || key.id == token.keyID {
      if let usable = try await key.verificationKey(for: token.algorithm) { found.append(usable) }
    }
    return found
  }
}
