import BuckiaBytes
import BuckiaSync
import BuckiaStorage
import NIOConcurrencyHelpers

@testable import BuckiaSync

/// A sign-in server with answers that a test chooses.
final class StubProvider: Sendable {
  typealias Answer = @Sendable (HTTPTransportRequest) async throws -> HTTPTransportResponse

  static let issuer = "https://login.example"
  let time = TestClock()
  /// Changes of its metadata; null leaves a member out.
  let metadata = NIOLockedValueBox<[String: JSONValue]>([:])
  let keys = NIOLockedValueBox<Answer>({ _ in .text(try TestKeys.webKeys().text()) })
  let token = NIOLockedValueBox<Answer>({ _ in .text("{}", status: 400) })
  let device = NIOLockedValueBox<Answer>({ _ in .text("{}", status: 400) })
  let revocation = NIOLockedValueBox<Answer>({ _ in .text("") })

  var configuration: OAuthConfiguration { OAuthConfiguration(issuer: Self.issuer, clientID: "app") }

  var transport: StubTransport {
    StubTransport { request in
      switch request.url.path {
      case "/.well-known/openid-configuration": .text(self.document.text())
      case "/keys": try await self.keys.withLockedValue { $0 }(request)
      case "/token": try await self.token.withLockedValue { $0 }(request)
      case "/device": try await self.device.withLockedValue { $0 }(request)
      case "/revoke": try await self.revocation.withLockedValue { $0 }(request)
      default: .text("", status: 404)
      }
    }
  }

  private var document: JSONValue {
    var members: [(String, JSONValue)] = [
      ("issuer", .string(Self.issuer)), ("authorization_endpoint", "https://login.example/authorize?tenant=a"),
      ("token_endpoint", "https://login.example/token"), ("jwks_uri", "https://login.example/keys"),
      ("device_authorization_endpoint", "https://login.example/device"),
      ("revocation_endpoint", "https://login.example/revoke"),
    ]
    for (name, value) in metadata.withLockedValue({ $0 }) {
      members.removeAll { $0.0 == name }
      if value != .null { members.append((name, value)) }
    }
    return .object(JSONObject(members.map { JSONObject.Member($0.0, $0.1) }))
  }

  func client(_ transport: StubTransport? = nil) throws -> OAuthClient {
    try OAuthClient(configuration, transport: transport ?? self.transport, retries: .impatient, clock: time.clock)
  }

  /// Valid claims of an ID token, with some of them changed; null leaves a claim out.
  func claims(_ changes: [String: JSONValue] = [:], nonce: String? = nil) -> JSONValue {
    var claims: [String: JSONValue] = [
      "iss": .string(Self.issuer), "sub": "anna", "aud": "app", "exp": .integer(time.now / 1000 + 600),
      "iat": .integer(time.now / 1000), "name": "Anna",
    ]
    if let nonce { claims["nonce"] = .string(nonce) }
    claims.merge(changes) { $1 }
    return .object(JSONObject(claims.filter { $0.value != .null }.map { JSONObject.Member($0.key, $0.value) }))
  }

  /// A successful answer of the token endpoint.
  static func tokens(_ idToken: String, _ more: [(String, JSONValue)] = []) -> HTTPTransportResponse {
    var members = JSONObject([
      .init("access_token", "access"), .init("token_type", "Bearer"), .init("expires_in", 3600),
      .init("refresh_token", "refresh"), .init("id_token", .string(idToken)),
    ])
    for (name, value) in more {
      members.members.removeAll { $0.name == name }
      if value != .null { members.append(name, value) }
    }
    return .text(JSONValue.object(members).text())
  }
}
