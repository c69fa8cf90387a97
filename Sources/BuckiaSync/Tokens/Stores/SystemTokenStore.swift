#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The best place for tokens that this system has: the keychain on Apple's, the desktop's secret service on Linux, or else a file that only
/// its owner can read.
public struct SystemTokenStore: RenewalLocking {
  private let store: any TokenStore
  /// Why tokens are in a file; nil when they are not.
  public let fallbackReason: String?

  /// Looks for the place.
  ///
  /// - Parameters:
  ///   - service: What the system calls the app, such as `com.example.notes`.
  ///   - file: The file, where there is nothing better. Its folder exists.
  ///   - environment: The variables that say where programs are, and whether there is a desktop.
  public init(
    service: String, file: String, environment: [String: String] = ProcessInfo.processInfo.environment
  ) async {
    #if canImport(Security)
      store = KeychainTokenStore(service: service)
      fallbackReason = nil
    #elseif os(Linux)
      do {
        guard environment["DBUS_SESSION_BUS_ADDRESS"] != nil else {
          throw TokenError(.storeUnavailable, "there is no desktop session (DBUS_SESSION_BUS_ADDRESS is not set)")
        }
        store = try await SecretServiceTokenStore(service: service, searchPath: environment["PATH"] ?? "")
        fallbackReason = nil
      } catch {
        store = FileTokenStore(path: file)
        fallbackReason = "tokens are kept in \(file): \(error)"
      }
    #else
      store = FileTokenStore(path: file)
      fallbackReason = "tokens are kept in \(file): this system has no other place for them"
    #endif
  }

  /// Reads the token of a context; nil when there is none.
  public func token(for context: TokenContext) async throws -> AccessToken? { try await store.token(for: context) }

  /// Keeps a token, in place of the one that the context had.
  public func save(_ token: AccessToken, for context: TokenContext) async throws {
    try await store.save(token, for: context)
  }

  /// Removes the token of a context, if it is there.
  public func remove(_ context: TokenContext) async throws { try await store.remove(context) }

  func renewalLock() async throws -> RenewalLock? { try await (store as? any RenewalLocking)?.renewalLock() }
}
