import BuckiaStorage

/// Keeps tokens by their context, and renews each before it expires.
///
/// Simultaneous requests share one renewal. When a renewal fails, the old token is used as long as it is valid;
/// ``problem(for:)`` gives the reason.
///
/// ```swift
/// let tokens = TokenManager(store: try await SystemTokenStore(service: "com.example.notes", file: path))
/// await tokens.setSources([signIn], for: .storage)
/// let token = try await tokens.token(for: .storage)
/// ```
public actor TokenManager {
  /// When tokens are renewed.
  public struct Settings: Sendable, Equatable {
    /// How long before its end a token is renewed, in milliseconds. One that lives only a short time is used for at least three quarters of it.
    public var margin: Int64 = 5 * 60_000
    /// How long to use an old token that is still good before a failed renewal is tried again, in milliseconds.
    public var retryPause: Int64 = 30_000

    /// Makes settings with the defaults.
    public init() {}
  }

  /// The state of one context.
  private struct Entry {
    var token: AccessToken?
    var sources: [any TokenSource] = []
    /// True if the store was asked.
    var isLoaded = false
    var renewal: Renewal?
    /// The number of renewals, which distinguishes them.
    var renewals = 0
    /// When a token last came from a source, in milliseconds since 1970.
    var renewedAt: Int64?
    var failedAt: Int64?
    var problem: StorageError?
  }

  private struct Renewal {
    let number: Int
    let task: Task<AccessToken, any Error>
  }

  private let store: any TokenStore
  private let settings: Settings
  private let clock: TokenClock
  private var entries: [TokenContext: Entry] = [:]

  /// How long after a renewal a refusal is taken for one of the token before it, in milliseconds: requests that were under way end one
  /// after the other.
  private static let lateRefusal: Int64 = 10_000

  /// Creates a manager.
  ///
  /// - Parameters:
  ///   - store: The store of tokens.
  ///   - settings: When they are renewed.
  ///   - clock: What time it is.
  public init(store: any TokenStore, settings: Settings = Settings(), clock: TokenClock = .system) {
    self.store = store
    var settings = settings
    settings.retryPause = min(max(0, settings.retryPause), 86_400_000)
    self.settings = settings
    self.clock = clock
  }

  /// Sets the sources that renew the tokens of a context.
  ///
  /// - Parameter sources: The sources in the order of use; later ones are used if earlier ones fail.
  public func setSources(_ sources: [any TokenSource], for context: TokenContext) {
    entries[context, default: Entry()].sources = sources
  }

  /// Stores a token: that of a sign-in, or another one.
  ///
  /// - Throws: `StorageError` when it cannot be stored; it is used all the same until the program ends.
  public func save(_ token: AccessToken, for context: TokenContext) async throws {
    keep(token, for: context)
    try await store.save(token, for: context)
  }

  /// Deletes the token of a context, here and in the store.
  ///
  /// - Throws: `StorageError` when the store cannot be changed.
  public func remove(_ context: TokenContext) async throws {
    let old = entries[context] ?? Entry()
    old.renewal?.task.cancel()
    var entry = Entry()
    entry.sources = old.sources
    entry.renewals = old.renewals
    entry.isLoaded = true
    entries[context] = entry
    try await store.remove(context)
  }

  /// Why the last renewal failed, when it did and the token before it is still in use; or why the new token could not be stored.
  public func problem(for context: TokenContext) -> StorageError? { entries[context]?.problem }

  // MARK: Having a valid token

  /// A token that is good now.
  ///
  /// - Throws: `StorageError`: `noToken` when there is none, `expired` when nothing renews it, or why it could not be renewed.
  public func token(for context: TokenContext) async throws -> AccessToken {
    let token = try await loaded(context)
    let now = clock.now()
    if let token, token.renewalTime(margin: settings.margin).map({ now < $0 }) ?? true { return token }
    let entry = entries[context] ?? Entry()
    let usable = token.flatMap { $0.isValid(at: now) ? $0 : nil }
    if let usable, entry.renewal == nil {
      if entry.sources.isEmpty { return usable }
      if let failedAt = entry.failedAt, now < failedAt + settings.retryPause { return usable }
    }
    do { return try await renewed(context) } catch {
      guard let usable, usable.isValid(at: clock.now()), !(error is CancellationError) else { throw error }
      return usable
    }
  }

  /// Gets another token after a server has refused one.
  ///
  /// - Parameters:
  ///   - refused: The refused token. If the present token is another one, that is returned.
  ///   - context: The context.
  /// - Throws: `StorageError`, as ``token(for:)``.
  public func token(after refused: AccessToken, for context: TokenContext) async throws -> AccessToken {
    if let token = try await loaded(context), token.value != refused.value { return token }
    return try await renewed(context)
  }

  /// True if there is another token after a server has refused an unknown one.
  func hasAnother(for context: TokenContext) async throws -> Bool {
    let before = try await loaded(context)
    if let renewedAt = entries[context]?.renewedAt, clock.now() < renewedAt + Self.lateRefusal { return true }
    if entries[context]?.sources.isEmpty ?? true { return false }
    return try await renewed(context).value != before?.value
  }

  private func loaded(_ context: TokenContext) async throws -> AccessToken? {
    if let entry = entries[context], entry.isLoaded { return entry.token }
    let found = try await store.token(for: context)
    var entry = entries[context] ?? Entry()
    // Somebody may have saved one meanwhile.
    if !entry.isLoaded {
      entry.token = found
      entry.isLoaded = true
      entries[context] = entry
    }
    return entry.token
  }

  private func keep(_ token: AccessToken, for context: TokenContext) {
    var entry = entries[context] ?? Entry()
    entry.token = token
    entry.isLoaded = true
    entry.failedAt = nil
    entry.problem = nil
    // A token that is saved meanwhile is newer than the result of the running renewal.
    entry.renewal = nil
    entries[context] = entry
  }

  // MARK: Renewing

  /// Joins the running renewal, or starts one. It continues if the caller is cancelled, because a server that has
  /// issued a new refresh token no longer accepts the old one.
  private func renewed(_ context: TokenContext) async throws -> AccessToken {
    if let renewal = entries[context]?.renewal { return try await renewal.task.joined() }
    var entry = entries[context] ?? Entry()
    entry.renewals += 1
    let number = entry.renewals
    let task = Task { try await self.renew(context, number) }
    entry.renewal = Renewal(number: number, task: task)
    entries[context] = entry
    return try await task.joined()
  }

  private func renew(_ context: TokenContext, _ number: Int) async throws -> AccessToken {
    do {
      let lock = try await (store as? any RenewalLocking)?.renewalLock()
      defer { withExtendedLifetime(lock) {} }
      let old = entries[context]?.token
      let token: AccessToken
      if let stored = try await store.token(for: context), stored.value != old?.value, isFresh(stored) {
        // Another program has renewed it.
        token = stored
      } else {
        token = try await obtained(context, replacing: old)
      }
      guard entries[context]?.renewal?.number == number else {
        return entries[context]?.token ?? token
      }
      keep(token, for: context)
      entries[context]?.renewedAt = clock.now()
      do { try await store.save(token, for: context) } catch let error as StorageError {
        // The old token may be invalid now, and the new one is used while the program runs.
        entries[context]?.problem = error
      }
      return token
    } catch {
      if entries[context]?.renewal?.number == number {
        entries[context]?.renewal = nil
        entries[context]?.failedAt = clock.now()
        entries[context]?.problem = error as? StorageError
      }
      throw error
    }
  }

  private func isFresh(_ token: AccessToken) -> Bool {
    token.renewalTime(margin: settings.margin).map { clock.now() < $0 } ?? true
  }

  /// The token of the first source that succeeds.
  private func obtained(_ context: TokenContext, replacing old: AccessToken?) async throws -> AccessToken {
    var failures: [any Error] = []
    for source in entries[context]?.sources ?? [] {
      do {
        let token = try await source.token(replacing: old)
        guard token.isValid(at: clock.now()) else {
          throw StorageError(
            .expired, "the new token for \(context) has expired already; the clock of this device may be wrong")
        }
        return token
      } catch let error where !(error is CancellationError) {
        failures.append(error)
      }
    }
    guard let first = failures.first else {
      guard old != nil else {
        throw StorageError(.noToken, "there is no token for \(context); sign in, or store one")
      }
      throw StorageError(.expired, "the token for \(context) is good no more, and nothing renews it; sign in again")
    }
    let said = failures.map { "\($0)" }.joined(separator: "; the next way failed, too: ")
    let error = first as? StorageError
    var joined = StorageError(error?.code ?? .unavailable, said, cause: error?.cause ?? first)
    joined.status = error?.status
    throw joined
  }
}

