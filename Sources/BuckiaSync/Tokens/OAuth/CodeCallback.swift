/// What a browser brings back from a sign-in (RFC 6749, section 4.1.2).
struct CodeCallback: Sendable {
  private let items: [String: String]

  /// Reads an address, or the part of one that a browser asks for; nil when the same name stands there twice.
  init?(_ target: String) {
    var items: [String: String] = [:]
    let bytes = target.utf8.prefix { $0 != UInt8(ascii: "#") }
    let parts = bytes.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
    for item in parts.count > 1 ? parts[1].split(separator: UInt8(ascii: "&")) : [] {
      let pair = item.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      func decoded(_ part: Substring.UTF8View) -> String? {
        let text = String(Substring(part)).replacing("+", with: " ")
        return PercentEncoding.decoded(text)
      }
      guard let name = decoded(pair[0]), let value = decoded(pair.count > 1 ? pair[1] : Substring("").utf8),
        items.updateValue(value, forKey: name) == nil
      else { return nil }
    }
    self.items = items
  }

  /// Whether it is the answer to a sign-in: nobody else knows the state.
  func belongs(to signIn: CodeSignIn) -> Bool { items["state"] == signIn.state.value }

  /// The code.
  ///
  /// - Throws: `TokenError`: what the server says, or `wrongState`.
  func code(for signIn: CodeSignIn, _ metadata: ProviderMetadata) throws(TokenError) -> SecretText {
    guard belongs(to: signIn) else {
      throw TokenError(
        .wrongState, "what the browser has brought belongs to another sign-in; it was not accepted. Sign in again")
    }
    // Otherwise one server's code could be taken to another (RFC 9207).
    guard items["iss"].map({ $0 == metadata.issuer }) ?? !metadata.namesIssuer else {
      throw TokenError(.wrongState, "the answer comes from another server than \(metadata.issuer); it was not accepted")
    }
    if let error = items["error"] {
      throw OAuthRefusal(
        code: error, explanation: items["error_description"], origin: metadata.authorizationEndpoint.origin
      ).error
    }
    guard let code = items["code"], !code.isEmpty else {
      throw TokenError(.invalidAnswer, "the browser has come back from the sign-in without a code; sign in again")
    }
    return SecretText(code)
  }
}
