import NIOConcurrencyHelpers
import Testing

@testable import BuckiaSync

@Suite("Providing a valid token")
struct TokenManagerTests {
  private let time = TestClock()
  private let store = MemoryTokenStore()

  private func manager(_ sources: [any TokenSource] = [], margin: Int64 = 60_000) async -> TokenManager {
    var settings = TokenManager.Settings()
    settings.margin = margin
    let manager = TokenManager(store: store, settings: settings, clock: time.clock)
    await manager.setSources(sources, for: .storage)
    return manager
  }

  private func token(_ text: String, for seconds: Int64? = 3600) -> AccessToken {
    AccessToken(
      SecretText(text), issued: time.now, expires: seconds.map { time.now + $0 * 1000 },
      refreshToken: SecretText("refresh \(text)"))
  }

  /// Issues `new 1`, `new 2` and so on.
  private final class Source: TokenSource {
    let count = NIOLockedValueBox(0)
    let failure = NIOLockedValueBox<StorageError?>(nil)
    let time: TestClock
    let gate: AsyncStream<Void>?
    init(_ time: TestClock, gate: AsyncStream<Void>? = nil) {
      self.time = time
      self.gate = gate
    }

    func token(replacing old: AccessToken?) async throws -> AccessToken {
      let number = count.withLockedValue {
        $0 += 1
        return $0
      }
      if let gate { for await _ in gate {} }
      if let failure = failure.withLockedValue({ $0 }) { throw failure }
      return AccessToken(SecretText("new \(number)"), issued: time.now, expires: time.now + 3_600_000)
    }
  }

  @Test("A token is renewed within the margin before it expires, and not earlier")
  func margin() async throws {
    let source = Source(time)
    let manager = await manager([source])
    try await manager.save(token("old"), for: .storage)
    time.advance(3_539_000)
    #expect(try await manager.token(for: .storage).value.value == "old")
    time.advance(2000)
    #expect(try await manager.token(for: .storage).value.value == "new 1")
    #expect(try await manager.token(for: .storage).value.value == "new 1")
    #expect(await store.token(for: .storage)?.value.value == "new 1")
    #expect(source.count.withLockedValue { $0 } == 1)
  }

  @Test("A token with a lifetime shorter than the margin is used for three quarters of it")
  func shortLife() async throws {
    let manager = await manager([Source(time)], margin: 300_000)
    try await manager.save(token("old", for: 40), for: .storage)
    time.advance(29_000)
    #expect(try await manager.token(for: .storage).value.value == "old")
    time.advance(2000)
    #expect(try await manager.token(for: .storage).value.value == "new 1")
  }

  @Test("A token without an expiry is never renewed")
  func endless() async throws {
    let source = Source(time)
    let manager = await manager([source])
    try await manager.save(token("old", for: nil), for: .storage)
    time.advance(1 << 50)
    #expect(try await manager.token(for: .storage).value.value == "old")
    #expect(source.count.withLockedValue { $0 } == 0)
  }

