import BuckiaBytes
import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Sends requests to one service: with its credentials, again after transient faults, and on to where the service redirects.
package struct HTTPExchange: Sendable {
  package let transport: any HTTPTransport
  package let policy: RetryPolicy
  /// Adds credentials; nil for none. It is called for every attempt, because signatures contain the time.
  package let authorization: (any RequestAuthorization)?

  package init(
    transport: any HTTPTransport, policy: RetryPolicy, authorization: (any RequestAuthorization)? = nil
  ) {
    self.transport = transport
    self.policy = policy
    self.authorization = authorization
  }

  /// The most redirects.
  private static let redirectLimit = 5
  /// The statuses that a server gives when it is overloaded or has a passing fault.
  private static let transient: Set<Int> = [408, 429, 500, 502, 503, 504, 509, 521, 522, 523, 524]

  /// Sends a request until it has a final answer.
  ///
  /// - Parameters:
  ///   - request: The request, without credentials.
  ///   - path: The object that it is about, for errors.
  ///   - accepted: The statuses that are no errors; nil for 200 to 299.
  /// - Returns: The answer, with one of these statuses, whose body is still to come; and how often the request was sent. After more than one
  ///   time, an earlier one may have been carried out, and only its answer lost.
  /// - Throws: `StorageError`; `CancellationError`.
  package func perform(
    _ request: HTTPTransportRequest, about path: RemotePath? = nil, accepting accepted: Set<Int>? = nil
  ) async throws -> (response: HTTPTransportResponse, attempts: Int) {
    let (response, attempts) = try await perform(request, about: path, accepting: accepted) { $0 }
    return (response, attempts)
  }

  /// Sends a request until it has a final answer and the answer has been read. If the body breaks off, the request is
  /// repeated, too.
  ///
  /// - Parameters:
  ///   - request: The request, without credentials.
  ///   - path: The object that it is about, for errors.
  ///   - accepted: The statuses that are no errors; nil for 200 to 299.
  ///   - read: Reads an answer with one of these statuses. Its transient errors lead to another attempt.
  /// - Returns: The result of `read`, and the number of attempts.
  /// - Throws: `StorageError`; `CancellationError`; what `read` throws.
  package func perform<Content>(
    _ request: HTTPTransportRequest, about path: RemotePath? = nil, accepting accepted: Set<Int>? = nil,
    reading read: (HTTPTransportResponse) async throws -> Content
  ) async throws -> (content: Content, attempts: Int) {
    var request = request
    var attempts = 0
    var redirects = 0
    var isRenewed = false
    while true {
      try Task.checkCancellation()
      attempts += 1
      let failure: StorageError
      do {
        var sent = request
        try await authorization?.authorize(&sent)
        let response = try await transport.send(sent)
        if accepted?.contains(response.status) ?? (200...299).contains(response.status) {
          return (try await read(response), attempts)
        }
        if let target = try redirect(response, from: request) {
          redirects += 1
          guard redirects <= Self.redirectLimit else {
            throw StorageError(.redirected, "\(request.url.origin) sends on in circles; check the address", path: path)
          }
          request.url = target
          continue
        }
        let error = await ServerFault.error(response, sent, about: path)
        if try await authorization?.renew(after: error, response, isFirst: !isRenewed) == true, !isRenewed {
          isRenewed = true
          continue
        }
        guard Self.transient.contains(response.status) else { throw error }
        failure = error
      } catch let error as StorageError {
        guard error.isTransient else { throw path.map { error.about($0) } ?? error }
        failure = path.map { error.about($0) } ?? error
      }
      guard attempts < policy.attempts else { throw failure }
      let random = Double.random(in: 0..<1)
      guard let pause = policy.pause(after: attempts, wanted: failure.retryAfter, random: random) else { throw failure }
      try await Task.sleep(for: .milliseconds(pause))
    }
  }

  /// The target of a redirect. Only reading requests follow, and only to the same server, because credentials must not
  /// go elsewhere.
  private func redirect(_ response: HTTPTransportResponse, from request: HTTPTransportRequest) throws -> HTTPAddress? {
    guard [301, 302, 307, 308].contains(response.status), let location = response.headers["Location"],
      ["GET", "HEAD", "PROPFIND"].contains(request.method)
    else { return nil }
    let target = try request.url.resolving(location)
    let isSameServer = target.host == request.url.host && (target.isSecure || !request.url.isSecure)
    guard isSameServer, target.port == request.url.port || target.isSecure != request.url.isSecure else {
      throw StorageError(
        .redirected, "\(request.url.origin) sends on to \(target.origin); if that is right, use that address instead")
    }
    // If all addresses of a server led to one page, every object would seem to be missing.
    guard target.path.lastSegment == request.url.path.lastSegment else {
      throw StorageError(
        .redirected,
        "\(request.url.shown) sends on to \(target.shown), which is not about the same; a login page or a proxy is in between: check the address, and use the one that the server really has"
      )
    }
    return target
  }
}

extension String {
  /// The last part of a path, decoded.
  fileprivate var lastSegment: String {
    split(separator: "/").last.map { PercentEncoding.decoded($0) ?? String($0) } ?? ""
  }
}

/// Adds credentials to requests.
package protocol RequestAuthorization: Sendable {
  /// Adds what a request needs: a header field, a signature.
  ///
  /// - Throws: `StorageError` when there are no valid credentials.
  func authorize(_ request: inout HTTPTransportRequest) async throws

  /// Renews the credentials after a refused request, if that can help.
  ///
  /// - Parameters:
  ///   - error: The refusal.
  ///   - response: The answer. Its body has been read.
  ///   - isFirst: True if nothing has been renewed yet for this request.
  /// - Returns: True if it is worth sending the request once more.
  func renew(after error: StorageError, _ response: HTTPTransportResponse, isFirst: Bool) async throws -> Bool
}

extension RequestAuthorization {
  package func renew(after error: StorageError, _ response: HTTPTransportResponse, isFirst: Bool) async throws -> Bool {
    false
  }
}

/// Basic authentication (RFC 7617).
package struct BasicAuthorization: RequestAuthorization {
  private let field: String

  /// - Throws: `StorageError` with `invalidSetting` for a name with a colon, which could not be separated from the password.
  package init(user: String, password: String) throws(StorageError) {
    guard !user.contains(":") else { throw StorageError(.invalidSetting, "a user's name for WebDAV has no colon") }
    field = "Basic \(Data("\(user):\(password)".utf8).base64EncodedString())"
  }

  package func authorize(_ request: inout HTTPTransportRequest) { request.headers["Authorization"] = field }
}
