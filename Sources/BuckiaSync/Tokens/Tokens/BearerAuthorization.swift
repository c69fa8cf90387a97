import BuckiaStorage

/// Says who asks with a token in the header (RFC 6750, section 2.1). A token that the server refuses is renewed once.
package struct BearerAuthorization: RequestAuthorization {
  private let tokens: TokenManager
  private let context: TokenContext

  /// - Parameters:
  ///   - tokens: What has the token.
  ///   - context: What it is for.
  package init(_ tokens: TokenManager, for context: TokenContext) {
    self.tokens = tokens
    self.context = context
  }

  package func authorize(_ request: inout HTTPTransportRequest) async throws {
    do {
      let token = try await tokens.token(for: context)
      guard HTTPFieldText.isSafe(token.value.value) else {
        throw TokenError(
          .invalidToken, "the token for \(context) has characters that no header can carry; store it anew")
      }
      request.headers["Authorization"] = "Bearer \(token.value.value)"
    } catch let error as TokenError { throw error.storageError }
  }

  package func renew(
    after error: StorageError, _ response: HTTPTransportResponse, isFirst: Bool
  ) async throws -> Bool {
    guard isFirst, response.status == 401 else { return false }
    do { return try await tokens.hasAnother(for: context) } catch let error as TokenError { throw error.storageError }
  }
}

/// What a header field may carry.
enum HTTPFieldText {
  /// Whether text is visible ASCII: anything else could end the line and begin another field.
  static func isSafe(_ text: String) -> Bool { !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7E).contains($0) } }
}
