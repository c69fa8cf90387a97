#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What time it is, and how to wait: the system's, or that of a test.
public struct TokenClock: Sendable {
  /// The present time in milliseconds since 1970.
  public var now: @Sendable () -> Int64
  /// Waits so many milliseconds.
  public var sleep: @Sendable (Int64) async throws -> Void

  /// Takes another time.
  public init(now: @escaping @Sendable () -> Int64, sleep: @escaping @Sendable (Int64) async throws -> Void) {
    self.now = now
    self.sleep = sleep
  }

  /// The system's clock.
  public static let system = Self(
    now: { Int64(Date().timeIntervalSince1970 * 1000) },
    sleep: { try await Task.sleep(for: .milliseconds($0)) })
}
