import Crypto

/// A sign-in in the browser that has begun: the address to open, and what its answer has to match.
public struct CodeSignIn: Sendable {
  /// The address that the person's browser opens.
  public let address: String
  /// Where the browser comes back to.
  let returnAddress: String
  let state: SecretText
  let nonce: SecretText
  let verifier: SecretText

  /// Begins one (RFC 6749, section 4.1.1; RFC 7636).
  init(_ configuration: OAuthConfiguration, _ metadata: ProviderMetadata, returningTo returnAddress: String) {
    self.returnAddress = returnAddress
    state = SecretText(RandomText.make())
    nonce = SecretText(RandomText.make())
    verifier = SecretText(RandomText.make())
    var items = [
      ("response_type", "code"), ("client_id", configuration.clientID), ("redirect_uri", returnAddress),
      ("scope", configuration.scopes.joined(separator: " ")), ("state", state.value),
      ("code_challenge", Self.challenge(of: verifier)), ("code_challenge_method", "S256"),
    ]
    if configuration.wantsIdentity { items.append(("nonce", nonce.value)) }
    if let resource = configuration.resource { items.append(("resource", resource)) }
    var url = metadata.authorizationEndpoint.with(query: items)
    // The server's own query stays (section 3.1).
    if let own = metadata.authorizationEndpoint.query, !own.isEmpty { url.query = "\(own)&\(url.query ?? "")" }
    address = url.description
  }

  /// What is shown of the verifier before the code is redeemed with it (RFC 7636, section 4.2).
  static func challenge(of verifier: SecretText) -> String {
    Base64URL.text(Array(SHA256.hash(data: Array(verifier.value.utf8))))
  }
}
