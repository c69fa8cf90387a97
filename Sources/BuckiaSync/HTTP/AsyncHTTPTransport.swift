import AsyncHTTPClient
import BuckiaBytes
import BuckiaStorage
import Crypto
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOSSL

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Brings requests to servers with async-http-client: HTTP/1.1 and HTTP/2, TLS with authorities and pinned keys of one's own, proxies.
///
/// Connections are reused, and closed when the last reference to the transport is released.
public final class AsyncHTTPTransport: HTTPTransport {
  private let settings: HTTPSettings
  private let environment: ProxyEnvironment?
  private let direct: HTTPClient
  private let limit: BandwidthLimit?
  /// The clients that go through a proxy: one for each, made when it is first needed.
  private let proxied = NIOLockedValueBox<[ProxyEnvironment.Server: HTTPClient]>([:])
  private let makeClient: @Sendable (HTTPClient.Configuration.Proxy?) -> HTTPClient

  /// Prepares connections; none is made yet.
  ///
  /// - Parameters:
  ///   - settings: How servers are reached.
  ///   - environment: The variables that name proxies, if the settings use those of the environment.
  /// - Throws: `StorageError` with `invalidSetting` when a certificate, a pinned key or a proxy is not in order.
  public init(
    _ settings: HTTPSettings = HTTPSettings(), environment: [String: String] = ProcessInfo.processInfo.environment
  ) throws(StorageError) {
    self.settings = settings
    self.environment = settings.proxy == .environment ? try ProxyEnvironment(environment) : nil
    limit = settings.bytesPerSecond.map { BandwidthLimit(bytesPerSecond: $0) }
    let configuration = try Self.configuration(settings)
    makeClient = { proxy in
      var configuration = configuration
      configuration.proxy = proxy
      return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }
    direct = makeClient(nil)
  }

  deinit {
    for client in [direct] + proxied.withLockedValue({ Array($0.values) }) { client.shutdown { _ in } }
  }

  // MARK: Settings

  private static func configuration(_ settings: HTTPSettings) throws(StorageError) -> HTTPClient.Configuration {
    var tls = TLSConfiguration.makeClientConfiguration()
    for file in settings.additionalAuthorities {
      do {
        tls.additionalTrustRoots.append(.certificates(try NIOSSLCertificate.fromPEMFile(file)))
      } catch {
        throw StorageError(
          .invalidSetting, "\(file) holds no certificates in PEM format, or cannot be read", cause: error)
      }
    }
    // An `IdleWatch` limits the later waits.
    var configuration = HTTPClient.Configuration(
      tlsConfiguration: tls, redirectConfiguration: .disallow,
      timeout: HTTPClient.Configuration.Timeout(connect: .milliseconds(Int64(settings.connectSeconds * 1000))))
    // The callers decide about retries, because they know the effects of the request.
    configuration.connectionPool.retryConnectionEstablishment = false
    if !settings.pinnedKeys.isEmpty {
      let pins = try PinnedKeys(settings.pinnedKeys)
      configuration.http1_1ConnectionDebugInitializer = { pins.check($0) }
      configuration.http2ConnectionDebugInitializer = { pins.check($0) }
    }
    return configuration
  }

  private func proxy(for address: HTTPAddress) -> ProxyEnvironment.Server? {
    if case .server(let host, let port) = settings.proxy {
      return ProxyEnvironment.Server(host: host, port: port, credentials: nil)
    }
    return environment?.server(for: address)
  }

  private func client(for address: HTTPAddress) -> HTTPClient {
    guard let server = proxy(for: address) else { return direct }
    return proxied.withLockedValue { known in
      if let client = known[server] { return client }
      let client = makeClient(server.configuration)
      known[server] = client
      return client
    }
  }

  /// The error of a request that brought no answer, or only a part of one.
  private func fault(_ error: any Error, of request: HTTPTransportRequest, _ watch: IdleWatch) async -> any Error {
    let fault = ConnectionFault(url: request.url, proxy: proxy(for: request.url), settings: settings)
    if watch.isOver, !Task.isCancelled { return fault.silence(error) }
    guard fault.isAboutCertificate(error) else { return fault.meaning(of: error) }
    return fault.untrusted(error, await fault.shownCertificate())
  }

  // MARK: Sending

  /// Sends a request once; see ``HTTPTransport/send(_:)``.
  public func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse {
    if !settings.pinnedKeys.isEmpty, !request.url.isSecure {
      throw StorageError(
        .untrustedServer,
        "\(request.url.origin): a key is pinned, and this connection would not be encrypted; nothing was sent")
    }
    var sent = HTTPClientRequest(url: request.url.description)
    sent.method = HTTPMethod(rawValue: request.method)
    for field in request.headers.fields { sent.headers.add(name: field.name, value: field.value) }
    let watch = IdleWatch(seconds: settings.idleSeconds)
    switch request.body {
    case .none: break
    case .bytes(let bytes): sent.body = .bytes(ByteBuffer(bytes: bytes))
    case .contents(let contents, let range):
      let chunks = contents.chunks(in: range)
      let limited = limit?.limiting(chunks) ?? chunks
      let watched = ByteChunks {
        var iterator = limited.makeAsyncIterator()
        return { try await watch.pausing { try await iterator.next() } }
      }
      sent.body = .stream(watched.map { ByteBuffer(bytes: $0) }, length: .known(Int64(range.count)))
    }
    let response: HTTPClientResponse
    do {
      response = try await watch.waiting { [client = client(for: request.url), sent] in
        try await client.execute(sent, deadline: .distantFuture)
      }
    } catch { throw await fault(error, of: request, watch) }
    var headers = HTTPHeaders()
    for field in response.headers { headers.add(field.name, field.value) }
    let body = response.body
    let chunks = ByteChunks {
      let reader = BodyReader(body)
      return {
        // The connection lives as long as its body is read.
        defer { withExtendedLifetime(self) {} }
        do { return try await watch.waiting { try await reader.next() } } catch {
          throw await self.fault(error, of: request, watch)
        }
      }
    }
    return HTTPTransportResponse(
      status: Int(response.status.code), headers: headers, body: limit?.limiting(chunks) ?? chunks)
  }
}

