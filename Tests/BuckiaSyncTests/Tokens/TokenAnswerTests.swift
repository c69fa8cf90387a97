import BuckiaBytes
import BuckiaSync
import BuckiaStorage
import NIOConcurrencyHelpers
import Testing

@testable import BuckiaSync

@Suite("The answers of a sign-in server")
struct TokenAnswerTests {
  private let server = StubProvider()
  private let old = AccessToken(SecretText("old"), refreshToken: SecretText("old refresh"), scopes: ["a"])

  @Test("A new token replaces the old one, with the new refresh token if there is one")
  func rotation() async throws {
    server.token.withLockedValue {
      $0 = { request in
        #expect(request.form["grant_type"] == "refresh_token" && request.form["client_id"] == "app")
        let isOld = request.form["refresh_token"] == "old refresh"
        return StubProvider.tokens("", isOld ? [("scope", "x y")] : [("refresh_token", .null), ("expires_in", "60")])
      }
    }
    let client = try server.client()
    let first = try await client.refreshed(old)
    #expect(
      first
        == AccessToken(
          SecretText("access"), issued: server.time.now, expires: server.time.now + 3_600_000,
          refreshToken: SecretText("refresh"), scopes: ["x", "y"]))
    let second = try await client.refreshed(first)
    #expect(second.refreshToken?.value == "refresh" && second.scopes == ["x", "y"])
    #expect(second.expires == server.time.now + 60_000)
  }

  @Test("A refresh token is sent once, whatever the answer: a server may take the second use for theft")
  func onlyOnce() async throws {
    for answer: StubProvider.Answer in [
      { _ in .text("", status: 503) }, { _ in throw StorageError(.interrupted, "gone") },
      { _ in throw StorageError(.timedOut, "gone") }, { _ in .text("{") },
    ] {
      server.token.withLockedValue { $0 = answer }
      let transport = server.transport
      let client = try server.client(transport)
      await #expect(throws: StorageError.self) { try await client.refreshed(old) }
      #expect(transport.sent.filter { $0.url.path == "/token" }.count == 1)
    }
  }

  @Test(
    "An answer without a valid token is refused",
    arguments: [
      ("access_token", .null), ("access_token", ""), ("access_token", 7), ("access_token", "a\nX: y"),
      ("access_token", "ä"),
      ("token_type", "mac"), ("token_type", .null), ("expires_in", -1), ("expires_in", "never"),
      ("expires_in", .integer(.max)),
      ("expires_in", [1]), ("refresh_token", 7),
    ] as [(String, JSONValue)])
  func hostile(_ name: String, _ value: JSONValue) async throws {
    server.token.withLockedValue { $0 = { _ in StubProvider.tokens("", [(name, value)]) } }
    let client = try server.client()
    #expect(await code { _ = try await client.refreshed(old) } == .invalidAnswer)
  }

  @Test(
    "Each refusal has its own error, in plain words",
    arguments: [
      ("invalid_grant", .signInEnded, "the sign-in has ended or was withdrawn; sign in again"),
      ("invalid_client", .unknownClient, "the sign-in server does not know this app"),
      ("unauthorized_client", .unknownClient, "the sign-in server does not know this app"),
      ("unsupported_grant_type", .unsupported, "the sign-in server does not let this app sign in this way"),
      ("invalid_scope", .invalidSetting, "the sign-in server does not give this app what it asks for"),
      ("temporarily_unavailable", .unavailable, "the sign-in server has a fault, or is overloaded"),
      ("something\u{1b}[31m", .invalidAnswer, "the sign-in server has refused this"),
    ] as [(String, StorageError.Code, String)])
  func refusals(_ word: String, _ expected: StorageError.Code, _ message: String) async throws {
    let body: JSONValue = ["error": .string(word), "error_description": "because\u{7}"]
    server.token.withLockedValue { $0 = { _ in .text(body.text(), status: 400) } }
    let client = try server.client()
    let error = await #expect(throws: StorageError.self) { try await client.refreshed(old) }
    #expect(error?.code == expected)
    #expect(error?.message.hasPrefix(message) == true, "\(error?.message ?? "")")
    #expect(error?.message.contains("https://login.example says: ") == true)
    #expect(error?.message.unicodeScalars.contains { $0.value < 0x20 } == false)
  }

  @Test("Without a refresh token no request is made")
  func noRefreshToken() async throws {
    let client = try server.client()
    #expect(await code { _ = try await client.refreshed(AccessToken(SecretText("x"))) } == .signInEnded)
  }

  @Test("A client secret is sent in the way that the server accepts")
  func secrets() async throws {
    for (methods, field) in [
      (["client_secret_basic"], "Basic YXBwJTI2OnMlM0ElMjU="), (["client_secret_post"], nil),
      ([], "Basic YXBwJTI2OnMlM0ElMjU="),
    ] as [([String], String?)] {
      server.metadata.withLockedValue {
        $0["token_endpoint_auth_methods_supported"] = .array(methods.map { .string($0) })
      }
      server.token.withLockedValue { $0 = { _ in StubProvider.tokens("") } }
      let transport = server.transport
      let configuration = OAuthConfiguration(
        issuer: StubProvider.issuer, clientID: "app&", clientSecret: SecretText("s:%"), scopes: ["x"])
      let client = try OAuthClient(configuration, transport: transport, clock: server.time.clock)
      _ = try await client.refreshed(old)
      let request = try #require(transport.sent.last)
      #expect(request.headers["Authorization"] == field)
      #expect(request.form["client_secret"] == (field == nil ? "s:%" : nil))
    }
  }

  @Test("Revoking ends the refresh token first, then the token")
  func revocation() async throws {
    let transport = server.transport
    let client = try server.client(transport)
    try await client.revoke(old)
    let forms = transport.sent.filter { $0.url.path == "/revoke" }.map(\.form)
    #expect(forms.map { $0["token"] } == ["old refresh", "old"])
    #expect(forms.map { $0["token_type_hint"] } == ["refresh_token", "access_token"])
    server.revocation.withLockedValue { $0 = { _ in .text(#"{"error":"invalid_client"}"#, status: 401) } }
    #expect(await code { try await client.revoke(old) } == .unknownClient)
    server.metadata.withLockedValue { $0["revocation_endpoint"] = .null }
    let other = try server.client()
    #expect(await code { try await other.revoke(old) } == .unsupported)
  }
}