extension Task where Failure == any Error {
  /// The result of the task. A cancelled caller stops waiting; the task continues.
  fileprivate func joined() async throws -> Success {
    let (values, continuation) = AsyncThrowingStream.makeStream(of: Success.self)
    Task<Void, Never> {
      do {
        continuation.yield(try await value)
        continuation.finish()
      } catch { continuation.finish(throwing: error) }
    }
    for try await value in values { return value }
    // The type, not the function of a task that has this name.
    throw _Concurrency.CancellationError()
  }
}

/// The purpose of a token: the own storage, another person's inbound folder, or one that an app names.
public struct TokenContext: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The stored text of the context.
  public let rawValue: String

  /// Takes a context of one's own.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// One's own storage.
  public static let storage = Self(rawValue: "storage")
  /// The fallback storage.
  public static let fallbackStorage = Self(rawValue: "fallback-storage")

  /// The inbound folder of another person.
  ///
  /// - Parameter name: Their name among one's contacts.
  public static func inbound(of name: String) -> Self { Self(rawValue: "inbound of \(name)") }

  /// The stored text of the context.
  public var description: String { rawValue }
}

/// A source of tokens: refreshes the old one, requests another from a server, or signs one.
public protocol TokenSource: Sendable {
  /// Gets a new token.
  ///
  /// - Parameter old: The token that it replaces; nil if there was none.
  /// - Throws: `StorageError`; `CancellationError`.
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

/// What time it is, and how to wait: the system's, or that of a test.
public struct TokenClock: Sendable {
  /// The present time in milliseconds since 1970.
  public var now: @Sendable () -> Int64
  /// Waits for a number of milliseconds.
  public var sleep: @Sendable (Int64) async throws -> Void