  @Test("Simultaneous requests lead to one renewal, and all get its token")
  func oneRenewal() async throws {
    let (gate, opening) = AsyncStream.makeStream(of: Void.self)
    let source = Source(time, gate: gate)
    let manager = await manager([source])
    try await manager.save(token("old", for: 0), for: .storage)
    let found = try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<50 { group.addTask { try await manager.token(for: .storage).value.value } }
      for _ in 0..<50 {
        let refused = token("old")
        group.addTask { try await manager.token(after: refused, for: .storage).value.value }
      }
      while source.count.withLockedValue({ $0 }) == 0 { await Task.yield() }
      opening.finish()
      return try await group.reduce(into: Set<String>()) { $0.insert($1) }
    }
    #expect(found == ["new 1"])
    #expect(source.count.withLockedValue { $0 } == 1)
  }

  @Test("Cancelling a request does not end the renewal that others wait for")
  func cancellation() async throws {
    let (gate, opening) = AsyncStream.makeStream(of: Void.self)
    let source = Source(time, gate: gate)
    let manager = await manager([source])
    let impatient = Task { try await manager.token(for: .storage) }
    while source.count.withLockedValue({ $0 }) == 0 { await Task.yield() }
    let patient = Task { try await manager.token(for: .storage) }
    impatient.cancel()
    opening.finish()
    #expect(try await patient.value.value.value == "new 1")
    #expect(await store.token(for: .storage)?.value.value == "new 1")
  }

  @Test("A cancelled caller does not wait any longer, even if the server never answers")
  func promptCancellation() async throws {
    let (gate, opening) = AsyncStream.makeStream(of: Void.self)
    let source = Source(time, gate: gate)
    let manager = await manager([source])
    let waiting = (0..<2).map { _ in Task { try await manager.token(for: .storage) } }
    while source.count.withLockedValue({ $0 }) == 0 { await Task.yield() }
    for task in waiting {
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
    opening.finish()
    #expect(try await manager.token(for: .storage).value.value == "new 1")
  }

  @Test("Impossible times cause no crash", arguments: [Int64.min, -1, 0, 1, .max])
  func extremeTimes(_ number: Int64) async throws {
    for other in [Int64.min, 0, .max] {
      let token = AccessToken(SecretText("old"), issued: number, expires: other)
      let manager = TokenManager(store: MemoryTokenStore([.storage: token]), clock: time.clock)
      #expect(await code { _ = try await manager.token(for: .storage) } == (other == .max ? nil : .expired))
      var settings = TokenManager.Settings()
      settings.margin = number
      settings.retryPause = number
      let eager = TokenManager(store: MemoryTokenStore([.storage: token]), settings: settings, clock: time.clock)
      await eager.setSources([Source(time)], for: .storage)
      _ = try await eager.token(for: .storage)
    }
  }

  @Test("A failed renewal keeps a valid token, reports the reason, and is not repeated at once")
  func failure() async throws {
    let source = Source(time)
    source.failure.withLockedValue { $0 = StorageError(.unavailable, "the server is down") }
    let manager = await manager([source])
    try await manager.save(token("old"), for: .storage)
    time.advance(3_550_000)
    #expect(try await manager.token(for: .storage).value.value == "old")
    #expect(await manager.problem(for: .storage)?.message == "the server is down")
    #expect(try await manager.token(for: .storage).value.value == "old")
    #expect(source.count.withLockedValue { $0 } == 1)
    time.advance(31_000)
    #expect(try await manager.token(for: .storage).value.value == "old")
    #expect(source.count.withLockedValue { $0 } == 2)
    time.advance(20_000)
    #expect(await code { _ = try await manager.token(for: .storage) } == .unavailable)
    source.failure.withLockedValue { $0 = nil }
    #expect(try await manager.token(for: .storage).value.value == "new 4")
    #expect(await manager.problem(for: .storage) == nil)
  }

  @Test("If the first source fails, the next is used; if all fail, the error names them")
  func fallback() async throws {
    let failing = FunctionTokenSource { _ in throw StorageError(.signInEnded, "the sign-in has ended") }
    var manager = await manager([failing, Source(time)])
    #expect(try await manager.token(for: .storage).value.value == "new 1")
    manager = TokenManager(store: MemoryTokenStore(), clock: time.clock)
    await manager.setSources(
      [failing, FunctionTokenSource { _ in throw StorageError(.unavailable, "it is down") }], for: .storage)
    let error = await #expect(throws: StorageError.self) { try await manager.token(for: .storage) }
    #expect(error?.code == .signInEnded)
    #expect(error?.message == "the sign-in has ended; the next way failed, too: it is down")
  }

  @Test("Without a token and a source, the error has advice")
  func nothing() async throws {
    let manager = await manager()
    let error = await #expect(throws: StorageError.self) { try await manager.token(for: .inbound(of: "anna")) }
    #expect(error?.code == .noToken)
    #expect(error?.message == "there is no token for inbound of anna; sign in, or store one")
    try await manager.save(token("old", for: 1), for: .storage)
    #expect(try await manager.token(for: .storage).value.value == "old")
    time.advance(2000)
    #expect(await code { _ = try await manager.token(for: .storage) } == .expired)
  }

  @Test("A token that another program has renewed is taken from the store")
  func otherProgram() async throws {
    let source = Source(time)
    let manager = await manager([source])
    try await manager.save(token("old"), for: .storage)
    time.advance(3_599_000)
    await store.save(token("of the other"), for: .storage)
    #expect(try await manager.token(for: .storage).value.value == "of the other")
    #expect(source.count.withLockedValue { $0 } == 0)
  }

  @Test("A token saved during a renewal takes precedence over its result")
  func savedMeanwhile() async throws {
    let (gate, opening) = AsyncStream.makeStream(of: Void.self)
    let source = Source(time, gate: gate)
    let manager = await manager([source])
    let waiting = Task { try await manager.token(for: .storage) }
    while source.count.withLockedValue({ $0 }) == 0 { await Task.yield() }
    try await manager.save(token("signed in"), for: .storage)
    opening.finish()
    #expect(try await waiting.value.value.value == "signed in")
    #expect(try await manager.token(for: .storage).value.value == "signed in")
    #expect(await store.token(for: .storage)?.value.value == "signed in")
  }

  @Test("A removed token is removed here and in the store; its source stays")
  func removal() async throws {
    let manager = await manager()
    try await manager.save(token("old"), for: .storage)
    try await manager.remove(.storage)
    #expect(await code { _ = try await manager.token(for: .storage) } == .noToken)
    #expect(await store.token(for: .storage) == nil)
  }

  @Test("A new token that cannot be stored is used anyway, and the problem is reported")
  func fullDisk() async throws {
    struct FullStore: TokenStore {
      func token(for context: TokenContext) -> AccessToken? { nil }
      func save(_ token: AccessToken, for context: TokenContext) throws {
        throw StorageError(.storeUnavailable, "full")
      }
      func remove(_ context: TokenContext) {}
    }
    let manager = TokenManager(store: FullStore(), clock: time.clock)
    await manager.setSources([Source(time)], for: .storage)
    #expect(try await manager.token(for: .storage).value.value == "new 1")
    #expect(try await manager.token(for: .storage).value.value == "new 1")
    #expect(await manager.problem(for: .storage)?.code == .storeUnavailable)
  }

  @Test("A source that returns an expired token counts as none")
  func expiredSource() async throws {
    let time = time
    let manager = await manager([FunctionTokenSource { _ in AccessToken(SecretText("x"), expires: time.now - 1) }])
    #expect(await code { _ = try await manager.token(for: .storage) } == .expired)
  }
}
