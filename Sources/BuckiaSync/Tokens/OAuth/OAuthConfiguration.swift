/// Which OpenID Connect server people sign in at, and as which app.
public struct OAuthConfiguration: Sendable, Hashable {
  /// The server's address, as it names itself, such as `https://example.okta.com`.
  public var issuer: String
  /// What the server calls the app.
  public var clientID: String
  /// The app's secret, where the server has given one. An app on people's devices has none that is secret: PKCE stands in for it.
  public var clientSecret: SecretText?
  /// What the app asks for. `openid` brings an identity, `offline_access` a refresh token.
  public var scopes: [String]
  /// For which service the tokens are to be (RFC 8707), where the server gives them for several; nil for the server's choice.
  public var resource: String?
  /// How far the server's clock may differ, in seconds.
  public var leewaySeconds: Int64 = 60

  /// Describes an app at a server.
  public init(
    issuer: String, clientID: String, clientSecret: SecretText? = nil, scopes: [String] = ["openid", "offline_access"]
  ) {
    self.issuer = issuer
    self.clientID = clientID
    self.clientSecret = clientSecret
    self.scopes = scopes
  }

  /// Whether the server has to say who has signed in.
  var wantsIdentity: Bool { scopes.contains("openid") }
}
