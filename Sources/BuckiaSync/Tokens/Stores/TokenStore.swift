/// A place where tokens are kept while the program does not run.
///
/// ``FileTokenStore``, ``KeychainTokenStore`` (Apple), ``SecretServiceTokenStore`` (Linux desktops) and ``MemoryTokenStore`` are such places;
/// ``SystemTokenStore`` takes the best that there is.
public protocol TokenStore: Sendable {
  /// Reads the token of a context.
  ///
  /// - Returns: The token; nil when there is none.
  /// - Throws: `TokenError` when the place cannot be read, or is not private.
  func token(for context: TokenContext) async throws -> AccessToken?

  /// Keeps a token, in place of the one that the context had.
  ///
  /// - Throws: `TokenError`; the old one is there as before then.
  func save(_ token: AccessToken, for context: TokenContext) async throws

  /// Removes the token of a context. One that is not there is removed already.
  ///
  /// - Throws: `TokenError`.
  func remove(_ context: TokenContext) async throws
}

/// Keeps tokens as long as the program runs: for tests, and for those who sign in each time.
public actor MemoryTokenStore: TokenStore {
  private var tokens: [TokenContext: AccessToken]

  /// Makes a store.
  ///
  /// - Parameter tokens: What it holds at first.
  public init(_ tokens: [TokenContext: AccessToken] = [:]) { self.tokens = tokens }

  /// Reads the token of a context; nil when there is none.
  public func token(for context: TokenContext) -> AccessToken? { tokens[context] }
  /// Keeps a token, in place of the one that the context had.
  public func save(_ token: AccessToken, for context: TokenContext) { tokens[context] = token }
  /// Removes the token of a context, if it is there.
  public func remove(_ context: TokenContext) { tokens[context] = nil }
}
