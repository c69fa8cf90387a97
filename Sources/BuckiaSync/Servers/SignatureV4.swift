import BuckiaBytes
import BuckiaStorage
import Crypto
import NIOConcurrencyHelpers

/// Signs requests as AWS's Signature Version 4 describes:
/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html>.
struct SignatureV4: Sendable {
  /// The value for a body without a digest. Use it only on encrypted connections.
  static let unsignedPayload = "UNSIGNED-PAYLOAD"
  /// The SHA-256 of nothing.
  static let emptyPayload = hash([])

  private static let algorithm = "AWS4-HMAC-SHA256"

  let credentials: S3Credentials
  let region: String
  let service: String

  /// Adds the header fields that sign a request: `Host` apart, all that it has are signed.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - payload: The SHA-256 of the body in hexadecimal, or ``unsignedPayload``.
  ///   - time: The time.
  func sign(_ request: inout HTTPTransportRequest, payload: String, at time: ISOTime) {
    request.headers["X-Amz-Date"] = time.basic
    request.headers["X-Amz-Security-Token"] = credentials.sessionToken
    var signed = request.headers
    signed["Host"] = request.url.authority
    let (canonical, names) = Self.canonical(signed)
    let text = canonicalRequest(request.method, request.url, canonical, names, payload)
    request.headers["Authorization"] =
      "\(Self.algorithm) Credential=\(credentials.accessKey)/\(scope(at: time)),SignedHeaders=\(names),Signature=\(signature(of: text, at: time))"
  }

  /// An address with its signature, for use without credentials.
  ///
  /// - Parameters:
  ///   - method: The allowed method.
  ///   - url: The address.
  ///   - headers: The fields that they must send, too.
  ///   - seconds: How long it is good for.
  ///   - time: The time.
  func presigned(
    _ method: String, _ url: HTTPAddress, headers: HTTPHeaders = [:], seconds: Int, at time: ISOTime
  ) -> HTTPAddress {
    var signed = headers
    signed["Host"] = url.authority
    let (canonical, names) = Self.canonical(signed)
    var items = url.queryItems
    items += [
      ("X-Amz-Algorithm", Self.algorithm), ("X-Amz-Credential", "\(credentials.accessKey)/\(scope(at: time))"),
      ("X-Amz-Date", time.basic), ("X-Amz-Expires", "\(seconds)"), ("X-Amz-SignedHeaders", names),
    ]
    if let token = credentials.sessionToken { items.append(("X-Amz-Security-Token", token)) }
    let address = url.with(query: items)
    let text = canonicalRequest(method, address, canonical, names, Self.unsignedPayload)
    return url.with(query: items + [("X-Amz-Signature", signature(of: text, at: time))])
  }

  // MARK: Steps

  /// The first step. S3 signs the path of the request; other services encode it twice.
  func canonicalRequest(
    _ method: String, _ url: HTTPAddress, _ headers: String, _ names: String, _ payload: String
  ) -> String {
    let query = url.queryItems.map { (PercentEncoding.encoded($0.0), PercentEncoding.encoded($0.1)) }
      .sorted { $0.0 == $1.0 ? Self.precedes($0.1, $1.1) : Self.precedes($0.0, $1.0) }
      .map { "\($0.0)=\($0.1)" }.joined(separator: "&")
    return [method, url.path, query, headers, names, payload].joined(separator: "\n")
  }

  /// The header fields by name, a line each, and their names.
  static func canonical(_ headers: HTTPHeaders) -> (lines: String, names: String) {
    var values: [String: String] = [:]
    for field in headers.fields {
      let value = field.value.split { $0 == " " || $0 == "\t" || $0 == "\n" }.joined(separator: " ")
      let name = field.name.lowercased()
      values[name] = values[name].map { "\($0),\(value)" } ?? value
    }
    let names = values.keys.sorted(by: precedes)
    return (names.map { "\($0):\(values[$0] ?? "")\n" }.joined(), names.joined(separator: ";"))
  }

  private static func precedes(_ one: String, _ other: String) -> Bool {
    one.utf8.lexicographicallyPrecedes(other.utf8)
  }

  private func scope(at time: ISOTime) -> String { "\(time.day)/\(region)/\(service)/aws4_request" }

  private func signature(of canonicalRequest: String, at time: ISOTime) -> String {
    let text = [Self.algorithm, time.basic, scope(at: time), Self.hash(Array(canonicalRequest.utf8))]
      .joined(separator: "\n")
    var key = SymmetricKey(data: Array("AWS4\(credentials.secret)".utf8))
    for part in [time.day, region, service, "aws4_request"] {
      key = SymmetricKey(data: Array(HMAC<SHA256>.authenticationCode(for: Array(part.utf8), using: key)))
    }
    return HexText.lowercase(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: key))
  }

  private static func hash(_ bytes: [UInt8]) -> String { HexText.lowercase(SHA256.hash(data: bytes)) }
}

/// Credentials for an S3 server.
public struct S3Credentials: Sendable, Equatable {
  /// The access key, which is no secret.
  public let accessKey: String
  /// The secret key.
  public let secret: String
  /// What belongs to temporary credentials.
  public let sessionToken: String?

  /// Takes credentials.
  public init(accessKey: String, secret: String, sessionToken: String? = nil) {
    self.accessKey = accessKey
    self.secret = secret
    self.sessionToken = sessionToken
  }
}

extension S3Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The access key alone: secrets are not printed.
  public var description: String { "S3 access key \(accessKey)" }
  /// The same as the description: secrets are not printed.
  public var debugDescription: String { description }
  /// What `dump` shows: nothing secret.
  public var customMirror: Mirror { Mirror(self, children: ["accessKey": accessKey]) }
}

extension HTTPAddress {
  /// The decoded names and values of the query. An item without an equals sign has an empty value.
  var queryItems: [(String, String)] {
    guard let query else { return [] }
    return query.split(separator: "&").map { item in
      let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      func decoded(_ part: Substring) -> String { PercentEncoding.decoded(part) ?? String(part) }
      return (decoded(parts[0]), parts.count > 1 ? decoded(parts[1]) : "")
    }
  }
}

/// Signs requests to an S3 server, by the server's clock if that is known to differ from ours.
final class S3Authorization: RequestAuthorization {
  /// The field with the SHA-256 of a request's body.
  static let payloadField = "X-Amz-Content-Sha256"

  let signature: SignatureV4
  private let now: @Sendable () -> Int64
  /// The lead of the server's clock in milliseconds.
  private let skew = NIOLockedValueBox<Int64>(0)

  /// - Parameters:
  ///   - signature: What signs.
  ///   - now: The present time in milliseconds since 1970.
  init(
    _ signature: SignatureV4, now: @escaping @Sendable () -> Int64 = { WallClock.unixMilliseconds }
  ) {
    self.signature = signature
    self.now = now
  }

  /// The time for a signature.
  var time: ISOTime { ISOTime(seconds: (now() + skew.withLockedValue { $0 }) / 1000) }

  func authorize(_ request: inout HTTPTransportRequest) {
    signature.sign(&request, payload: request.headers[Self.payloadField] ?? SignatureV4.emptyPayload, at: time)
  }

  func renew(after error: StorageError, _ response: HTTPTransportResponse, isFirst: Bool) -> Bool {
    guard isFirst, error.code == .clockSkew, let date = response.headers["Date"].flatMap({ HTTPDate.milliseconds($0) })
    else { return false }
    let ahead = date - now()
    return skew.withLockedValue { known in
      defer { known = ahead }
      return known != ahead
    }
  }
}
