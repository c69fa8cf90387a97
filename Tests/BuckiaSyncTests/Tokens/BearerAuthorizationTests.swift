import BuckiaSync
import BuckiaStorage
import NIOConcurrencyHelpers
import Testing

@testable import BuckiaSync

@Suite("Authorization with a token")
struct BearerAuthorizationTests {
  private let time = TestClock()

  /// A server that accepts one token, and an exchange with it.
  private func exchange(
    accepting good: String, _ source: (any TokenSource)?, first: String = "first"
  ) async throws -> (HTTPExchange, StubTransport) {
    let manager = TokenManager(
      store: MemoryTokenStore([.storage: AccessToken(SecretText(first), expires: time.now + 3_600_000)]),
      clock: time.clock)
    if let source { await manager.setSources([source], for: .storage) }
    let transport = StubTransport { request in
      let isGood = request.headers["Authorization"] == "Bearer \(good)"
      return .text(isGood ? "welcome" : "{\"error\":\"invalid_token\"}", status: isGood ? 200 : 401)
    }
    return (
      HTTPExchange(
        transport: transport, policy: .impatient, authorization: BearerAuthorization(manager, for: .storage)),
      transport
    )
  }

  private var request: HTTPTransportRequest {
    get throws { HTTPTransportRequest("GET", try HTTPAddress("https://storage.example/x")) }
  }

  @Test("A token refused in the middle of a round is renewed once, for all requests together")
  func renewal() async throws {
    let renewals = NIOLockedValueBox(0)
    let time = time
    let source = FunctionTokenSource { _ in
      renewals.withLockedValue { $0 += 1 }
      return AccessToken(SecretText("second"), issued: time.now, expires: time.now + 3_600_000)
    }
    let (exchange, transport) = try await exchange(accepting: "second", source)
    let request = try request
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<20 { group.addTask { try await exchange.perform(request).response.status } }
      for try await status in group { #expect(status == 200) }
    }
    #expect(renewals.withLockedValue { $0 } == 1)
    #expect(transport.sent.filter { $0.headers["Authorization"] == "Bearer second" }.count == 20)
  }

  @Test("A late refusal of the previous token causes no renewal; one that comes much later does")
  func lateRefusal() async throws {
    let renewals = NIOLockedValueBox(0)
    let time = time
    let source = FunctionTokenSource { _ in
      let number = renewals.withLockedValue {
        $0 += 1
        return $0
      }
      return AccessToken(SecretText("new \(number)"), expires: time.now + 3_600_000)
    }
    let (exchange, _) = try await exchange(accepting: "", source)
    let authorization = try #require(exchange.authorization)
    let refusal = StorageError(.unauthorized, "refused")
    for (pause, expected) in [(0, 1), (0, 1), (9000, 1), (1000, 2), (9999, 2)] as [(Int64, Int)] {
      time.advance(pause)
      let isWorthwhile = try await authorization.renew(after: refusal, .text("", status: 401), isFirst: true)
      #expect(isWorthwhile)
      #expect(renewals.withLockedValue { $0 } == expected)
    }
    #expect(try await !authorization.renew(after: refusal, .text("", status: 401), isFirst: false))
    #expect(try await !authorization.renew(after: refusal, .text("", status: 403), isFirst: true))
  }

  @Test("If a server refuses the renewed token, too, there is no third request")
  func lasting() async throws {
    let time = time
    let source = FunctionTokenSource { _ in AccessToken(SecretText("second"), expires: time.now + 3_600_000) }
    let (exchange, transport) = try await exchange(accepting: "another", source)
    let request = try request
    let error = await #expect(throws: StorageError.self) { try await exchange.perform(request) }
    #expect(error?.code == .unauthorized)
    #expect(transport.sent.count == 2)
  }

  @Test("Without a source of tokens, the refusal is the error")
  func noSource() async throws {
    let (exchange, transport) = try await exchange(accepting: "another", nil)
    let request = try request
    let error = await #expect(throws: StorageError.self) { try await exchange.perform(request) }
    #expect(error?.code == .unauthorized)
    #expect(transport.sent.count == 1)
  }

  @Test("If the renewal fails, its error has the reason")
  func failedRenewal() async throws {
    let source = FunctionTokenSource { _ in throw StorageError(.signInEnded, "the sign-in has ended; sign in again") }
    let (exchange, _) = try await exchange(accepting: "another", source)
    let request = try request
    let error = await #expect(throws: StorageError.self) { try await exchange.perform(request) }
    #expect(error?.code == .unauthorized)
    #expect(error?.message == "the sign-in has ended; sign in again")
  }

  @Test("A token that would end the header line is not sent", arguments: ["a\r\nX: y", "a b", "", "ä"])
  func injection(_ text: String) async throws {
    let (exchange, transport) = try await exchange(accepting: "another", nil, first: text)
    let request = try request
    await #expect(throws: StorageError.self) { try await exchange.perform(request) }
    #expect(transport.sent.isEmpty)
  }
}
