import BuckiaBytes
import BuckiaStorage

/// An access token, with its expiry and its refresh token.
public struct AccessToken: Sendable, Hashable {
  /// The token itself.
  public var value: SecretText
  /// The time of issue, in milliseconds since 1970; nil if unknown.
  public var issued: Int64?
  /// Until when it is good, in milliseconds since 1970; nil for no end.
  public var expires: Int64?
  /// The refresh token; nil if the token is renewed in another way.
  public var refreshToken: SecretText?
  /// The scopes, in the server's own words.
  public var scopes: [String]

  /// Creates a token.
  ///
  /// - Parameters:
  ///   - value: The token itself.
  ///   - issued: When it was given out, in milliseconds since 1970.
  ///   - expires: Until when it is good, in milliseconds since 1970.
  ///   - refreshToken: What gets the next one.
  ///   - scopes: The scopes.
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

  /// True if it is good at a time, in milliseconds since 1970.
  public func isValid(at time: Int64) -> Bool { expires.map { time < $0 } ?? true }

  /// When to get the next one, in milliseconds since 1970; nil for never.
  ///
  /// - Parameter margin: How long before its end, in milliseconds. A token that lives only a short time is used for at least three quarters
  ///   of it.
  func renewalTime(margin: Int64) -> Int64? {
    guard let expires else { return nil }
    // Bounded, because differences of stored times must not overflow.
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
    if !scopes.isEmpty { object.append("scopes", .strings(scopes)) }
    return .object(object)
  }

  /// Reads a stored token; nil if it is none.
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
        // An unknown member is left out; a known one with another type is damage.
        if known.contains(member.name) { return nil }
      }
    }
  }

  /// Reads one token from bytes.
  static func stored(_ bytes: [UInt8], in place: String) throws(StorageError) -> AccessToken {
    do {
      if let token = AccessToken(try JSONParser.parse(bytes)) { return token }
    } catch {
      throw StorageError(.invalidStore, "\(place) holds something that is no token; sign in again", cause: error)
    }
    throw StorageError(.invalidStore, "\(place) holds something that is no token; sign in again")
  }
}

/// Text that is not printed: a token, a password, a key.
///
/// Whatever prints or mirrors a value that holds one shows `hidden` in its place.
public struct SecretText: Sendable, Hashable {
  /// The secret itself.
  public let value: String

  /// Takes a secret.
  public init(_ value: String) { self.value = value }

  /// True if it is empty.
  public var isEmpty: Bool { value.isEmpty }
}

extension SecretText: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// Always the same word.
  public var description: String { "hidden" }
  /// Always the same word.
  public var debugDescription: String { description }
  /// Shows nothing.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Errors about tokens, beside those of servers, the network and settings.
extension StorageError.Code {
  // MARK: Having a token

  /// No person has signed in, or no token was stored.
  public static let noToken = Self(rawValue: "no-token")
  /// The token has expired, and nothing renews it.
  public static let expired = Self(rawValue: "token-expired")
  /// The token store cannot be used.
  public static let storeUnavailable = Self(rawValue: "token-store-unavailable")
  /// Others can read the file of tokens.
  public static let notPrivate = Self(rawValue: "not-private")
  /// The stored value is not a token.
  public static let invalidStore = Self(rawValue: "invalid-token-store")

  // MARK: Signing in

  /// The person, or the server, has refused the sign-in.
  public static let accessDenied = Self(rawValue: "access-denied")
  /// The sign-in was not finished in time.
  public static let signInExpired = Self(rawValue: "sign-in-expired")
  /// The sign-in has ended, or was withdrawn: a new one is needed.
  public static let signInEnded = Self(rawValue: "sign-in-ended")
  /// The server does not know this app, or does not let it sign in this way.
  public static let unknownClient = Self(rawValue: "unknown-client")
  /// The answer belongs to another sign-in.
  public static let wrongState = Self(rawValue: "wrong-state")
  /// No port of this computer could be opened for the browser's answer.
  public static let noListener = Self(rawValue: "no-listener")

  // MARK: Signed tokens

  /// The text is not a token, or has not the expected signature.
  public static let invalidToken = Self(rawValue: "invalid-token")
  /// The token does not hold yet; a clock may be wrong.
  public static let notYetValid = Self(rawValue: "token-not-yet-valid")

  /// The permissions cannot be expressed by this kind of token.
  public static let inexpressible = Self(rawValue: "inexpressible-permissions")
}

extension StorageError {
  private static let tokenCodes: Set<Code> = [
    .noToken, .expired, .storeUnavailable, .notPrivate, .invalidStore, .accessDenied, .signInExpired, .signInEnded,
    .unknownClient, .wrongState, .noListener, .invalidToken, .notYetValid, .inexpressible,
  ]

  /// True if a token, or the server that gives tokens, is at fault, and neither the network nor a setting.
  var isAboutToken: Bool {
    Self.tokenCodes.contains(code) || status == nil && [.invalidAnswer, .unsupported, .unavailable].contains(code)
  }
}
