import BuckiaBytes
import NIOHTTP1

/// Accepts the requests of a browser on this computer that knows the address, unless a page of another site has sent
/// them.
struct RequestGate: Sendable {
  let token: PageToken
  let port: Int
  let limits: ServerLimits

  /// What becomes of a request.
  enum Verdict {
    case accepted(PageRequest)
    case refused(PageResponse)
  }

  /// Looks at everything before the body.
  func verdict(on head: HTTPRequestHead) -> Verdict {
    guard byteCount(of: head) <= limits.headBytes else {
      return .refused(.text(.headTooLarge, "The address or the header fields are too long."))
    }
    // A web site whose name leads to this computer names that.
    let hosts = head.headers["Host"]
    guard hosts.count == 1, ["127.0.0.1:\(port)", "localhost:\(port)"].contains(hosts[0]) else {
      return .refused(.text(.misdirected, "This is not the host of that name."))
    }
    guard let (path, query) = address(in: head.uri) else { return .refused(.text(.notFound, "Not found.")) }
    let method: PageRequest.Method
    switch head.method {
    case .GET, .HEAD: method = .get
    case .POST: method = .post
    default:
      return .refused(
        PageResponse(
          .methodNotAllowed, headers: [("Allow", "GET, HEAD, POST")], body: Array("Only GET, HEAD and POST.\n".utf8)))
    }
    guard isOwn(head.headers, method, host: hosts[0]) else {
      return .refused(.text(.forbidden, "This request comes from another site."))
    }
    if method == .post, !isForm(head.headers) {
      return .refused(.text(.unsupportedMediaType, "Only forms are taken: application/x-www-form-urlencoded."))
    }
    let lengths = head.headers["Content-Length"].map { Int($0) }
    if lengths.contains(where: { $0 ?? .max > limits.bodyBytes }) {
      return .refused(.text(.tooLarge, "The form is too large."))
    }
    guard let query else { return .refused(.text(.badRequest, "The query of the address cannot be read.")) }
    return .accepted(
      PageRequest(method: method, path: path, query: query, knownVersion: head.headers["If-None-Match"].first))
  }

  private func byteCount(of head: HTTPRequestHead) -> Int {
    head.headers.reduce(head.uri.utf8.count) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
  }

  /// The address after the token; nil if it does not begin with the token.
  private func address(in uri: String) -> (path: [String], query: FormFields?)? {
    let halves = uri.utf8.split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
    var parts = halves[0].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)[...]
    guard parts.popFirst()?.isEmpty == true, let first = parts.popFirst(), token.matches(first) else { return nil }
    if parts.last?.isEmpty == true { parts.removeLast() }
    let path = parts.map { String(Substring($0)) }
    guard path.allSatisfy(Self.isPlain) else { return nil }
    return (path, halves.count > 1 ? FormFields(parsing: halves[1]) : FormFields())
  }

  private static func isPlain(_ part: String) -> Bool {
    !part.isEmpty
      && part.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }

  /// True if one of our own pages, or a person, has sent the request, as far as the browser reports it
  private func isOwn(_ headers: HTTPHeaders, _ method: PageRequest.Method, host: String) -> Bool {
    let (sites, origins) = (headers["Sec-Fetch-Site"], headers["Origin"])
    guard sites.count <= 1, origins.count <= 1 else { return false }
    let isOurs = origins.first == "http://\(host)"
    if method == .post {
      // A form of a page that sends no referrer has no origin either: then only the browser's own word counts.
      if isOurs { return sites.isEmpty || sites == ["same-origin"] }
      return origins == ["null"] && sites == ["same-origin"]
    }
    guard origins.isEmpty || isOurs else { return false }
    switch sites.first {
    case nil, "none", "same-origin": return true
    // Somebody has followed a link to us.
    default: return headers["Sec-Fetch-Mode"] == ["navigate"] && headers["Sec-Fetch-Dest"] == ["document"]
    }
  }

  private func isForm(_ headers: HTTPHeaders) -> Bool {
    let types = headers["Content-Type"]
    guard types.count == 1 else { return false }
    let type = types[0].utf8.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") }
    return String(Substring(type)).lowercased() == "application/x-www-form-urlencoded"
  }
}

/// The secret part of an address: 160 random bits, as 40 hexadecimal digits.
struct PageToken: Sendable {
  /// The digits for addresses.
  let text: String

  private static let byteCount = 20

  /// Creates a random token.
  init() {
    var generator = SystemRandomNumberGenerator()
    text = HexText.lowercase((0..<Self.byteCount).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
  }

  /// True if a text is the token. The time of the comparison does not reveal where they differ.
  func matches(_ other: some Collection<UInt8>) -> Bool {
    guard other.count == text.utf8.count else { return false }
    var difference: UInt8 = 0
    for (mine, theirs) in zip(text.utf8, other) { difference |= mine ^ theirs }
    return difference == 0
  }
}
