import AsyncHTTPClient
import Buckia
import BuckiaStorage
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// Describes why a request got no answer, or only a part of one, with advice.
struct ConnectionFault {
  let url: HTTPAddress
  /// The proxy through which the request went; nil for none.
  let proxy: ProxyEnvironment.Server?
  let settings: HTTPSettings

  private func make(_ code: StorageError.Code, _ message: String, _ cause: any Error) -> StorageError {
    StorageError(code, "\(url.origin): \(message)", cause: cause)
  }

  /// What connections are made to.
  private var peer: String { proxy.map { "the proxy \($0.host):\($0.port)" } ?? "the server" }
  /// The setting that names the peer.
  private var setting: String { proxy == nil ? "the address" : "the proxy in the settings or the environment" }

  /// The server has kept a request waiting for too long.
  func silence(_ error: any Error) -> StorageError {
    make(
      .timedOut,
      "the server has stopped in the middle of the transfer, and said nothing for \(Self.shown(settings.idleSeconds)); try again, or let it take longer (idle-timeout)",
      error)
  }

  private static func shown(_ seconds: Double) -> String {
    seconds == seconds.rounded() ? "\(Int(seconds)) seconds" : "\(seconds) seconds"
  }

  /// The error for an error of the HTTP client.
  func meaning(of error: any Error) -> any Error {
    if error is CancellationError || error is StorageError { return error }
    if let error = error as? HTTPClientError { return meaning(ofClient: error) }
    if error is PinnedKeys.Mismatch {
      return make(
        .untrustedServer,
        "the server's key is none of those that are pinned; nothing was sent. Somebody may be in between, or the server has a new key",
        error)
    }
    if let error = error as? NIOConnectionError {
      if let failure = error.connectionErrors.first { return meaning(of: failure.error) }
      return make(
        .unreachable,
        "no server of the name \(error.host) is known; check \(setting) for a typing error, and whether this device is online",
        error)
    }
    if error is NIOSSLError || error is BoringSSLError {
      return "\(error)".contains("WRONG_VERSION_NUMBER")
        ? make(
          .unreachable, "the server does not encrypt at this port; check the port, or use an address with http://",
          error)
        : make(
          .interrupted,
          "no encrypted connection could be made: the server has ended it; check the address, and try again",
          error)
    }
    if let error = error as? IOError { return meaning(ofSystem: error.errnoCode, error) }
    if error is HTTPParserError {
      return make(
        .interrupted,
        "the server's answer ended too early, or is no HTTP; check that the address is that of a web server, and its port",
        error)
    }
    if error is ChannelError { return unanswered(error) }
    return make(.unreachable, "\(peer) cannot be reached: \(error)", error)
  }

  private func meaning(ofClient error: HTTPClientError) -> any Error {
    switch error {
    case .cancelled: return CancellationError()
    case .connectTimeout, .tlsHandshakeTimeout, .getConnectionFromPoolTimeout: return unanswered(error)
    case .httpProxyHandshakeTimeout, .socksHandshakeTimeout:
      return make(.unreachable, "\(peer) does not connect to the server in time; ask its operator", error)
    case .remoteConnectionClosed, .uncleanShutdown, .requestStreamCancelled:
      return make(
        .interrupted,
        "the server has closed the connection in the middle of it; try again, and ask its operator if that stays",
        error)
    case .proxyAuthenticationRequired:
      return make(.unauthorized, "the proxy wants a name and a password; put them into the proxy's address", error)
    case .invalidProxyResponse:
      return make(.unreachable, "\(peer) has not connected to the server; check \(setting)", error)
    case .bodyLengthMismatch: return make(.sourceChanged, "what was being sent changed its length meanwhile", error)
    default: return make(.invalidAnswer, "the request could not be made: \(error)", error)
    }
  }

  private func unanswered(_ error: any Error) -> StorageError {
    make(
      .unreachable,
      "\(peer) does not answer within \(Self.shown(settings.connectSeconds)); check \(setting), the network, and whether a firewall is in between",
      error)
  }

