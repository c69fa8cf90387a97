/// What brings requests to servers. On Linux that is async-http-client (``AsyncHTTPTransport``); an app on Apple's systems can plug in one
/// that uses URLSession, for transfers in the background.
public protocol HTTPTransport: Sendable {
  /// Sends a request once: no retries, no redirects, no credentials of its own.
  ///
  /// - Returns: The answer, as soon as its header has come.
  /// - Throws: `StorageError` with `unreachable`, `interrupted`, `timedOut` or `untrustedServer`; `CancellationError`.
  func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse
}
