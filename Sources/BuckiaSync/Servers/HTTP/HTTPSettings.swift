import BuckiaStorage

/// How servers are reached.
public struct HTTPSettings: Sendable {
  /// How long to wait for a connection, in seconds.
  public var connectSeconds = 15.0
  /// How long a server may say nothing in the middle of a request or an answer, in seconds.
  public var idleSeconds = 60.0
  /// Files with certificates in PEM format that are trusted beside the system's: those of an authority of one's own.
  public var additionalAuthorities: [String] = []
  /// SHA-256 digests of the server's public key (SubjectPublicKeyInfo) in hexadecimal, of which one must be that of the server's certificate; empty for
  /// any certificate that the authorities vouch for. `openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | sha256sum` prints it.
  public var pinnedKeys: [String] = []
  /// The proxy: that of the environment, unless it is said otherwise.
  public var proxy = ProxyChoice.environment
  /// How many bytes a second are sent and received together; nil for as many as there can be.
  public var bytesPerSecond: Int64?
  /// How often a request is repeated.
  public var retries = RetryPolicy()

  /// Makes settings with the defaults.
  public init() {}
}

/// Which proxy is used.
public enum ProxyChoice: Sendable, Equatable {
  /// What `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy` say, in letters of either case.
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
  /// The pause before the first repetition, in milliseconds. It doubles each time, and a random half of it is left out, so that many clients
  /// do not come back at once.
  public var firstPause: Int64 = 200
  /// The longest pause, in milliseconds. A server that wants to be left alone for longer ends the call with an error that says so.
  public var longestPause: Int64 = 30_000

  /// Makes a policy with the defaults.
  public init() {}

  /// The pause before a repetition.
  ///
  /// - Parameters:
  ///   - attempt: Which one has failed, from 1.
  ///   - wanted: What the server wants, in milliseconds.
  ///   - random: From 0 up to 1.
  /// - Returns: Milliseconds; nil when the server wants more than the longest pause.
  func pause(after attempt: Int, wanted: Int64?, random: Double) -> Int64? {
    if let wanted { return wanted <= longestPause ? max(0, wanted) : nil }
    let full = min(longestPause, firstPause << min(max(0, attempt - 1), 20))
    return full / 2 + Int64(Double(full / 2) * random)
  }
}
