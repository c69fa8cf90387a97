import BuckiaStorage
import NIOConcurrencyHelpers

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Signs the requests to an S3 server, by the server's clock once that is known to differ from ours.
final class S3Authorization: RequestAuthorization {
  /// The field in which a request says what its body's SHA-256 is.
  static let payloadField = "X-Amz-Content-Sha256"

  let signature: SignatureV4
  private let now: @Sendable () -> Int64
  /// How many milliseconds the server is ahead.
  private let skew = NIOLockedValueBox<Int64>(0)

  /// - Parameters:
  ///   - signature: What signs.
  ///   - now: The present time in milliseconds since 1970.
  init(
    _ signature: SignatureV4, now: @escaping @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970 * 1000) }
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
