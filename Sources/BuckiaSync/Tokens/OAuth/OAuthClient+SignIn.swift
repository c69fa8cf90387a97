import BuckiaBytes
import BuckiaStorage
import Crypto

extension OAuthClient {
  /// Signs somebody in with their browser on this computer: opens a port of this computer alone, to which the browser comes back (RFC 8252).
  ///
  /// - Parameters:
  ///   - port: The port, where the server wants a fixed one in its settings of the app; 0 for any that is free.
  ///   - seconds: How long to wait for the person; at most a day.
  ///   - open: Opens the address in the browser, or shows it to the person.
  /// - Throws: `StorageError` with `accessDenied`, `signInExpired` and others; `CancellationError`; what `open` throws.
  public func signIn(
    port: Int = 0, within seconds: Int64 = 300, open: @Sendable (_ address: String) async throws -> Void
  ) async throws -> SignIn {
    let listener = try await LoopbackListener(port: port)
    do {
      let begun = try await beginSignIn(returningTo: listener.address)
      listener.accept { CodeCallback($0)?.belongs(to: begun) ?? false }
      try await open(begun.address)
      let target = try await listener.target(within: seconds)
      await listener.close()
      return try await finish(begun, with: target)
    } catch {
      await listener.close()
      throw error
    }
  }

  /// Begins a sign-in, for an app that opens the address itself and gets the answer with an address of its own.
  ///
  /// - Parameter returnAddress: Where the browser comes back to, as the server's settings of the app have it.
  /// - Throws: `StorageError`; `CancellationError`.
  public func beginSignIn(returningTo returnAddress: String) async throws -> CodeSignIn {
    CodeSignIn(configuration, try await metadata(), returningTo: returnAddress)
  }

  /// Finishes a sign-in.
  ///
  /// - Parameters:
  ///   - begun: The sign-in.
  ///   - target: The address to which the browser was redirected.
  /// - Throws: `StorageError`; `CancellationError`.
  public func finish(_ begun: CodeSignIn, with target: String) async throws -> SignIn {
    let metadata = try await metadata()
    guard let callback = CodeCallback(target) else {
      throw StorageError(.invalidAnswer, "what the browser has brought cannot be read; sign in again")
    }
    let code = try callback.code(for: begun, metadata)
    let form = [
      ("grant_type", "authorization_code"), ("code", code.value), ("redirect_uri", begun.returnAddress),
      ("code_verifier", begun.verifier.value),
    ]
    switch try await send(form, to: metadata.tokenEndpoint) {
    case .refused(let refusal): throw refusal.error
    case .accepted(let answer): return try await signIn(answer, nonce: begun.nonce.value)
    }
  }
}

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
    state = SecretText.random()
    nonce = SecretText.random()
    verifier = SecretText.random()
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

/// What a browser brings back from a sign-in (RFC 6749, section 4.1.2).
struct CodeCallback: Sendable {
  private let items: [String: String]

  /// Reads an address, or the part of one that a browser asks for; nil if the same name stands there twice.
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

  /// True if it is the answer to a sign-in: the state is secret.
  func belongs(to signIn: CodeSignIn) -> Bool { items["state"] == signIn.state.value }

  /// The code.
  ///
  /// - Throws: `StorageError`: what the server says, or `wrongState`.
  func code(for signIn: CodeSignIn, _ metadata: ProviderMetadata) throws(StorageError) -> SecretText {
    guard belongs(to: signIn) else {
      throw StorageError(
        .wrongState, "what the browser has brought belongs to another sign-in; it was not accepted. Sign in again")
    }
    // Otherwise one server's code could be taken to another (RFC 9207).
    guard items["iss"].map({ $0 == metadata.issuer }) ?? !metadata.namesIssuer else {
      throw StorageError(
        .wrongState, "the answer comes from another server than \(metadata.issuer); it was not accepted")
    }
    if let error = items["error"] {
      throw OAuthRefusal(
        code: error, explanation: items["error_description"], origin: metadata.authorizationEndpoint.origin
      ).error
    }
    guard let code = items["code"], !code.isEmpty else {
      throw StorageError(.invalidAnswer, "the sign-in has returned no code; sign in again")
    }
    return SecretText(code)
  }
}

