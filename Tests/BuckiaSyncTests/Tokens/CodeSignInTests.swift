import BuckiaBytes
import BuckiaSync
import BuckiaStorage
import NIOConcurrencyHelpers
import Testing

@testable import BuckiaSync

@Suite("Signing in with a browser")
struct CodeSignInTests {
  private let server = StubProvider()

  private func real(_ issuer: String, clientID: String = "public", secret: String? = nil) throws -> OAuthClient {
    try OAuthClient(
      OAuthConfiguration(issuer: issuer, clientID: clientID, clientSecret: secret.map { SecretText($0) }),
      transport: SignInServers.transport)
  }

  // MARK: With real servers

  @Test("With Authlib's server: sign in, renew with rotation, and sign out")
  func authlib() async throws {
    let servers = try await SignInServers.shared()
    let client = try real(servers.authlib)
    let page = NIOLockedValueBox("")
    let signIn = try await client.signIn { address in
      let answer = try await SignInServers.browse(address)
      page.withLockedValue { $0 = "\(answer.status) \(answer.text)" }
    }
    #expect(page.withLockedValue { $0 }.hasPrefix("200"))
    #expect(page.withLockedValue { $0 }.contains("You can close this window"))
    #expect(
      signIn.identity
        == SignedInIdentity(issuer: servers.authlib, subject: "anna", email: "anna@example.com", name: "Anna"))
    #expect(try await isKnown(signIn.token, at: servers))
    let second = try await client.refreshed(signIn.token)
    #expect(second.refreshToken != signIn.token.refreshToken && second.value != signIn.token.value)
    #expect(await code { _ = try await client.refreshed(signIn.token) } == .signInEnded)
    try await client.revoke(second)
    #expect(try await !isKnown(second, at: servers))
    #expect(await code { _ = try await client.refreshed(second) } == .signInEnded)
  }

  private func isKnown(_ token: AccessToken, at servers: SignInServers) async throws -> Bool {
    try await SignInServers.get("\(servers.authlib)/whoami", ["Authorization": "Bearer \(token.value.value)"]).status
      == 200
  }

  @Test("With Authlib's server: a client secret is sent, with characters that have to be encoded")
  func secret() async throws {
    let servers = try await SignInServers.shared()
    let client = try real(servers.authlib, clientID: "secret", secret: "s3cr&t+%")
    #expect(try await client.signIn { try await SignInServers.browse($0) }.identity?.subject == "anna")
    let wrong = try real(servers.authlib, clientID: "secret", secret: "guess")
    #expect(await code { _ = try await wrong.signIn { try await SignInServers.browse($0) } } == .unknownClient)
  }

  @Test("With oidc-provider-mock: sign in and renew")
  func mock() async throws {
    let servers = try await SignInServers.shared()
    let client = try real(servers.mock, clientID: "any", secret: "any")
    let signIn = try await client.signIn { try await SignInServers.browse($0) }
    #expect(signIn.identity?.subject == "anna")
    #expect(try await client.refreshed(signIn.token).value != signIn.token.value)
    #expect(await code { try await client.revoke(signIn.token) } == .unsupported)
  }

  @Test("With Authlib's server: a person who refuses is an error with a plain message")
  func refusal() async throws {
    let servers = try await SignInServers.shared()
    let client = try real(servers.authlib)
    let error = await #expect(throws: StorageError.self) {
      try await client.signIn { try await SignInServers.browse("\($0)&answer=refuse") }
    }
    #expect(error?.code == .accessDenied)
    #expect(error?.message.hasPrefix("the sign-in was refused; nothing was changed") == true)
  }

  @Test("With Authlib's server: an intercepted code is useless")
  func interceptedCode() async throws {
    let servers = try await SignInServers.shared()
    let client = try real(servers.authlib)
    let begun = try await client.beginSignIn(returningTo: "http://127.0.0.1:1/x")
    let caught = NIOLockedValueBox("")
    let consent = try await SignInServers.transport.send(
      HTTPTransportRequest("POST", try HTTPAddress(begun.address), body: .bytes([])))
    caught.withLockedValue { $0 = consent.headers["Location"] ?? "" }
    let code = try #require(caught.withLockedValue { $0 }.firstMatch(of: /code=([^&]*)/)).1
    // The interceptors know the state, and start with another verifier.
    let other = try await client.beginSignIn(returningTo: "http://127.0.0.1:1/x")
    #expect(
      await BuckiaSyncTests.code {
        _ = try await client.finish(other, with: "http://127.0.0.1:1/x?code=\(code)&state=\(other.state.value)")
      } == .signInEnded)
  }

  @Test("With Authlib's server: after its keys have changed, people can still sign in")
  func newKey() async throws {
    let servers = try await SignInServers.shared()
    let client = try real(servers.authlib)
    _ = try await client.signIn { try await SignInServers.browse($0) }
    try await SignInServers.post("\(servers.authlib)/test/new-key")
    #expect(try await client.signIn { try await SignInServers.browse($0) }.identity?.subject == "anna")
  }

  @Test("With Authlib's server: a manager renews a token once, however many callers request it")
  func manager() async throws {
    let servers = try await SignInServers.shared()
    let client = try real(servers.authlib)
    let signIn = try await client.signIn { try await SignInServers.browse($0) }
    var due = signIn.token
    due.expires = 1
    let manager = TokenManager(store: MemoryTokenStore([.storage: due]))
    await manager.setSources([client.source], for: .storage)
    let found = try await withThrowingTaskGroup(of: SecretText.self) { group in
      for _ in 0..<20 { group.addTask { try await manager.token(for: .storage).value } }
      return try await group.reduce(into: Set<SecretText>()) { $0.insert($1) }
    }
    #expect(found.count == 1 && !found.contains(due.value))
  }

  // MARK: The address

  @Test("The challenge equals that of RFC 7636, appendix B")
  func challenge() {
    #expect(
      CodeSignIn.challenge(of: SecretText("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"))
        == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
  }

  @Test("The address has all parameters, keeps its own query, and is different each time")
  func address() async throws {
    let client = try server.client()
    let first = try await client.beginSignIn(returningTo: "https://app.example/back")
    let second = try await client.beginSignIn(returningTo: "https://app.example/back")
    #expect(
      first.address
        == "https://login.example/authorize?tenant=a&response_type=code&client_id=app&redirect_uri=https%3A%2F%2Fapp.example%2Fback"
        + "&scope=openid%20offline_access&state=\(first.state.value)&code_challenge=\(CodeSignIn.challenge(of: first.verifier))"
        + "&code_challenge_method=S256&nonce=\(first.nonce.value)")
    #expect(Set([first, second].flatMap { [$0.state, $0.nonce, $0.verifier] }).count == 6)
    #expect(first.verifier.value.utf8.count == 43)
  }

  // MARK: The browser's answer

  @Test(
    "Only the answer to this sign-in is accepted",
    arguments: [
      ("?code=c&state=other", .wrongState), ("?code=c", .wrongState), ("", .wrongState), ("?", .wrongState),
      ("?code=c&state=S&state=S", .invalidAnswer), ("?code=c&code=d&state=S", .invalidAnswer),
      ("?state=S", .invalidAnswer),
      ("?code=&state=S", .invalidAnswer), ("?code=%zz&state=S", .invalidAnswer),
      ("?error=access_denied&state=S", .accessDenied),
      ("?error=access_denied&state=other", .wrongState),
      ("?code=c&state=S&iss=https%3A%2F%2Fevil.example", .wrongState),
      ("?error=server_error&error_description=a+b%1b&state=S", .unavailable), ("#code=c&state=S", .wrongState),
    ] as [(String, StorageError.Code)])
  func callback(_ query: String, _ expected: StorageError.Code) async throws {
    let transport = server.transport
    let client = try server.client(transport)
    let begun = try await client.beginSignIn(returningTo: "app:/back")
    let target = "app:/back" + query.replacing("S", with: begun.state.value)
    #expect(await code { _ = try await client.finish(begun, with: target) } == expected)
    #expect(!transport.sent.contains { $0.url.path == "/token" })
  }

  @Test("A server that announces its name in answers has to send it")
  func missingIssuer() async throws {
    server.metadata.withLockedValue { $0["authorization_response_iss_parameter_supported"] = true }
    let client = try server.client()
    let begun = try await client.beginSignIn(returningTo: "app:/back")
    #expect(
      await code { _ = try await client.finish(begun, with: "app:/back?code=c&state=\(begun.state.value)") }
        == .wrongState)
  }

  @Test("The code is redeemed with the verifier, and the identity has to belong to this sign-in")
  func redemption() async throws {
    let server = server
    let client = try server.client()
    let begun = try await client.beginSignIn(returningTo: "app:/back")
    let good = try await TestKeys.rsaSigned(server.claims(nonce: begun.nonce.value))
    server.token.withLockedValue {
      $0 = { request in
        #expect(
          request.form == [
            "grant_type": "authorization_code", "code": "c +", "redirect_uri": "app:/back", "client_id": "app",
            "code_verifier": begun.verifier.value,
          ])
        return StubProvider.tokens(good)
      }
    }
    let target = "app:/back?code=c%20%2B&state=\(begun.state.value)&iss=https%3A%2F%2Flogin.example"
    #expect(try await client.finish(begun, with: target).identity?.subject == "anna")
    let replayed = try await TestKeys.rsaSigned(server.claims(nonce: "of another sign-in"))
    server.token.withLockedValue { $0 = { _ in StubProvider.tokens(replayed) } }
    #expect(await code { _ = try await client.finish(begun, with: target) } == .wrongState)
    server.token.withLockedValue { $0 = { _ in StubProvider.tokens("", [("id_token", .null)]) } }
    #expect(await code { _ = try await client.finish(begun, with: target) } == .invalidAnswer)
  }
}
