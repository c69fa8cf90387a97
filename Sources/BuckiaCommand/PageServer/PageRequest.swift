import BuckiaBytes
import Dispatch
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOPosix

/// What a browser asks for, once it is clear that it may.
struct PageRequest: Sendable {
  /// What is to be done.
  enum Method: Sendable {
    /// Something is wanted, and nothing is changed.
    case get
    /// Something is to be changed.
    case post
  }

  /// What is to be done.
  let method: Method
  /// The parts of the path behind the token, of letters, digits and `-._` each; none for the first page.
  let path: [String]
  /// The query of the address.
  let query: FormFields
  /// The fields of the form that was sent; none where nothing is to be changed.
  var form = FormFields()
  /// The version that the browser has already, as it stands in the header; nil where it has none.
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
  /// - Returns: nil where a percent sign does not begin a byte, or the bytes are not UTF-8.
  init?(parsing bytes: some Collection<UInt8>) {
    for pair in bytes.split(separator: UInt8(ascii: "&")) {
      let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.decoded(parts[0]), let value = parts.count > 1 ? Self.decoded(parts[1]) : "" else {
        return nil
      }
      fields.append(Field(name: name, value: value))
    }
  }

  /// The value of the first field of a name; nil where there is none.
  subscript(name: String) -> String? {
    fields.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
  }

  /// The fields as they stand in an address: ASCII that no attribute of a page has to escape but for `&`.
  var encoded: String {
    fields.map { "\(PercentEncoding.encoded($0.name))=\(PercentEncoding.encoded($0.value))" }.joined(separator: "&")
  }

  private static func decoded(_ bytes: some Collection<UInt8>) -> String? {
    let spaced = bytes.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
    return String(validating: spaced, as: UTF8.self).flatMap { PercentEncoding.decoded($0) }
  }
}

/// What a browser gets.
struct PageResponse: Sendable {
  /// How it went.
  enum Status: Int, Sendable {
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
  let status: Status
  /// What the body is.
  let mediaType: String
  /// What the browser may do with it.
  let policy: String
  /// Further header fields.
  let headers: [(name: String, value: String)]
  /// The body.
  let body: [UInt8]

  /// What may be done with something that is no page: nothing.
  private static let noPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

  /// - Parameters:
  ///   - status: How it went.
  ///   - mediaType: What the body is.
  ///   - policy: What the browser may do with it; nil for nothing.
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

  /// Sends the browser on to another page, where a reload does nothing twice.
  static func redirect(to path: String) -> PageResponse {
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

/// How much of a server anybody may take up: by default as one person's browsers need it.
struct ServerLimits: Sendable {
  /// How many bytes the address and the header fields of a request may have.
  var headBytes = 16 << 10
  /// How many bytes a form may have.
  var bodyBytes = 4 << 20
  /// How many connections there may be at once. A further one takes the place of the oldest one without an accepted request, or is closed
  /// where there is none.
  var connections = 32
  /// How long a connection may take for a request, and for taking the answer to it, in milliseconds. One that asks for
  /// nothing is closed after that.
  var milliseconds: Int64 = 60_000
}
