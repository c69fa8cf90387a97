/// What a sign-in has brought.
public struct SignIn: Sendable, Hashable {
  /// The token.
  public let token: AccessToken
  /// Who has signed in; nil when the app has not asked (scope `openid`).
  public let identity: SignedInIdentity?
}

/// Who has signed in, as the server has vouched for it with its signature (OpenID Connect Core 1.0, section 2).
public struct SignedInIdentity: Sendable, Hashable {
  /// The server.
  public let issuer: String
  /// What the server calls the person: stays when their name or address changes.
  public let subject: String
  /// Their e-mail address, when the server tells.
  public let email: String?
  /// Their name, when the server tells.
  public let name: String?
}
