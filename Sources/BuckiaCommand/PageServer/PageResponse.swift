/// What a browser gets.
package struct PageResponse: Sendable {
  /// How it went.
  package enum Status: Int, Sendable {
    case ok = 200
    /// It is done; what came of it is at another address.
    case seeOther = 303
    case notModified = 304
    case badRequest = 400
    case forbidden = 403
    case notFound = 404
    case methodNotAllowed = 405
    case tooLarge = 413
    case unsupportedMediaType = 415
    /// The address names another host.
    case misdirected = 421
    case headTooLarge = 431
    case failed = 500
    case unavailable = 503
  }

  /// How it went.
  package let status: Status
  /// What the body is.
  package let mediaType: String
  /// What the browser may do with it.
  package let policy: String
  /// Further header fields.
  package let headers: [(name: String, value: String)]
  /// The body.
  package let body: [UInt8]

  /// What may be done with something that is no page: nothing.
  private static let noPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

  /// - Parameters:
  ///   - status: How it went.
  ///   - mediaType: What the body is.
  ///   - policy: What the browser may do with it; nil for nothing.
  ///   - headers: Further header fields.
  ///   - body: The body.
  package init(
    _ status: Status, mediaType: String = "text/plain; charset=utf-8", policy: String? = nil,
    headers: [(name: String, value: String)] = [], body: [UInt8] = []
  ) {
    self.status = status
    self.mediaType = mediaType
    self.policy = policy ?? Self.noPolicy
    self.headers = headers
    self.body = body
  }

  /// A line of text.
  package static func text(_ status: Status, _ text: String) -> PageResponse {
    PageResponse(status, body: Array("\(text)\n".utf8))
  }

  /// Sends the browser on to another page, where a reload does nothing twice.
  package static func redirect(to path: String) -> PageResponse {
    PageResponse(.seeOther, headers: [("Location", path)])
  }

  /// What stands before the body.
  var allHeaders: [(name: String, value: String)] {
    [
      ("Content-Type", mediaType), ("Content-Length", "\(body.count)"), ("Content-Security-Policy", policy),
      ("Cache-Control", "no-store"), ("Referrer-Policy", "no-referrer"), ("X-Content-Type-Options", "nosniff"),
      ("X-Frame-Options", "DENY"), ("Cross-Origin-Opener-Policy", "same-origin"),
      ("Cross-Origin-Resource-Policy", "same-origin"),
    ] + headers
  }
}
