import BuckiaBytes
import BuckiaStorage

/// Signs people in at an OpenID Connect server, such as Okta, Keycloak or Google, and renews and withdraws their tokens.
///
/// Nothing but the server's address is configured; the rest it says itself. On a computer with a browser:
///
/// ```swift
/// let client = try OAuthClient(OAuthConfiguration(issuer: "https://login.example", clientID: "notes"), transport: transport)
/// let signIn = try await client.signIn { address in print("Open \(address)") }
/// try await tokens.save(signIn.token, for: .storage)
/// await tokens.setSources([client.source], for: .storage)
/// ```
///
/// Without one, ``beginDeviceSignIn()`` gives a code that the person types in elsewhere. Apps with a sign-in window of their own use
/// ``beginSignIn(returningTo:)``.
public actor OAuthClient {
  let configuration: OAuthConfiguration
  let clock: TokenClock
  private let discovery: HTTPAddress
  private let transport: any HTTPTransport
  private let retries: RetryPolicy
  private var known: ProviderMetadata?
  private var keys: [JSONWebKey]?

  /// Prepares a client. No request is made yet.
  ///
  /// - Parameters:
  ///   - configuration: Which server, and as which app.
  ///   - transport: What brings requests there.
  ///   - retries: How often reading is repeated. What gives out tokens is never repeated: the server may have given them out already.
  ///   - clock: What time it is.
  /// - Throws: `StorageError` with `invalidSetting`.
  public init(
    _ configuration: OAuthConfiguration, transport: any HTTPTransport, retries: RetryPolicy = RetryPolicy(),
    clock: TokenClock = .system
  ) throws(StorageError) {
    var address = try HTTPAddress(configuration.issuer)
    guard address.isPrivate, address.query == nil else {
      throw StorageError(
        .invalidSetting, "the address of the sign-in server begins with https:// and has no question mark")
    }
    while address.path.hasSuffix("/") { address.path.removeLast() }
    address.path += "/.well-known/openid-configuration"
    discovery = address
    guard !configuration.clientID.isEmpty else {
      throw StorageError(.invalidSetting, "the sign-in server's name for this app is missing (client ID)")
    }
    self.configuration = configuration
    self.transport = transport
    self.retries = retries
    self.clock = clock
  }

  // MARK: The server

  /// What the server says of itself; read once.
  func metadata() async throws -> ProviderMetadata {
    if let known { return known }
    let found = try ProviderMetadata(try await document(discovery), issuer: configuration.issuer)
    known = found
    return found
  }

  /// The server's keys.
  ///
  /// - Parameter areRead: True to read them again: servers change their keys now and then.
  func webKeys(again areRead: Bool = false) async throws -> [JSONWebKey] {
    if let keys, !areRead { return keys }
    let found = try JSONWebKey.all(in: try await document(try await metadata().keysEndpoint))
    keys = found
    return found
  }

  private func document(_ address: HTTPAddress) async throws -> JSONAnswer {
    let exchange = HTTPExchange(transport: transport, policy: retries)
    let request = HTTPTransportRequest("GET", address, headers: ["Accept": "application/json"])
    return try await JSONAnswer(exchange.perform(request).response, from: address)
  }

  // MARK: Requests

  /// What a server answers to a form.
  enum FormAnswer: Sendable {
    case accepted(JSONAnswer)
    case refused(OAuthRefusal)
  }

  /// Sends a form to one of the server's addresses, once.
  func send(_ form: [(String, String)], to address: HTTPAddress) async throws -> FormAnswer {
    let response = try await post(form, to: address)
    if response.status == 200 { return .accepted(try await JSONAnswer(response, from: address)) }
    return .refused(try OAuthRefusal(try await JSONAnswer(response, from: address), status: response.status))
  }

  /// Sends a form.
  ///
  /// - Returns: The answer, with status 200, 400, 401 or 403.
  func post(_ form: [(String, String)], to address: HTTPAddress) async throws -> HTTPTransportResponse {
    var form = form
    var request = HTTPTransportRequest(
      "POST", address, headers: ["Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"])
    if let secret = configuration.clientSecret, try await usesBasic() {
      // Both are encoded as in a form first (RFC 6749, section 2.3.1).
      try BasicAuthorization(
        user: PercentEncoding.encoded(configuration.clientID), password: PercentEncoding.encoded(secret.value)
      ).authorize(&request)
    } else {
      form.append(("client_id", configuration.clientID))
      if let secret = configuration.clientSecret { form.append(("client_secret", secret.value)) }
    }
    let body = form.map { "\(PercentEncoding.encoded($0))=\(PercentEncoding.encoded($1))" }.joined(separator: "&")
    request.body = .bytes(Array(body.utf8))
    var policy = retries
    policy.attempts = 1
    return try await HTTPExchange(transport: transport, policy: policy)
      .perform(request, accepting: [200, 400, 401, 403]).response
  }

  private func usesBasic() async throws -> Bool {
    let methods = try await metadata().clientAuthentication
    return methods.contains("client_secret_basic") || !methods.contains("client_secret_post")
  }
}

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

  /// True if the server has to say who has signed in.
  var wantsIdentity: Bool { scopes.contains("openid") }
}

