import BuckiaBytes
import BuckiaSync
import BuckiaStorage
import NIOConcurrencyHelpers
import Testing

@testable import BuckiaSync

@Suite("Signing in on another device")
struct DeviceSignInTests {
  private let server = StubProvider()

  // MARK: With a real server

  private func real(_ time: TestClock) async throws -> (OAuthClient, String) {
    let issuer = try await SignInServers.shared().authlib
    // The server's tokens use the current time.
    time.advance(TokenClock.system.now() - time.now)
    let configuration = OAuthConfiguration(issuer: issuer, clientID: "public")
    return (try OAuthClient(configuration, transport: SignInServers.transport, clock: time.clock), issuer)
  }

  @Test("With Authlib's server: the person agrees")
  func agreement() async throws {
    let time = TestClock()
    let (client, issuer) = try await real(time)
    let begun = try await client.beginDeviceSignIn()
    #expect(begun.address == "\(issuer)/device")
    #expect(begun.addressWithCode == "\(issuer)/device?user_code=\(begun.code)")
    #expect(begun.interval == 3000)
    try await SignInServers.post("\(issuer)/test/device/\(begun.code)/agree")
    let signIn = try await client.finish(begun)
    #expect(signIn.identity?.subject == "anna")
    #expect(time.waited == [3000])
    #expect(try await client.refreshed(signIn.token).value != signIn.token.value)
  }

  @Test(
    "With Authlib's server: the person refuses, or the code has expired",
    arguments: [("refuse", StorageError.Code.accessDenied), ("ended", .signInExpired)])
  func refusal(_ answer: String, _ expected: StorageError.Code) async throws {
    let (client, issuer) = try await real(TestClock())
    let begun = try await client.beginDeviceSignIn()
    try await SignInServers.post("\(issuer)/test/device/\(begun.code)/\(answer)")
    #expect(await code { _ = try await client.finish(begun) } == expected)
  }

  @Test(
    "With Authlib's server: without an answer, polling ends when the code expires, and slows down on request"
  )
  func noOne() async throws {
    let time = TestClock()
    let (client, issuer) = try await real(time)
    var begun = try await client.beginDeviceSignIn()
    begun = DeviceSignIn(
      address: begun.address, code: begun.code, addressWithCode: nil, expires: time.now + 20_000,
      deviceCode: begun.deviceCode, interval: begun.interval)
    try await SignInServers.post("\(issuer)/test/device/\(begun.code)/slow")
    #expect(await code { _ = try await client.finish(begun) } == .signInExpired)
    #expect(time.waited == [3000, 8000, 8000, 1000])
  }

  // MARK: With answers of all kinds

  private func deviceAnswer(_ changes: [String: JSONValue] = [:]) -> HTTPTransportResponse {
    var members: [String: JSONValue] = [
      "device_code": "device", "user_code": "ABCD-EFGH", "verification_uri": "https://login.example/device",
      "expires_in": 60,
    ]
    members.merge(changes) { $1 }
    return .text(JSONValue.object(JSONObject(members.map { JSONObject.Member($0.key, $0.value) })).text())
  }

  /// Gives one answer after another, and repeats the last one.
  private func answer(_ answers: [StubProvider.Answer]) {
    let rest = NIOLockedValueBox(answers[...])
    server.token.withLockedValue {
      $0 = { request in
        let next = rest.withLockedValue { $0.count > 1 ? $0.removeFirst() : $0.first }
        return try await next?(request) ?? .text("")
      }
    }
  }

  private func refusal(_ word: String) -> StubProvider.Answer { { _ in .text(#"{"error":"\#(word)"}"#, status: 400) } }

  @Test(
    "Polling keeps the server's interval, and slows down on request and after failures")
  func intervals() async throws {
    let server = server
    let answer = deviceAnswer(["interval": 2])
    server.device.withLockedValue { $0 = { _ in answer } }
    let good = try await TestKeys.rsaSigned(server.claims())
    self.answer([
      refusal("authorization_pending"), refusal("slow_down"), refusal("authorization_pending"),
      { _ in throw StorageError(.timedOut, "gone") }, { _ in .text("", status: 503) },
      { _ in StubProvider.tokens(good) },
    ])
    let client = try server.client()
    let begun = try await client.beginDeviceSignIn()
    #expect(begun.code == "ABCD-EFGH")
    #expect(try await client.finish(begun).token.value.value == "access")
    #expect(server.time.waited == [2000, 2000, 7000, 7000, 14_000, 28_000])
  }

  @Test("The interval is five seconds by default, and an invalid one is limited")
  func usualInterval() async throws {
    let client = try server.client()
    for (value, expected) in [(nil, 5000), (0, 1000), (-5, 1000), (.integer(.max), 600_000)] as [(JSONValue?, Int64)] {
      let answer = deviceAnswer(value.map { ["interval": $0] } ?? [:])
      server.device.withLockedValue { $0 = { _ in answer } }
      #expect(try await client.beginDeviceSignIn().interval == expected)
    }
  }

  @Test(
    "An invalid answer is refused",
    arguments: [
      ("device_code", .null), ("user_code", .null), ("user_code", 7), ("verification_uri", .null),
      ("verification_uri", "javascript:alert(1)"), ("verification_uri", "http://login.example/device"),
      ("verification_uri_complete", "file:///x"), ("expires_in", .null), ("expires_in", 0), ("expires_in", "x"),
    ] as [(String, JSONValue)])
  func hostile(_ name: String, _ value: JSONValue) async throws {
    let answer = deviceAnswer([name: value])
    server.device.withLockedValue { $0 = { _ in answer } }
    let client = try server.client()
    #expect(await code { _ = try await client.beginDeviceSignIn() } == .invalidAnswer)
  }

  @Test("A server without device sign-in is an error that names the alternative")
  func unsupported() async throws {
    server.metadata.withLockedValue { $0["device_authorization_endpoint"] = .null }
    let client = try server.client()
    let error = await #expect(throws: StorageError.self) { try await client.beginDeviceSignIn() }
    #expect(error?.code == .unsupported)
    #expect(error?.message == "https://login.example has no sign-in with a code; sign in with a browser")
  }

  @Test("The answer is checked as with a browser: the identity is verified, and a lasting error ends polling")
  func checks() async throws {
    let answer = deviceAnswer()
    server.device.withLockedValue { $0 = { _ in answer } }
    let client = try server.client()
    let begun = try await client.beginDeviceSignIn()
    let forged = try await TestKeys.rsaSigned(server.claims(["aud": "other"]))
    self.answer([{ _ in StubProvider.tokens(forged) }])
    #expect(await code { _ = try await client.finish(begun) } == .invalidToken)
    self.answer([refusal("invalid_client")])
    #expect(await code { _ = try await client.finish(begun) } == .unknownClient)
    self.answer([{ _ in .text("<html>", status: 400) }])
    #expect(await code { _ = try await client.finish(begun) } == .invalidAnswer)
  }

  @Test("Cancelling ends the waiting")
  func cancellation() async throws {
    let answer = deviceAnswer()
    server.device.withLockedValue { $0 = { _ in answer } }
    let client = try server.client()
    let begun = try await client.beginDeviceSignIn()
    self.answer([
      { _ in
        withUnsafeCurrentTask { $0?.cancel() }
        return .text(#"{"error":"authorization_pending"}"#, status: 400)
      }
    ])
    let waiting = Task { try await client.finish(begun) }
    await #expect(throws: CancellationError.self) { try await waiting.value }
  }
}
