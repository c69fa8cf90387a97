import BuckiaBytes

/// What a signed token claims (RFC 7519, section 4.1).
struct TokenClaims: Sendable {
  let object: JSONObject

  init(_ object: JSONObject) { self.object = object }

  /// A claim's text; nil when it is something else.
  func text(_ name: String) -> String? { if case .string(let text)? = object[name] { text } else { nil } }

  /// For whom the token is: one text, or a list of them.
  var audiences: [String] {
    switch object["aud"] {
    case .string(let text)?: [text]
    case .array(let items)?: items.compactMap { if case .string(let text) = $0 { text } else { nil } }
    default: []
    }
  }

  /// The latest time that tokens have, in seconds since 1970: the year 9999. So milliseconds fit 64 bits.
  private static let latest: Int64 = 253_402_300_799

  /// A time in milliseconds since 1970; nil where there is none.
  ///
  /// - Throws: `TokenError` with `invalidToken` when it is no time.
  func time(_ name: String) throws(TokenError) -> Int64? {
    let seconds: Int64?
    switch object[name] {
    case nil: return nil
    case .integer(let number)?: seconds = number
    case .real(let number)?: seconds = Int64(exactly: number.rounded(.down))
    default: seconds = nil
    }
    guard let seconds, (0...Self.latest).contains(seconds) else { throw CompactToken.fault("\"\(name)\" is no time") }
    return seconds * 1000
  }

  /// Checks issuer, audience and times.
  ///
  /// - Parameters:
  ///   - now: The present time in milliseconds since 1970.
  ///   - leeway: How far the issuer's clock may differ, in milliseconds.
  /// - Returns: When the token ends, in milliseconds since 1970.
  /// - Throws: `TokenError` with `invalidToken`, `expired` or `notYetValid`.
  @discardableResult
  func require(issuer: String, audience: String, now: Int64, leeway: Int64) throws(TokenError) -> Int64 {
    guard text("iss") == issuer else { throw CompactToken.fault("another than \(issuer) has issued it") }
    guard audiences.contains(audience) else { throw CompactToken.fault("it is for somebody else") }
    guard let expires = try time("exp") else { throw CompactToken.fault("it does not say when it ends") }
    guard now < expires + leeway else {
      throw TokenError(.expired, "the token has expired; get a new one, and check the clock of this device")
    }
    let begins = try time("nbf") ?? 0
    let issued = try time("iat") ?? 0
    guard max(begins, issued) <= now + leeway else {
      throw TokenError(.notYetValid, "the token is not valid yet; the clock of this device, or the issuer's, is wrong")
    }
    return expires
  }
}