/// Reads the bytes of an answer, in one call at a time, which may come from different tasks.
private final class BodyReader: @unchecked Sendable {
  private var iterator: HTTPClientResponse.Body.AsyncIterator

  init(_ body: HTTPClientResponse.Body) { iterator = body.makeAsyncIterator() }

  /// The next bytes; nil at the end.
  func next() async throws -> [UInt8]? {
    while let buffer = try await iterator.next() {
      if buffer.readableBytes > 0 { return Array(buffer.readableBytesView) }
    }
    // A cancelled download is not at its end.
    try Task.checkCancellation()
    return nil
  }
}

/// The public keys that a server may have, by the SHA-256 of their SubjectPublicKeyInfo, as RFC 7469 digests them.
struct PinnedKeys: Sendable {
  /// The server has another key.
  struct Mismatch: Error {}

  private let digests: Set<[UInt8]>

  /// - Parameter texts: Digests in hexadecimal.
  /// - Throws: `StorageError` with `invalidSetting` when one is none.
  init(_ texts: [String]) throws(StorageError) {
    var digests: Set<[UInt8]> = []
    for text in texts {
      guard let bytes = HexText.bytes(text.lowercased()), bytes.count == SHA256.byteCount else {
        throw StorageError(
          .invalidSetting, "a pinned key is given as the 64 hexadecimal digits of its SHA-256, not as \"\(text)\"")
      }
      digests.insert(bytes)
    }
    self.digests = digests
  }

  /// Checks an encrypted connection before anything is sent through it.
  func check(_ channel: any Channel) -> EventLoopFuture<Void> {
    channel.nioSSL_peerCertificate().flatMapThrowing { certificate in
      guard let certificate else { throw Mismatch() }
      let key = try certificate.extractPublicKey().toSPKIBytes()
      guard digests.contains(Array(SHA256.hash(data: key))) else { throw Mismatch() }
    }
  }
}

/// Limits the bytes per second of all transfers together.
actor BandwidthLimit {
  private let bytesPerSecond: Int64
  private let clock = ContinuousClock()
  /// When everything that was let through will have taken its time.
  private var free: ContinuousClock.Instant

  init(bytesPerSecond: Int64) {
    self.bytesPerSecond = max(1, bytesPerSecond)
    free = clock.now
  }

  /// Waits until a number of bytes may pass.
  func pass(_ count: Int) async throws {
    let start = max(free, clock.now)
    free = start + .nanoseconds(Int64(Double(count) / Double(bytesPerSecond) * 1e9))
    if start > clock.now { try await clock.sleep(until: start) }
  }

  /// The same bytes, no faster than they may be.
  nonisolated func limiting(_ chunks: ByteChunks) -> ByteChunks {
    chunks.checked { { if let chunk = $0 { try await self.pass(chunk.count) } } }
  }
}

/// Cancels a request when the server keeps it waiting for too long.
///
/// Only waiting for the server counts, not the time in which the caller does not read, or has nothing to send yet
/// because of a bandwidth limit or a slow disk. The timeouts of async-http-client cannot distinguish these.
final class IdleWatch: Sendable {
  /// How often a watch looks before it gives up. A program that is too busy to look has not waited for the server.
  private static let looks = 4

  private struct State {
    /// The number of the wait that goes on, or of the last one.
    var wait = 0
    var isWaiting = false
    var cancel: (@Sendable () -> Void)?
    var hasGivenUp = false
  }

  private let state = NIOLockedValueBox(State())
  private let watcher: Task<Void, Never>

  /// Starts to watch.
  ///
  /// - Parameter seconds: How long the server may take for its next bytes, or for taking ours.
  init(seconds: Double) {
    let pause = Duration.seconds(seconds / Double(Self.looks))
    watcher = Task { [state] in
      var last: Int?
      var count = 0
      while count < Self.looks {
        do { try await Task.sleep(for: pause) } catch { return }
        let wait = state.withLockedValue { $0.isWaiting ? $0.wait : nil }
        count = wait != nil && wait == last ? count + 1 : 0
        last = wait
      }
      let cancel = state.withLockedValue {
        $0.hasGivenUp = true
        return $0.cancel
      }
      cancel?()
    }
  }

  deinit { watcher.cancel() }

  /// True if the server has kept a request waiting for too long.
  var isOver: Bool { state.withLockedValue { $0.hasGivenUp } }

  /// Runs work that waits for the server. It is cancelled with the surrounding task, and on a timeout.
  func waiting<Result: Sendable>(
    for work: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    let task = Task(operation: work)
    let isLate = state.withLockedValue {
      $0.wait += 1
      $0.isWaiting = true
      $0.cancel = { task.cancel() }
      return $0.hasGivenUp
    }
    if isLate { task.cancel() }
    defer {
      state.withLockedValue {
        $0.isWaiting = false
        $0.cancel = nil
      }
    }
    return try await withTaskCancellationHandler(operation: { try await task.value }, onCancel: { task.cancel() })
  }

  /// Runs work that the server waits for. Its time does not count.
  func pausing<Result>(for work: () async throws -> Result) async throws -> Result {
    state.withLockedValue { $0.isWaiting = false }
    defer {
      state.withLockedValue {
        $0.wait += 1
        $0.isWaiting = $0.cancel != nil
      }
    }
    return try await work()
  }
}