  private func meaning(ofSystem number: Int32, _ error: any Error) -> StorageError {
    switch number {
    case ECONNREFUSED:
      make(
        .unreachable,
        "nothing listens there: \(peer) has refused the connection; check \(setting) and its port, and whether the program there runs",
        error)
    case ECONNRESET, EPIPE, ECONNABORTED: make(.interrupted, "the connection broke; try again", error)
    case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL:
      make(.unreachable, "no network leads to \(peer); check whether this device is online, and \(setting)", error)
    case ETIMEDOUT: unanswered(error)
    default: make(.unreachable, "\(peer) cannot be reached: \(String(cString: strerror(number)))", error)
    }
  }

  // MARK: Certificates

  /// True if a connection was given up because of the server's certificate.
  func isAboutCertificate(_ error: any Error) -> Bool {
    error is NIOSSLExtraError || "\(error)".contains("CERTIFICATE_VERIFY_FAILED")
  }

  /// Says why a certificate is not trusted.
  ///
  /// - Parameter certificate: The certificate of the server; nil if it could not be read.
  func untrusted(_ error: any Error, _ certificate: NIOSSLCertificate?) -> StorageError {
    let clock = WallClock.unixMilliseconds / 1000
    let reason: String
    if let certificate, Int64(certificate.notValidAfter) < clock {
      reason =
        "the server's certificate has expired on \(Self.day(certificate.notValidAfter)); its operator has to renew it. If that day is not over, set the clock of this device right (it says \(Self.day(Int(clock))))"
    } else if let certificate, Int64(certificate.notValidBefore) > clock {
      reason =
        "the server's certificate is good only from \(Self.day(certificate.notValidBefore)) on; the clock of this device is probably wrong (it says \(Self.day(Int(clock))))"
    } else if error is NIOSSLExtraError {
      let names = certificate.map { Self.names(in: $0) } ?? []
      let owner = names.isEmpty ? "another server" : names.prefix(5).joined(separator: ", ")
      reason =
        "the server's certificate is for \(owner), and not for \(url.host); check the address, or use the name in it"
    } else {
      reason =
        "the server's certificate is not trusted: no authority that is known here has signed it. If the authority is your own, name its certificate in the settings (http: { authorities: [file.pem] }); else somebody may be in between"
    }
    return make(.untrustedServer, "\(reason). Nothing was sent", error)
  }

  private static func day(_ seconds: Int) -> String {
    String(UTCTime(unixSeconds: Int64(seconds)).rfc3339.prefix(10))
  }

  /// The names of the servers in a certificate: RFC 5280, section 4.2.1.6. They are untrusted text.
  private static func names(in certificate: NIOSSLCertificate) -> [String] {
    certificate._subjectAlternativeNames().compactMap { name in
      guard name.nameType == .dnsName else { return nil }
      let text = name.contents.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
      return text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } ? text : nil
    }
  }

  private struct Seen: Error {}

  /// The untrusted certificate of a server; nil if it cannot be read. Nothing is sent to the server.
  func shownCertificate() async -> NIOSSLCertificate? {
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.certificateVerification = .none
    var configuration = HTTPClient.Configuration(
      tlsConfiguration: tls, redirectConfiguration: .disallow,
      timeout: HTTPClient.Configuration.Timeout(connect: .milliseconds(Int64(settings.connectSeconds * 1000))))
    configuration.connectionPool.retryConnectionEstablishment = false
    configuration.proxy = proxy?.configuration
    let seen = NIOLockedValueBox<NIOSSLCertificate?>(nil)
    // The connection is closed when it has been made.
    let look: @Sendable (any Channel) -> EventLoopFuture<Void> = { channel in
      channel.nioSSL_peerCertificate().flatMapThrowing { certificate in
        seen.withLockedValue { $0 = certificate }
        throw Seen()
      }
    }
    configuration.http1_1ConnectionDebugInitializer = look
    configuration.http2ConnectionDebugInitializer = look
    let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    defer { client.shutdown { _ in } }
    do { _ = try await client.execute(HTTPClientRequest(url: url.origin), timeout: .seconds(30)) } catch {
      // This is its end in any case.
    }
    return seen.withLockedValue { $0 }
  }
}
