import BuckiaBytes
import BuckiaStorage

/// What brings requests to servers. On Linux that is async-http-client (``AsyncHTTPTransport``); an app on Apple's systems can plug in one
/// that uses URLSession, for transfers in the background.
public protocol HTTPTransport: Sendable {
  /// Sends a request once: no retries, no redirects, no credentials of its own.
  ///
  /// - Returns: The answer, as soon as its header has arrived.
  /// - Throws: `StorageError` with `unreachable`, `interrupted`, `timedOut` or `untrustedServer`; `CancellationError`.
  func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse
}

/// A request to a server, ready to be sent.
public struct HTTPTransportRequest: Sendable {
  /// The method, in capitals.
  public var method: String
  /// The address.
  public var url: HTTPAddress
  /// The header fields, without `Host` and `Content-Length`, which the transport adds.
  public var headers: HTTPHeaders
  /// The bytes that go along.
  public var body: Body

  /// The body of a request.
  public enum Body: Sendable {
    /// Nothing, and no `Content-Length`.
    case none
    /// Bytes.
    case bytes([UInt8])
    /// Part of a file or of bytes, read while it is sent.
    case contents(StorageContents, Range<Int64>)

    /// The size in bytes.
    public var byteCount: Int64 {
      switch self {
      case .none: 0
      case .bytes(let bytes): Int64(bytes.count)
      case .contents(_, let range): Int64(range.count)
      }
    }
  }

  /// Creates a request.
  public init(_ method: String, _ url: HTTPAddress, headers: HTTPHeaders = [:], body: Body = .none) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
  }
}

/// The answer of a server: the status and header fields at once, the bytes while they arrive.
public struct HTTPTransportResponse: Sendable {
  /// The status.
  public var status: Int
  /// The header fields.
  public var headers: HTTPHeaders
  /// The bytes. An incomplete read closes the connection.
  public var body: ByteChunks

  /// Creates an answer.
  public init(status: Int, headers: HTTPHeaders, body: ByteChunks) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// The header fields of a request or an answer, in their order. Names are compared without regard to case (RFC 9110, section 5.1).
public struct HTTPHeaders: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  /// The fields.
  public private(set) var fields: [Field]

  /// One field.
  public struct Field: Sendable, Equatable {
    /// Its name.
    public let name: String
    /// Its value.
    public let value: String
  }

  /// No fields.
  public init() { fields = [] }

  /// Takes names and values.
  public init(dictionaryLiteral elements: (String, String)...) {
    fields = elements.map { Field(name: $0.0, value: $0.1) }
  }

  /// The value of the first field of that name. Setting it replaces all of them; nil removes them.
  public subscript(name: String) -> String? {
    get { fields.first { ASCIIName.matches($0.name, name) }?.value }
    set {
      fields.removeAll { ASCIIName.matches($0.name, name) }
      if let newValue { add(name, newValue) }
    }
  }

  /// Adds a field after the others.
  public mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }
}

extension ObjectVersion {
  /// Suffixes of tags of compressed answers, by Apache's modules, Jetty and others.
  private static let encodings = ["--gzip", "-gzip", ";gzip", "-br"]

  /// Parses an entity tag in the forms that servers really send: without quotation marks in listings, as a weak one in
  /// its first second or if the answer is compressed. All of these name one version.
  init(entityTag text: String) {
    var tag = text.hasPrefix("W/") ? text.dropFirst(2) : text[...]
    if tag.utf8.count > 1, tag.first == "\"", tag.last == "\"" { tag = tag.dropFirst().dropLast() }
    for encoding in Self.encodings where tag.hasSuffix(encoding) {
      tag = tag.dropLast(encoding.count)
      break
    }
    self.init("\"\(tag)\"")
  }
}

/// How servers are reached.
public struct HTTPSettings: Sendable {
  /// How long to wait for a connection, in seconds.
  public var connectSeconds = 15.0
  /// The longest silence of a server in the middle of a request or an answer, in seconds.
  public var idleSeconds = 60.0
  /// Files with certificates in PEM format that are trusted beside the system's: those of an authority of one's own.
  public var additionalAuthorities: [String] = []
  /// SHA-256 digests of the server's public key (SubjectPublicKeyInfo) in hexadecimal, of which one must be that of the server's certificate; empty for
  /// any certificate that the authorities provenance for. `openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | sha256sum` prints it.
  public var pinnedKeys: [String] = []
  /// The proxy; that of the environment by default.
  public var proxy = ProxyChoice.environment
  /// The most bytes per second, sent and received together; nil for no limit.
  public var bytesPerSecond: Int64?
  /// How often a request is repeated.
  public var retries = RetryPolicy()

  /// Makes settings with the defaults.
  public init() {}
}

/// The choice of a proxy.
public enum ProxyChoice: Sendable, Equatable {
  /// The proxies in `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy`, in either case.
  case environment
  /// None.
  case none
  /// This one, for all servers.
  case server(host: String, port: Int)
}

/// How often and how soon a request is repeated that failed for no lasting reason.
public struct RetryPolicy: Sendable, Equatable {
  /// How often a request is sent at most.
  public var attempts = 5
  /// The pause before the first repetition, in milliseconds. It doubles each time, and a random half of it is left out,
  /// which keeps many clients from returning at once.
  public var firstPause: Int64 = 200
  /// The longest pause, in milliseconds. A server that wants to be left alone for longer ends the call with an error that says so.
  public var longestPause: Int64 = 30_000

  /// Creates a policy with the defaults.
  public init() {}

  /// The pause before a repetition.
  ///
  /// - Parameters:
  ///   - attempt: The number of the failed attempt, from 1.
  ///   - wanted: The pause that the server requests, in milliseconds.
  ///   - random: From 0 up to 1.
  /// - Returns: Milliseconds; nil if the server wants more than the longest pause.
  func pause(after attempt: Int, wanted: Int64?, random: Double) -> Int64? {
    if let wanted { return wanted <= longestPause ? max(0, wanted) : nil }
    let full = min(longestPause, firstPause << min(max(0, attempt - 1), 20))
    return full / 2 + Int64(Double(full / 2) * random)
  }
}
