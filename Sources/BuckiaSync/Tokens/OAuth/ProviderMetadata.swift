import BuckiaStorage

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
  /// Whether the answer to the browser names the server, too (RFC 9207).
  let namesIssuer: Bool

  /// Reads a document.
  ///
  /// - Throws: `TokenError` with `invalidAnswer` when it is another server's, or has an address that anybody could listen to.
  init(_ answer: JSONAnswer, issuer: String) throws(TokenError) {
    let named = try answer.requiredText("issuer")
    // Otherwise one server could speak for another (section 4.3).
    guard named == issuer else {
      throw TokenError(
        .invalidAnswer,
        "the server at \(answer.origin) calls itself \(ShownText.shown(named)), not \(issuer); if that is right, use that address"
      )
    }
    func endpoint(_ name: String) throws(TokenError) -> HTTPAddress? {
      guard let text = try answer.text(name) else { return nil }
      let address: HTTPAddress
      do throws(StorageError) { address = try HTTPAddress(text) } catch { throw answer.fault(name) }
      guard address.isPrivate else { throw answer.fault(name) }
      return address
    }
    func required(_ name: String) throws(TokenError) -> HTTPAddress {
      guard let address = try endpoint(name) else { throw answer.fault(name) }
      return address
    }
    self.issuer = named
    authorizationEndpoint = try required("authorization_endpoint")
    tokenEndpoint = try required("token_endpoint")
    keysEndpoint = try required("jwks_uri")
    deviceEndpoint = try endpoint("device_authorization_endpoint")
    revocationEndpoint = try endpoint("revocation_endpoint")
    clientAuthentication = try answer.texts("token_endpoint_auth_methods_supported") ?? ["client_secret_basic"]
    namesIssuer = answer.object["authorization_response_iss_parameter_supported"] == .bool(true)
    if let methods = try answer.texts("code_challenge_methods_supported"), !methods.contains("S256") {
      throw TokenError(
        .unsupported, "the server at \(answer.origin) has no safe way to sign in from an app (PKCE with S256)")
    }
  }
}

extension HTTPAddress {
  /// Whether nobody else can read what is sent there: it is encrypted, or stays on this computer.
  var isPrivate: Bool { isSecure || ["127.0.0.1", "localhost", "[::1]"].contains(host) }
}
