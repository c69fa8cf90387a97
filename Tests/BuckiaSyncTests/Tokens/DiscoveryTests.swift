import BuckiaBytes
import BuckiaSync
import BuckiaStorage
import NIOConcurrencyHelpers
import Testing

@testable import BuckiaSync

@Suite("The metadata of a sign-in server")
struct DiscoveryTests {
  private let server = StubProvider()

  @Test("The metadata is requested once, from the standard address")
  func address() async throws {
    let transport = server.transport
    let client = try server.client(transport)
    _ = try await client.metadata()
    _ = try await client.metadata()
    #expect(transport.sent.map(\.url.description) == ["https://login.example/.well-known/openid-configuration"])
  }

  @Test(
    "Metadata with a missing member or an insecure address is refused",
    arguments: [
      ("issuer", "https://login.example/"), ("issuer", "https://evil.example"), ("issuer", .null), ("issuer", 7),
      ("authorization_endpoint", .null), ("authorization_endpoint", "http://login.example/authorize"),
      ("authorization_endpoint", "javascript:alert(1)"), ("token_endpoint", .null), ("token_endpoint", "ftp://x"),
      ("token_endpoint", "http://127.0.0.1.evil.example/token"), ("jwks_uri", .null),
      ("jwks_uri", "file:///etc/passwd"),
      ("revocation_endpoint", "http://login.example/revoke"), ("device_authorization_endpoint", ["https://x"]),
    ] as [(String, JSONValue)])
  func hostile(_ name: String, _ value: JSONValue) async throws {
    server.metadata.withLockedValue { $0[name] = value }
    let client = try server.client()
    #expect(await code { _ = try await client.metadata() } == .invalidAnswer)
  }

  @Test("A server that cannot do PKCE with SHA-256 is refused")
  func plainChallenge() async throws {
    server.metadata.withLockedValue { $0["code_challenge_methods_supported"] = ["plain"] }
    let client = try server.client()
    #expect(await code { _ = try await client.metadata() } == .unsupported)
  }

  @Test(
    "An answer without metadata is refused, and the address is in the error",
    arguments: ["", "<html>", "[]", "null", "{", #"{"issuer":"a","issuer":"b"}"#, String(repeating: "[", count: 5000)])
  func noDocument(_ text: String) async throws {
    let client = try server.client(StubTransport { _ in .text(text) })
    let error = await #expect(throws: StorageError.self) { try await client.metadata() }
    #expect(error?.code == .invalidAnswer)
    #expect(error?.message.contains("https://login.example") == true)
  }

  @Test("An endless body is not read to its end")
  func hugeBody() async throws {
    let read = NIOLockedValueBox(0)
    let body = ByteChunks {
      {
        read.withLockedValue { $0 += 1 }
        return Array(repeating: UInt8(ascii: " "), count: 64 << 10)
      }
    }
    let client = try server.client(StubTransport { _ in HTTPTransportResponse(status: 200, headers: [:], body: body) })
    #expect(await code { _ = try await client.metadata() } == .invalidAnswer)
    #expect(read.withLockedValue { $0 } < 20)
  }

  @Test("A fault of the server is reported as such, and the request is repeated later", arguments: [500, 404, 302])
  func fault(_ status: Int) async throws {
    let isBroken = NIOLockedValueBox(true)
    let server = server
    let whole = server.transport
    let client = try server.client(
      StubTransport { isBroken.withLockedValue { $0 } ? .text("", status: status) : try await whole.send($0) })
    await #expect(throws: StorageError.self) { try await client.metadata() }
    isBroken.withLockedValue { $0 = false }
    #expect(try await client.metadata().issuer == StubProvider.issuer)
  }

  @Test(
    "Invalid settings are refused at once",
    arguments: ["http://login.example", "login.example", "https://a?b", ""])
  func settings(_ issuer: String) async throws {
    let configuration = OAuthConfiguration(issuer: issuer, clientID: "app")
    #expect(
      await code { _ = try OAuthClient(configuration, transport: StubTransport { _ in .text("") }) } == .invalidSetting)
    let nameless = OAuthConfiguration(issuer: "https://x.example", clientID: "")
    #expect(
      await code { _ = try OAuthClient(nameless, transport: StubTransport { _ in .text("") }) } == .invalidSetting)
  }
}
