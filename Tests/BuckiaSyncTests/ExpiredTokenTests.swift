import BuckiaSync
import NIOConcurrencyHelpers
import ServerTestSupport
import TestSupport
import Testing

/// Refuses a token after some requests, as a server does with an expired token.
private final class ExpiringTransport: HTTPTransport {
  private let inner: any HTTPTransport
  private let limit: Int
  private let counts = NIOLockedValueBox((taken: 0, refused: 0))

  init(_ inner: any HTTPTransport, after limit: Int) {
    self.inner = inner
    self.limit = limit
  }

  /// The number of refused requests.
  var refused: Int { counts.withLockedValue { $0.refused } }

  func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse {
    let token = request.headers["Authorization"]
    let isGood = counts.withLockedValue { counts -> Bool in
      if token == "Bearer second" { return true }
      if token == "Bearer first", counts.taken < limit {
        counts.taken += 1
        return true
      }
      counts.refused += 1
      return false
    }
    guard isGood else {
      return HTTPTransportResponse(
        status: 401, headers: [:], body: ByteChunks(Array(#"{"error":"invalid_token"}"#.utf8)))
    }
    var request = request
    request.headers["Authorization"] = nil
    return try await inner.send(request)
  }
}

@Suite("Tokens that expire during a round")
struct ExpiredTokenTests {
  @Test("The round gets another token once, and finishes", arguments: [0, 1, 3, 6, 9, 12])
  func expired(after limit: Int) async throws {
    let folder = try TemporaryFolder()
    let place = try await ServerPlace(.apache)
    let anna = try place.person("anna", in: folder)
    for number in 1...3 {
      try anna.run("INSERT INTO note VALUES (\(number),'x')")
      try anna.write()
    }
    try await place.sync(anna, to: ["ben"])

    let renewals = NIOLockedValueBox(0)
    let tokens = TokenManager(store: MemoryTokenStore([.storage: AccessToken(SecretText("first"))]))
    let source = FunctionTokenSource { _ in
      renewals.withLockedValue { $0 += 1 }
      return AccessToken(SecretText("second"))
    }
    await tokens.setSources([source], for: .storage)
    var account = place.account
    guard case .webDAV(let address, _) = account.type else { return }
    account.type = .webDAVWithToken(address: address, tokens, .storage)
    let authorized = account
    var ben = try place.person("ben", in: folder)
    ben.change = { $0.storage = authorized }
    for number in 1...3 { try ben.addMedia([UInt8(number)], "originals/\(number).mp4") }
    let transport = ExpiringTransport(place.transport, after: limit)
    let result = try await BuckiaClient(ben.configuration(), transport: transport).sync()
    #expect(result.failures.isEmpty, "\(result.failures)")
    #expect(result.applied?.applied.count == 3)
    #expect(result.dropped.count == 3)
    #expect(result.backedUp)
    #expect(result.uploaded.count == 4)
    #expect(transport.refused > 0)
    #expect(renewals.withLockedValue { $0 } == 1)
    #expect(try ben.notes().count == 3)
  }
}
