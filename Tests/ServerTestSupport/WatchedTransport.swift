import BuckiaSync
import NIOConcurrencyHelpers

/// Forwards requests and records them, their answers, and the number of simultaneous requests.
public final class WatchedTransport: HTTPTransport {
  private struct State {
    var requests: [HTTPTransportRequest] = []
    var statuses: [Int] = []
    var underWay = 0
    var mostAtOnce = 0
  }

  private let inner: any HTTPTransport
  private let pause: Duration
  private let counts: @Sendable (HTTPTransportRequest) -> Bool
  private let state = NIOLockedValueBox(State())

  /// Watches a transport.
  ///
  /// - Parameters:
  ///   - inner: The transport that sends the requests.
  ///   - pause: How long each request waits before it is sent, so that simultaneous requests overlap.
  ///   - counts: Chooses the requests that ``mostAtOnce`` counts.
  public init(
    _ inner: any HTTPTransport, pause: Duration = .zero,
    counting counts: @escaping @Sendable (HTTPTransportRequest) -> Bool = { _ in true }
  ) {
    self.inner = inner
    self.pause = pause
    self.counts = counts
  }

  /// The sent requests, in order.
  public var requests: [HTTPTransportRequest] { state.withLockedValue { $0.requests } }
  /// The statuses of the answers, in order of arrival.
  public var statuses: [Int] { state.withLockedValue { $0.statuses } }
  /// The greatest number of simultaneous requests.
  public var mostAtOnce: Int { state.withLockedValue { $0.mostAtOnce } }

  /// Forgets the requests and answers.
  public func forget() { state.withLockedValue { $0 = State(underWay: $0.underWay) } }

  /// Records a request, and sends it.
  public func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse {
    let isCounted = counts(request)
    state.withLockedValue { state in
      state.requests.append(request)
      guard isCounted else { return }
      state.underWay += 1
      state.mostAtOnce = max(state.mostAtOnce, state.underWay)
    }
    defer { if isCounted { state.withLockedValue { $0.underWay -= 1 } } }
    if pause > .zero { try await Task.sleep(for: pause) }
    let response = try await inner.send(request)
    state.withLockedValue { $0.statuses.append(response.status) }
    return response
  }
}
