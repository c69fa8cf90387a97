import BuckiaBytes

/// A place for tokens that keeps programs from renewing one at the same time: of two that do, one has a token that is void.
protocol RenewalLocking: TokenStore {
  /// Waits until no other program renews a token that is kept there.
  ///
  /// - Returns: What keeps others from it as long as it lives; nil where that is not possible, or another program takes too long.
  /// - Throws: `TokenError`; `CancellationError`.
  func renewalLock() async throws -> RenewalLock?
}

/// Keeps other programs from renewing a token, as long as it lives.
final class RenewalLock: @unchecked Sendable {
  // Nobody uses the file; it is only held.
  private let file: PosixFile

  init(_ file: PosixFile) { self.file = file }
}
