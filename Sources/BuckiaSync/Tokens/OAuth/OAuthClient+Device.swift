import BuckiaStorage

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
  /// - Throws: `TokenError` with `unsupported` when the server has no such way, and others; `CancellationError`.
  public func beginDeviceSignIn() async throws -> DeviceSignIn {
    guard let endpoint = try await metadata().deviceEndpoint else {
      throw TokenError(.unsupported, "\(configuration.issuer) has no sign-in with a code; sign in with a browser")
    }
    switch try await send([("scope", configuration.scopes.joined(separator: " "))], to: endpoint) {
    case .refused(let refusal): throw refusal.error
    case .accepted(let answer):
      let interval = try answer.number("interval") ?? Self.usualInterval
      guard let seconds = try answer.number("expires_in"), seconds > 0 else { throw answer.fault("expires_in") }
      return DeviceSignIn(
        address: try shown(answer, "verification_uri"), code: ShownText.shown(try answer.requiredText("user_code")),
        addressWithCode: try answer.text("verification_uri_complete") == nil
          ? nil : shown(answer, "verification_uri_complete"),
        expires: clock.now() + min(seconds, Self.longestWait / 1000) * 1000,
        deviceCode: SecretText(try answer.requiredText("device_code")),
        interval: min(max(interval, 1), Self.longestInterval / 1000) * 1000)
    }
  }

  /// An address that people are asked to open: one of a web server, and nothing else.
  private func shown(_ answer: JSONAnswer, _ name: String) throws(TokenError) -> String {
    let text = try answer.requiredText(name)
    do throws(StorageError) {
      let address = try HTTPAddress(text)
      guard address.isPrivate else { throw StorageError(.invalidAnswer, "") }
      return address.description
    } catch { throw answer.fault(name) }
  }

  /// Waits until the person has signed in on the other device.
  ///
  /// - Throws: `TokenError` with `accessDenied` when they refuse, `signInExpired` when they do not come, and others; `CancellationError`.
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
        throw TokenError(.signInExpired, "nobody has signed in with the code in time; begin again")
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
      } catch let error as TokenError {
        guard let cause = error.cause as? StorageError, cause.isTransient else { throw error }
        // The person is still busy with the other device; the server gets more time (section 3.5).
        interval = min(2 * interval, Self.longestInterval)
      }
    }
  }
}
