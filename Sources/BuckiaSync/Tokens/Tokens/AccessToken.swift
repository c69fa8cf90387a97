import BuckiaBytes

/// A token that says who asks, with its expiry and what gets the next one.
public struct AccessToken: Sendable, Hashable {
  /// The token itself.
  public var value: SecretText
  /// When it was given out, in milliseconds since 1970; nil when that is not known.
  public var issued: Int64?
  /// Until when it is good, in milliseconds since 1970; nil for no end.
  public var expires: Int64?
  /// What gets the next one; nil where something else does.
  public var refreshToken: SecretText?
  /// What the server lets it do, in the server's own words (OAuth calls them scopes).
  public var scopes: [String]

  /// Makes a token.
  ///
  /// - Parameters:
  ///   - value: The token itself.
  ///   - issued: When it was given out, in milliseconds since 1970.
  ///   - expires: Until when it is good, in milliseconds since 1970.
  ///   - refreshToken: What gets the next one.
  ///   - scopes: What the server lets it do.
  public init(
    _ value: SecretText, issued: Int64? = nil, expires: Int64? = nil, refreshToken: SecretText? = nil,
    scopes: [String] = []
  ) {
    self.value = value
    self.issued = issued
    self.expires = expires
    self.refreshToken = refreshToken
    self.scopes = scopes
  }

  /// Whether it is good at a time, in milliseconds since 1970.
  public func isValid(at time: Int64) -> Bool { expires.map { time < $0 } ?? true }

  /// When to get the next one, in milliseconds since 1970; nil for never.
  ///
  /// - Parameter margin: How long before its end, in milliseconds. A token that lives only a short time is used for at least three quarters
  ///   of it.
  func renewalTime(margin: Int64) -> Int64? {
    guard let expires else { return nil }
    // Whatever times somebody has stored, the differences fit.
    func bounded(_ time: Int64) -> Int64 { min(max(time, 0), Int64(1) << 60) }
    let end = bounded(expires)
    let longest = bounded(margin)
    guard let issued, bounded(issued) < end else { return end - longest }
    return end - min(longest, (end - bounded(issued)) / 4)
  }
}

// MARK: As it is stored

extension AccessToken {
  /// How large a stored token may be, in bytes.
  static let byteLimit = 1 << 20

  var document: JSONValue {
    var object = JSONObject()
    object.append("value", .string(value.value))
    if let issued { object.append("issued", .integer(issued)) }
    if let expires { object.append("expires", .integer(expires)) }
    if let refreshToken { object.append("refreshToken", .string(refreshToken.value)) }
    if !scopes.isEmpty { object.append("scopes", .array(scopes.map { .string($0) })) }
    return .object(object)
  }

  /// Reads a stored token; nil when it is none.
  init?(_ document: JSONValue) {
    guard case .object(let object) = document, case .string(let value)? = object["value"] else { return nil }
    self.init(SecretText(value))
    let known = ["value", "issued", "expires", "refreshToken", "scopes"]
    for member in object.members {
      switch (member.name, member.value) {
      case ("value", _): break
      case ("issued", .integer(let time)): issued = time
      case ("expires", .integer(let time)): expires = time
      case ("refreshToken", .string(let text)): refreshToken = SecretText(text)
      case ("scopes", .array(let items)):
        for item in items {
          guard case .string(let scope) = item else { return nil }
          scopes.append(scope)
        }
      default:
        // A member that a later version has added is left out; one of ours with another type is damage.
        if known.contains(member.name) { return nil }
      }
    }
  }

  /// Reads one token from bytes.
  static func stored(_ bytes: [UInt8], in place: String) throws(TokenError) -> AccessToken {
    do {
      if let token = AccessToken(try JSONParser.parse(bytes)) { return token }
    } catch {
      throw TokenError(.invalidStore, "\(place) holds something that is no token; sign in again", cause: error)
    }
    throw TokenError(.invalidStore, "\(place) holds something that is no token; sign in again")
  }
}