/// What a server says of itself (OpenID Connect Discovery 1.0, section 3).
struct ProviderMetadata: Sendable {
  let issuer: String
  let authorizationEndpoint: HTTPAddress
  let tokenEndpoint: HTTPAddress
  let keysEndpoint: HTTPAddress
  let deviceEndpoint: HTTPAddress?
  let revocationEndpoint: HTTPAddress?
  /// How apps with a secret say who they are.
  let clientAuthentication: [String]
  /// True if the answer to the browser names the server, too (RFC 9207).
  let namesIssuer: Bool

  /// Reads a document.
  ///
  /// - Throws: `StorageError` with `invalidAnswer` when it is another server's, or has an address that anybody could listen to.
  init(_ answer: JSONAnswer, issuer: String) throws(StorageError) {
    let named = try answer.requiredText("issuer")
    // Otherwise one server could speak for another (section 4.3).
    guard named == issuer else {
      throw StorageError(
        .invalidAnswer,
        "the server at \(answer.origin) calls itself \(named.shown), not \(issuer); if that is right, use that address"
      )
    }
    self.issuer = named
    authorizationEndpoint = try answer.requiredAddress("authorization_endpoint")
    tokenEndpoint = try answer.requiredAddress("token_endpoint")
    keysEndpoint = try answer.requiredAddress("jwks_uri")
    deviceEndpoint = try answer.address("device_authorization_endpoint")
    revocationEndpoint = try answer.address("revocation_endpoint")
    clientAuthentication = try answer.texts("token_endpoint_auth_methods_supported") ?? ["client_secret_basic"]
    namesIssuer = answer.object["authorization_response_iss_parameter_supported"] == .bool(true)
    if let methods = try answer.texts("code_challenge_methods_supported"), !methods.contains("S256") {
      throw StorageError(
        .unsupported, "the server at \(answer.origin) has no safe way to sign in from an app (PKCE with S256)")
    }
  }
}

extension HTTPAddress {
  /// True if requests to it are private: encrypted, or on this computer.
  var isPrivate: Bool { isSecure || ["127.0.0.1", "localhost", "[::1]"].contains(host) }
}

/// Why a server has given out no token (RFC 6749, section 5.2; RFC 8628, section 3.5).
struct OAuthRefusal: Error, Sendable, CustomStringConvertible {
  /// The word that the server uses.
  let code: String
  /// What it says beside that.
  private let explanation: String?
  private let origin: String
  private let status: Int

  /// Reads an answer.
  ///
  /// - Throws: `StorageError` with `invalidAnswer` when it gives no reason.
  init(_ answer: JSONAnswer, status: Int) throws(StorageError) {
    code = try answer.requiredText("error").shown
    explanation = try answer.text("error_description").map(\.shown)
    origin = answer.origin
    self.status = status
  }

  /// What came back through the browser.
  init(code: String, explanation: String?, origin: String) {
    self.code = code.shown
    self.explanation = explanation.map(\.shown)
    self.origin = origin
    status = 0
  }

  var description: String { explanation.map { "\(code): \($0)" } ?? code }

  /// The error in words for people.
  var error: StorageError {
    let (code, message): (StorageError.Code, String) =
      switch self.code {
      case "access_denied": (.accessDenied, "the sign-in was refused; nothing was changed")
      case "expired_token": (.signInExpired, "the sign-in was not finished in time; begin again")
      case "invalid_grant": (.signInEnded, "the sign-in has ended or was withdrawn; sign in again")
      case "invalid_client", "unauthorized_client":
        (
          .unknownClient,
          "the sign-in server does not know this app, or not its secret; check the client ID and the secret"
        )
      case "unsupported_grant_type", "unsupported_response_type":
        (
          .unsupported,
          "the sign-in server does not let this app sign in this way; allow it in the server's settings of the app"
        )
      case "invalid_scope":
        (.invalidSetting, "the sign-in server does not give this app what it asks for; check the scopes")
      case "login_required", "interaction_required", "consent_required":
        (.signInEnded, "the sign-in server wants to see the person; sign in again")
      case "temporarily_unavailable", "server_error", "slow_down":
        (.unavailable, "the sign-in server has a fault, or is overloaded; try again later")
      default: (.invalidAnswer, "the sign-in server has refused this")
      }
    return StorageError(code, "\(message) (\(origin) says: \(self))", cause: self)
  }
}
