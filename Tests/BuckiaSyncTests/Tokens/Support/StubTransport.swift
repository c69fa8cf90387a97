import BuckiaBytes
import BuckiaSync
import BuckiaStorage
import NIOConcurrencyHelpers

/// A server that is a function.
final class StubTransport: HTTPTransport {
  private let requests = NIOLockedValueBox<[HTTPTransportRequest]>([])
  private let answer: @Sendable (HTTPTransportRequest) async throws -> HTTPTransportResponse

  init(_ answer: @escaping @Sendable (HTTPTransportRequest) async throws -> HTTPTransportResponse) {
    self.answer = answer
  }

  /// The requests, in order.
  var sent: [HTTPTransportRequest] { requests.withLockedValue { $0 } }

  func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse {
    requests.withLockedValue { $0.append(request) }
    return try await answer(request)
  }
}

extension HTTPTransportResponse {
  /// An answer with text.
  static func text(_ text: String, status: Int = 200) -> Self {
    Self(status: status, headers: [:], body: ByteChunks(Array(text.utf8)))
  }
}

extension HTTPTransportRequest {
  /// The body as text.
  var text: String { if case .bytes(let bytes) = body { String(decoding: bytes, as: UTF8.self) } else { "" } }

  /// The names and values of a form.
  var form: [String: String] {
    var form: [String: String] = [:]
    for item in text.split(separator: "&") {
      let pair = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      form[String(pair[0])] = PercentEncoding.decoded(pair.count > 1 ? pair[1] : "")
    }
    return form
  }
}

extension RetryPolicy {
  /// A transport that answers at once.
  static var impatient: RetryPolicy {
    var policy = RetryPolicy()
    policy.firstPause = 0
    policy.longestPause = 0
    return policy
  }
}

/// The code of the thrown error; nil for none, or another error.
func code(_ body: () async throws -> Void) async -> StorageError.Code? {
  do { try await body() } catch { return (error as? StorageError)?.code }
  return nil
}
