import BuckiaBytes
import BuckiaSync
import BuckiaStorage
import Testing

@testable import BuckiaSync

@Suite("Secrets are not printed")
struct SecretPrintingTests {
  private static let secret = "gR3pM3-s3cr3t"

  /// The text that printing, interpolating, dumping and mirroring a value show.
  private func shown(_ value: Any) -> String {
    var text = "\(value) \(String(describing: value)) \(String(reflecting: value))"
    dump(value, to: &text)
    return text
  }

  private enum Metadata {
    static func make() async throws -> ProviderMetadata {
      let server = StubProvider()
      return try await OAuthClient(server.configuration, transport: server.transport).metadata()
    }
  }

  @Test("No value that holds a secret shows it")
  func values() async throws {
    let secret = SecretText(Self.secret)
    let token = AccessToken(secret, issued: 1, expires: 1 << 45, refreshToken: secret, scopes: ["a"])
    var configuration = OAuthConfiguration(issuer: "https://x.example", clientID: "app", clientSecret: secret)
    configuration.resource = "r"
    let key = try await TokenSigningKey.hmacSHA256(
      secret: Array(repeating: 0x41, count: 40) + Array(Self.secret.utf8), id: "k")
    let store = MemoryTokenStore([.storage: token])
    let manager = TokenManager(store: store)
    await manager.setSources([FunctionTokenSource { _ in token }], for: .storage)
    _ = try await manager.token(for: .storage)
    let values: [Any] = [
      secret, [secret], ["a": secret], Optional(secret) as Any, token, B2ApplicationKey(id: "id", secret: secret),
      configuration, SignIn(token: token, identity: nil), key, key.verificationKey,
      SignedTokenFactory(key: key, issuer: "i", audience: "a"),
      SignedAddress(address: secret, permissions: .full, expires: 1),
      try BunnyTokenFactory(address: "https://x.example", key: secret),
      DeviceSignIn(
        address: "https://x.example", code: "AB", addressWithCode: nil, expires: 1, deviceCode: secret, interval: 1),
      try OAuthClient(configuration, transport: StubTransport { _ in .text("") }), manager,
    ]
    for value in values {
      let text = shown(value)
      #expect(!text.contains(Self.secret), "\(type(of: value))")
      // Nor as a list of numbers.
      #expect(!text.contains("65, 65, 65"), "\(type(of: value))")
    }
    let begun = CodeSignIn(configuration, try await Metadata.make(), returningTo: "http://127.0.0.1:1/x")
    #expect(!shown(begun).contains(begun.verifier.value))
  }

  @Test("No error repeats secrets that a server repeats")
  func errors() async throws {
    for body in [
      Self.secret, #"{"access_token":"\#(Self.secret)"}"#, #"{"error":7,"x":"\#(Self.secret)"}"#,
      "[\"\(Self.secret)\"]",
    ] {
      for status in [200, 400] {
        let server = StubProvider()
        server.token.withLockedValue { $0 = { _ in .text(body, status: status) } }
        let client = try OAuthClient(server.configuration, transport: server.transport, retries: .impatient)
        let error = await #expect(throws: StorageError.self) {
          try await client.refreshed(AccessToken(SecretText("x"), refreshToken: SecretText(Self.secret)))
        }
        if let error { #expect(!shown(error).contains(Self.secret), "\(body)") }
      }
    }
  }
}
