import BuckiaBytes
import Dispatch
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOPosix

/// An accepted request of a browser.
struct PageRequest: Sendable {
  /// The method of a request.
  enum Method: Sendable {
    /// Something is wanted, and nothing is changed.
    case get
    /// Something is to be changed.
    case post
  }

  /// The method.
  let method: Method
  /// The parts of the path after the token, of letters, digits and `-._` each; empty for the first page.
  let path: [String]
  /// The query of the address.
  let query: FormFields
  /// The fields of the sent form; empty if nothing is to be changed.
  var form = FormFields()
  /// The version that the browser has already, from the header; nil for none.
  let knownVersion: String?
}

/// The fields of a form or of the query of an address, in their order: `name=value&…`, see
/// [the URL standard](https://url.spec.whatwg.org/#application/x-www-form-urlencoded).
struct FormFields: Equatable, Sendable {
  /// A field.
  struct Field: Equatable, Sendable {
    let name: String
    let value: String
  }

  /// The fields.
  private(set) var fields: [Field] = []

  /// No fields.
  init() {}

  /// Fields of one's own.
  init(_ fields: [(name: String, value: String)]) {
    self.fields = fields.map { Field(name: $0.name, value: $0.value) }
  }

  /// Reads fields.
  ///
  /// - Returns: nil if a percent sign does not begin a byte, or the bytes are not UTF-8.
  init?(parsing bytes: some Collection<UInt8>) {
    for pair in bytes.split(separator: UInt8(ascii: "&")) {
      let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.decoded(parts[0]), let value = parts.count > 1 ? Self.decoded(parts[1]) : "" else {
        return nil
      }
      fields.append(Field(name: name, value: value))
    }
  }

  /// The value of the first field with a name; nil for none.
  subscript(name: String) -> String? {
    fields.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// The fields encoded for an address: ASCII in which attributes of a page have to escape only `&`.
  var encoded: String {
    fields.map { "\(PercentEncoding.encoded($0.name))=\(PercentEncoding.encoded($0.value))" }.joined(separator: "&")
  }

  private static func decoded(_ bytes: some Collection<UInt8>) -> String? {
    let spaced = bytes.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
    return String(validating: spaced, as: UTF8.self).flatMap { PercentEncoding.decoded($0) }
  }
}

/// A response to a browser.
struct PageResponse: Sendable {
  /// How it went.
  enum Status: Int, Sendable {
    case ok = 200
    /// The request is done; its result is at another address.
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
  let status: Status
  /// The type of the body.
  let mediaType: String
  /// The content security policy.
  let policy: String
  /// Further header fields.
  let headers: [(name: String, value: String)]
  /// The body.
  let body: [UInt8]

  /// The policy of a response that is not a page: nothing is allowed.
  private static let noPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

  /// - Parameters:
  ///   - status: How it went.
  ///   - mediaType: The type of the body.
  ///   - policy: The content security policy; nil to allow nothing.
  ///   - headers: Further header fields.
  ///   - body: The body.
  init(
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
  static func text(_ status: Status, _ text: String) -> PageResponse {
    PageResponse(status, body: Array("\(text)\n".utf8))
  }

  /// Redirects the browser to another page, where a reload repeats nothing.
  static func redirect(to path: String) -> PageResponse {
    PageResponse(.seeOther, headers: [("Location", path)])
  }

  /// All header fields.
  var allHeaders: [(name: String, value: String)] {
    [
      ("Content-Type", mediaType), ("Content-Length", "\(body.count)"), ("Content-Security-Policy", policy),
      ("Cache-Control", "no-store"), ("Referrer-Policy", "no-referrer"), ("X-Content-Type-Options", "nosniff"),
      ("X-Frame-Options", "DENY"), ("Cross-Origin-Opener-Policy", "same-origin"),
      ("Cross-Origin-Resource-Policy", "same-origin"),
    ] + headers
  }
}

/// The limits of a server, by default for the browsers of one person.
struct ServerLimits: Sendable {
  /// The most bytes of the address and the header fields of a request.
  var headBytes = 16 << 10
  /// The most bytes of a form.
  var bodyBytes = 4 << 20
  /// The most simultaneous connections. A further one replaces the oldest one without an accepted request, or is closed
  /// if there is none.
  var connections = 32
  /// How long a connection may take for a request, and for taking the answer to it, in milliseconds. One that asks for
  /// nothing is closed after that.
  var milliseconds: Int64 = 60_000
}
