/// Gives new tokens: refreshes the old one, asks a server for another, or signs one itself.
public protocol TokenSource: Sendable {
  /// Gets a new token.
  ///
  /// - Parameter old: The token that it replaces; nil when there was none.
  /// - Throws: `TokenError`; `CancellationError`.
  func token(replacing old: AccessToken?) async throws -> AccessToken
}

/// A source that is a function.
public struct FunctionTokenSource: TokenSource {
  private let body: @Sendable (AccessToken?) async throws -> AccessToken

  /// Takes a function that gets a new token for an old one.
  public init(_ body: @escaping @Sendable (AccessToken?) async throws -> AccessToken) { self.body = body }

  /// Asks the function.
  public func token(replacing old: AccessToken?) async throws -> AccessToken { try await body(old) }
}
