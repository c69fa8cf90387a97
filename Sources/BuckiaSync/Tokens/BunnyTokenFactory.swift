import BuckiaStorage

/// Makes addresses of Bunny.net's CDN with which a folder, or one object, can be read for a while:
/// <https://docs.bunny.net/docs/cdn-token-authentication>.
public struct BunnyTokenFactory: Sendable {
  private let host: HTTPAddress
  private let key: SecretText
  private let clock: TokenClock
  /// What else the tokens demand: an address, countries, web sites, a speed. Its expiry and path are those of each token.
  public var rules: BunnyTokenRules

  /// Names a pull zone.
  ///
  /// - Parameters:
  ///   - address: The address of the zone, such as `https://example.b-cdn.net`.
  ///   - key: The zone's key for token authentication.
  ///   - clock: What time it is.
  /// - Throws: `StorageError` with `invalidSetting`.
  public init(address: String, key: SecretText, clock: TokenClock = .system) throws(StorageError) {
    host = try HTTPAddress(address)
    guard !key.isEmpty else {
      throw StorageError(.invalidSetting, "the pull zone's key for token authentication is empty")
    }
    self.key = key
    self.clock = clock
    rules = BunnyTokenRules(expires: 0)
  }

  /// How long an address may be good, in seconds: some ten years, so that it has an end at all.
  private static let secondsLimit: Int64 = 10 * 366 * 86_400

  /// Makes the address of an object, or of a folder. The name of what is to be read in a folder goes before the question mark; with
  /// ``BunnyTokenRules/isInPath``, to the end of the address.
  public func makeToken(_ options: AccessTokenOptions) throws -> SignedAddress {
    let rule = try options.onlyRule(of: "an address of Bunny.net")
    guard rule.actions == .read else {
      throw StorageError(
        .inexpressible, "an address of Bunny.net's CDN allows to read and nothing else, not: \(rule.actions)")
    }
    let expires = try options.expiry(from: clock.now(), limit: Self.secondsLimit)
    var rules = rules
    rules.expires = expires / 1000
    var address = host
    switch rule.place {
    case .everywhere:
      address.path = "/"
      rules.path = "/"
    case .folder(let folder):
      address = address.appending(folder.segments)
      address.path += "/"
      rules.path = "/\(folder)/"
    case .object(let object):
      address = address.appending(object.segments)
      rules.path = nil
    }
    return SignedAddress(
      address: SecretText(try rules.signed(address.description, key: key.value)), permissions: options.permissions,
      expires: expires / 1000 * 1000)
  }
}