  /// Takes another time.
  public init(now: @escaping @Sendable () -> Int64, sleep: @escaping @Sendable (Int64) async throws -> Void) {
    self.now = now
    self.sleep = sleep
  }

  /// The system's clock.
  public static let system = Self(
    now: { WallClock.unixMilliseconds },
    sleep: { try await Task.sleep(for: .milliseconds($0)) })
}

/// Authorizes requests with a token in the header (RFC 6750, section 2.1). A refused token is renewed once.
package struct BearerAuthorization: RequestAuthorization {
  private let tokens: TokenManager
  private let context: TokenContext

  /// - Parameters:
  ///   - tokens: The manager of the token.
  ///   - context: The context.
  package init(_ tokens: TokenManager, for context: TokenContext) {
    self.tokens = tokens
    self.context = context
  }

  package func authorize(_ request: inout HTTPTransportRequest) async throws {
    do {
      let token = try await tokens.token(for: context)
      guard token.value.value.isSafeInHeader else {
        throw StorageError(
          .invalidToken, "the token for \(context) has characters that no header can carry; store it again")
      }
      request.headers["Authorization"] = "Bearer \(token.value.value)"
    } catch let error as StorageError { throw Self.refusal(error) }
  }

  package func renew(
    after error: StorageError, _ response: HTTPTransportResponse, isFirst: Bool
  ) async throws -> Bool {
    guard isFirst, response.status == 401 else { return false }
    do { return try await tokens.hasAnother(for: context) } catch let error as StorageError {
      throw Self.refusal(error)
    }
  }

  /// The error of a storage whose token cannot be had.
  private static func refusal(_ error: StorageError) -> StorageError {
    error.isAboutToken ? StorageError(.unauthorized, error.message, cause: error) : error
  }
}

extension String {
  /// True for visible ASCII: in a header field, anything else could end the line and begin another field.
  var isSafeInHeader: Bool { !isEmpty && utf8.allSatisfy { (0x21...0x7E).contains($0) } }
}
