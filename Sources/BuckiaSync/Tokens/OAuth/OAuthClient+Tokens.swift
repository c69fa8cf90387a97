import BuckiaBytes
import JWTKit

extension OAuthClient {
  /// What renews tokens of this client, for a ``TokenManager``.
  public nonisolated var source: some TokenSource {
    FunctionTokenSource { old in
      guard let old else { throw StorageError(.noToken, "there is no sign-in yet; sign in") }
      return try await self.refreshed(old)
    }
  }

  /// Gets a new token for an old one (RFC 6749, section 6).
  ///
  /// - Parameter old: The token. When the server gives a new refresh token with the new one, the old one is good no more.
  /// - Throws: `StorageError` with `signInEnded` when the person has to sign in again; `CancellationError`.
  public func refreshed(_ old: AccessToken) async throws -> AccessToken {
    guard let refreshToken = old.refreshToken else {
      throw StorageError(
        .signInEnded, "the server has given nothing that renews the token (scope offline_access); sign in again")
    }
    var form = [("grant_type", "refresh_token"), ("refresh_token", refreshToken.value)]
    if let resource = configuration.resource { form.append(("resource", resource)) }
    switch try await send(form, to: try await metadata().tokenEndpoint) {
    case .refused(let refusal): throw refusal.error
    case .accepted(let answer):
      // An ID token that comes along is not looked at: the person is known already, and nothing may stop the new refresh token from being kept.
      var token = try token(answer)
      token.refreshToken = token.refreshToken ?? refreshToken
      if token.scopes.isEmpty { token.scopes = old.scopes }
      return token
    }
  }

  /// Withdraws a token, and what renews it (RFC 7009): a sign-out.
  ///
  /// - Throws: `StorageError` with `unsupported` when the server withdraws no tokens: it ends by itself then; `CancellationError`.
  public func revoke(_ token: AccessToken) async throws {
    guard let endpoint = try await metadata().revocationEndpoint else {
      throw StorageError(.unsupported, "\(configuration.issuer) withdraws no tokens; this one ends by itself")
    }
    // Withdrawing the refresh token ends everything that came from it, with servers that can do it.
    var tokens = [(token.value, "access_token")]
    if let refreshToken = token.refreshToken { tokens.insert((refreshToken, "refresh_token"), at: 0) }
    for (value, kind) in tokens {
      let response = try await post([("token", value.value), ("token_type_hint", kind)], to: endpoint)
      // The body says nothing, and need not be there.
      guard response.status != 200 else { continue }
      throw try OAuthRefusal(try await JSONAnswer(response, from: endpoint), status: response.status).error
    }
  }

  // MARK: What a server gives out

  /// What a sign-in has brought.
  func signIn(_ answer: JSONAnswer, nonce: String?) async throws -> SignIn {
    let token = try token(answer)
    guard configuration.wantsIdentity else { return SignIn(token: token, identity: nil) }
    guard let text = try answer.text("id_token") else { throw answer.fault("id_token") }
    return SignIn(token: token, identity: try await identity(text, nonce: nonce))
  }

  /// The token of an answer (RFC 6749, section 5.1).
  private func token(_ answer: JSONAnswer) throws(StorageError) -> AccessToken {
    let value = try answer.requiredText("access_token")
    guard value.isSafeInHeader else { throw answer.fault("access_token") }
    guard try answer.requiredText("token_type").lowercased() == "bearer" else { throw answer.fault("token_type") }
    let now = clock.now()
    var token = AccessToken(SecretText(value), issued: now)
    if let seconds = try answer.number("expires_in") {
      guard (0...Int64(1) << 40).contains(seconds) else { throw answer.fault("expires_in") }
      token.expires = now + seconds * 1000
    }
    token.refreshToken = try answer.text("refresh_token").flatMap { $0.isEmpty ? nil : SecretText($0) }
    token.scopes = try answer.text("scope")?.split(separator: " ").map(String.init) ?? []
    return token
  }
}

extension OAuthClient {
  /// Checks an ID token (OpenID Connect Core 1.0, section 3.1.3.7).
  ///
  /// - Parameters:
  ///   - text: The token.
  ///   - nonce: What the sign-in has sent; nil if there was no browser.
  /// - Throws: `StorageError` with `invalidToken`, `expired` or `notYetValid`.
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
      throw StorageError(.wrongState, "the answer belongs to another sign-in; it was not accepted. Sign in again")
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
    } catch let error as StorageError where error.code == .invalidToken {
      // The server may have new keys. They are asked for once for each token.
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
