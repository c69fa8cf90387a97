/// Why a server has given out no token (RFC 6749, section 5.2; RFC 8628, section 3.5).
struct OAuthRefusal: Error, Sendable, CustomStringConvertible {
  /// The word that the server uses.
  let code: String
  /// What it says beside that.
  private let explanation: String?
  private let origin: String
  private let status: Int

  /// Reads an answer.
  ///
  /// - Throws: `TokenError` with `invalidAnswer` when it gives no reason.
  init(_ answer: JSONAnswer, status: Int) throws(TokenError) {
    code = ShownText.shown(try answer.requiredText("error"))
    explanation = try answer.text("error_description").map { ShownText.shown($0) }
    origin = answer.origin
    self.status = status
  }

  /// What came back through the browser.
  init(code: String, explanation: String?, origin: String) {
    self.code = ShownText.shown(code)
    self.explanation = explanation.map { ShownText.shown($0) }
    self.origin = origin
    status = 0
  }

  var description: String { explanation.map { "\(code): \($0)" } ?? code }

  /// The error in words for people.
  var error: TokenError {
    let (code, message): (TokenError.Code, String) =
      switch self.code {
      case "access_denied": (.accessDenied, "the sign-in was refused; nothing was changed")
      case "expired_token": (.signInExpired, "the sign-in was not finished in time; begin again")
      case "invalid_grant": (.signInEnded, "the sign-in has ended or was withdrawn; sign in again")
      case "invalid_client", "unauthorized_client":
        (
          .unknownClient,
          "the sign-in server does not know this app, or not its secret; check the client ID and the secret"
        )
      case "unsupported_grant_type", "unsupported_response_type":
        (
          .unsupported,
          "the sign-in server does not let this app sign in this way; allow it in the server's settings of the app"
        )
      case "invalid_scope":
        (.invalidSetting, "the sign-in server does not give this app what it asks for; check the scopes")
      case "login_required", "interaction_required", "consent_required":
        (.signInEnded, "the sign-in server wants to see the person; sign in again")
      case "temporarily_unavailable", "server_error", "slow_down":
        (.unavailable, "the sign-in server has a fault, or is overloaded; try again later")
      default: (.invalidAnswer, "the sign-in server has refused this")
      }
    return TokenError(code, "\(message) (\(origin) says: \(self))", cause: self)
  }
}