extension OAuthClient {
  /// How long a person may be waited for, whatever a server says, in milliseconds.
  private static let longestWait: Int64 = 24 * 3600 * 1000
  /// The longest time between two questions, in milliseconds.
  private static let longestInterval: Int64 = 600_000
  /// The time between two questions, in seconds, where a server does not say one (RFC 8628, section 3.2).
  private static let usualInterval: Int64 = 5
  /// How much longer to wait after each such complaint, in milliseconds (section 3.5).
  private static let slowDown: Int64 = 5000

  /// Begins a sign-in on another device: for computers without a browser.
  ///
  /// - Returns: What to show to the person. ``finish(_:)`` waits for them.
  /// - Throws: `StorageError` with `unsupported` when the server has no such way, and others; `CancellationError`.
  public func beginDeviceSignIn() async throws -> DeviceSignIn {
    guard let endpoint = try await metadata().deviceEndpoint else {
      throw StorageError(.unsupported, "\(configuration.issuer) has no sign-in with a code; sign in with a browser")
    }
    switch try await send([("scope", configuration.scopes.joined(separator: " "))], to: endpoint) {
    case .refused(let refusal): throw refusal.error
    case .accepted(let answer):
      let interval = try answer.number("interval") ?? Self.usualInterval
      guard let seconds = try answer.number("expires_in"), seconds > 0 else { throw answer.fault("expires_in") }
      return DeviceSignIn(
        address: try answer.requiredAddress("verification_uri").description,
        code: try answer.requiredText("user_code").shown,
        addressWithCode: try answer.address("verification_uri_complete")?.description,
        expires: clock.now() + min(seconds, Self.longestWait / 1000) * 1000,
        deviceCode: SecretText(try answer.requiredText("device_code")),
        interval: min(max(interval, 1), Self.longestInterval / 1000) * 1000)
    }
  }

  /// Waits until the person has signed in on the other device.
  ///
  /// - Throws: `StorageError` with `accessDenied` when they refuse, `signInExpired` when they do not come, and others; `CancellationError`.
  public func finish(_ begun: DeviceSignIn) async throws -> SignIn {
    let endpoint = try await metadata().tokenEndpoint
    let form = [
      ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"), ("device_code", begun.deviceCode.value),
    ]
    var interval = begun.interval
    while true {
      try Task.checkCancellation()
      let now = clock.now()
      guard now < begun.expires else {
        throw StorageError(.signInExpired, "the code has expired before the sign-in; begin again")
      }
      try await clock.sleep(min(interval, begun.expires - now))
      do {
        switch try await send(form, to: endpoint) {
        case .accepted(let answer): return try await signIn(answer, nonce: nil)
        case .refused(let refusal):
          switch refusal.code {
          case "authorization_pending": break
          case "slow_down": interval = min(interval + Self.slowDown, Self.longestInterval)
          default: throw refusal.error
          }
        }
      } catch let error as StorageError {
        guard error.isTransient, !error.isAboutToken else { throw error }
        // The person is still busy with the other device; the server gets more time (section 3.5).
        interval = min(2 * interval, Self.longestInterval)
      }
    }
  }
}

/// A sign-in on another device that has begun (RFC 8628): the person opens the address there and types the code.
public struct DeviceSignIn: Sendable {
  /// The address that the person opens, on any device.
  public let address: String
  /// The code that they type there.
  public let code: String
  /// The address with the code in it, for a QR code; nil if the server has none.
  public let addressWithCode: String?
  /// Until when they have time, in milliseconds since 1970.
  public let expires: Int64
  let deviceCode: SecretText
  /// How long to wait between two questions, in milliseconds.
  let interval: Int64
}

/// What a sign-in has brought.
public struct SignIn: Sendable, Hashable {
  /// The token.
  public let token: AccessToken
  /// Who has signed in; nil if the app has not asked (scope `openid`).
  public let identity: SignedInIdentity?
}

/// Who has signed in, as the server has recorded for it with its signature (OpenID Connect Core 1.0, section 2).
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
