import BuckiaStorage
import Crypto

/// What an address of Bunny.net's CDN that is signed allows: <https://docs.bunny.net/docs/cdn-token-authentication>.
public struct BunnyTokenRules: Sendable, Equatable {
  /// Until when, in seconds since 1970.
  public var expires: Int64
  /// The folder in which everything may be read with the token, such as `/7f3a/`; nil for the one object.
  public var path: String?
  /// The one IP address from which.
  public var userIP: String?
  /// The countries from which, by their codes in ISO 3166.
  public var countries: [String] = []
  /// The countries from which not.
  public var blockedCountries: [String] = []
  /// The web sites whose pages may show it, such as `example.com`.
  public var referrers: [String] = []
  /// How fast, in kilobytes a second.
  public var speedLimit: Int?
  /// Whether the token goes into the path instead of the query, so that relative references keep it: for video.
  public var isInPath = false

  /// Rules for one object.
  ///
  /// - Parameter expires: Until when, in seconds since 1970.
  public init(expires: Int64) { self.expires = expires }

  /// The parameters by name, as the token covers them.
  private var parameters: [(String, String)] {
    var found: [(String, String)] = []
    if let path { found.append(("token_path", path)) }
    if !countries.isEmpty { found.append(("token_countries", countries.joined(separator: ","))) }
    if !blockedCountries.isEmpty { found.append(("token_countries_blocked", blockedCountries.joined(separator: ","))) }
    if !referrers.isEmpty { found.append(("token_referer", referrers.joined(separator: ","))) }
    if let speedLimit { found.append(("limit", "\(speedLimit)")) }
    return found
  }

  /// Signs an address.
  ///
  /// - Parameters:
  ///   - address: The address at the CDN, with its query if it has one.
  ///   - key: The key of the pull zone.
  /// - Returns: The address with the token.
  /// - Throws: `StorageError` with `invalidSetting` when it is no address.
  public func signed(_ address: String, key: String) throws(StorageError) -> String {
    let url = try HTTPAddress(address)
    let all = (url.queryItems + parameters).sorted { $0.0.utf8.lexicographicallyPrecedes($1.0.utf8) }
    let covered = all.map { "\($0.0)=\($0.1)" }.joined(separator: "&")
    let target = path ?? PercentEncoding.decoded(url.path) ?? url.path
    let message = key + target + "\(expires)" + (userIP ?? "") + covered
    let token = Base64URL.text(Array(SHA256.hash(data: Array(message.utf8))))
    let written = all.map { "&\($0.0)=\(PercentEncoding.encoded($0.1))" }.joined() + "&expires=\(expires)"
    return isInPath
      ? "\(url.origin)/bcdn_token=\(token)\(written)\(url.path)" : "\(url.origin)\(url.path)?token=\(token)\(written)"
  }
}
