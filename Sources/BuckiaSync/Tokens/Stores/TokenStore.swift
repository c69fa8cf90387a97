import BuckiaBytes
import BuckiaFormat
import BuckiaStorage

/// A place where tokens are kept while the program does not run.
///
/// ``FileTokenStore``, ``KeychainTokenStore`` (Apple), ``SecretServiceTokenStore`` (Linux desktops) and ``MemoryTokenStore`` are such places;
/// ``SystemTokenStore`` takes the best that there is.
public protocol TokenStore: Sendable {
  /// Reads the token of a context.
  ///
  /// - Returns: The token; nil if there is none.
  /// - Throws: `StorageError` when the place cannot be read, or is not private.
  func token(for context: TokenContext) async throws -> AccessToken?

  /// Keeps a token, in place of the one that the context had.
  ///
  /// - Throws: `StorageError`; the old one is there as before then.
  func save(_ token: AccessToken, for context: TokenContext) async throws

  /// Removes the token of a context. One that is not there is removed already.
  ///
  /// - Throws: `StorageError`.
  func remove(_ context: TokenContext) async throws
}

/// A place for tokens that keeps programs from renewing one at the same time: of two that do, one has a token that is void.
protocol RenewalLocking: TokenStore {
  /// Waits until no other program renews a token that is kept there.
  ///
  /// - Returns: What keeps others from it as long as it lives; nil if that is not possible, or another program takes too long.
  /// - Throws: `StorageError`; `CancellationError`.
  func renewalLock() async throws -> HandedOver<PosixFile>?
}
