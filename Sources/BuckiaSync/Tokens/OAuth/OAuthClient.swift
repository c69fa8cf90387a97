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
  /// - Throws: `TokenError` with `invalidSetting`.
  public init(
    _ configuration: OAuthConfiguration, transport: any HTTPTransport, retries: RetryPolicy = RetryPolicy(),
    clock: TokenClock = .system
  ) throws(TokenError) {
    do throws(StorageError) {
      var address = try HTTPAddress(configuration.issuer)
      guard address.isPrivate, address.query == nil else {
        throw StorageError(
          .invalidSetting, "the address of the sign-in server begins with https:// and has no question mark")
      }
      while address.path.hasSuffix("/") { address.path.removeLast() }
      address.path += "/.well-known/openid-configuration"
      discovery = address
    } catch { throw TokenError(error) }
    guard !configuration.clientID.isEmpty else {
      throw TokenError(.invalidSetting, "the sign-in server's name for this app is missing (client ID)")
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
  /// - Parameter areRead: Whether to read them again: servers change their keys now and then.
  func webKeys(again areRead: Bool = false) async throws -> [JSONWebKey] {
    if let keys, !areRead { return keys }
    let found = try JSONWebKey.all(in: try await document(try await metadata().keysEndpoint))
    keys = found
    return found
  }

  private func document(_ address: HTTPAddress) async throws -> JSONAnswer {
    let exchange = HTTPExchange(transport: transport, policy: retries)
    let request = HTTPTransportRequest("GET", address, headers: ["Accept": "application/json"])
    let response = try await TokenError.translating { try await exchange.perform(request).response }
    return try await JSONAnswer(response, from: address)
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
      do throws(StorageError) {
        try BasicAuthorization(
          user: PercentEncoding.encoded(configuration.clientID), password: PercentEncoding.encoded(secret.value)
        ).authorize(&request)
      } catch { throw TokenError(error) }
    } else {
      form.append(("client_id", configuration.clientID))
      if let secret = configuration.clientSecret { form.append(("client_secret", secret.value)) }
    }
    let body = form.map { "\(PercentEncoding.encoded($0))=\(PercentEncoding.encoded($1))" }.joined(separator: "&")
    request.body = .bytes(Array(body.utf8))
    var policy = retries
    policy.attempts = 1
    let exchange = HTTPExchange(transport: transport, policy: policy)
    let sent = request
    return try await TokenError.translating {
      try await exchange.perform(sent, accepting: [200, 400, 401, 403]).response
    }
  }

  private func usesBasic() async throws -> Bool {
    let methods = try await metadata().clientAuthentication
    return methods.contains("client_secret_basic") || !methods.contains("client_secret_post")
  }
}
