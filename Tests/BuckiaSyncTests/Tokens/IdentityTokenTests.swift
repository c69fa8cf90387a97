import BuckiaBytes
import BuckiaSync
import Crypto
import NIOConcurrencyHelpers
import Testing

@testable import BuckiaSync

@Suite("Verifying identity tokens")
struct IdentityTokenTests {
  private let server = StubProvider()

  private func verify(_ text: String, nonce: String? = nil, _ transport: StubTransport? = nil) async throws
    -> SignedInIdentity
  {
    try await server.client(transport).identity(text, nonce: nonce)
  }

  @Test("A token that the server has signed is accepted", arguments: ["RS256", "ES256"])
  func accepted(_ algorithm: String) async throws {
    let claims = server.claims(["email": "anna@example.com"], nonce: "n")
    var text = try await TestKeys.rsaSigned(claims)
    if algorithm == "ES256" {
      let key = try await TokenSigningKey.ecdsaP256(pem: SecretText(TestKeys.ecdsaPrivate))
      text = try TestKeys.token(["alg": "ES256", "kid": "ec"], claims) { try key.signature(of: Array($0.utf8)) }
    }
    let identity = try await verify(text, nonce: "n")
    #expect(
      identity
        == SignedInIdentity(issuer: StubProvider.issuer, subject: "anna", email: "anna@example.com", name: "Anna"))
  }

  @Test("A token without a key id is tried with all keys of its type")
  func withoutID() async throws {
    #expect(try await verify(try await TestKeys.rsaSigned(server.claims(), keyID: nil)).subject == "anna")
  }

  @Test(
    "Missing, wrong and foreign claims are refused",
    arguments: [
      ("iss", "https://evil.example", .invalidToken), ("iss", .null, .invalidToken), ("aud", "other", .invalidToken),
      ("aud", ["other", "another"], .invalidToken), ("aud", ["app", "other"], .invalidToken),
      ("aud", .null, .invalidToken),
      ("azp", "other", .invalidToken), ("azp", 7, .invalidToken), ("exp", .null, .invalidToken),
      ("exp", "soon", .invalidToken),
      ("exp", 1_799_999_939, .expired), ("iat", 1_800_000_061, .notYetValid), ("nbf", 1_800_000_061, .notYetValid),
      ("sub", .null, .invalidToken), ("sub", "", .invalidToken), ("nonce", "other", .wrongState),
      ("nonce", .null, .wrongState),
    ] as [(String, JSONValue, StorageError.Code)])
  func hostileClaims(_ name: String, _ value: JSONValue, _ expected: StorageError.Code) async throws {
    let text = try await TestKeys.rsaSigned(
      server.claims([name: value].merging(name == "nonce" ? [:] : ["nonce": "n"]) { $1 }))
    #expect(await code { _ = try await verify(text, nonce: "n") } == expected)
  }

  @Test(
    "A clock difference within the leeway is accepted",
    arguments: [("exp", 1_799_999_941), ("iat", 1_800_000_060), ("nbf", 1_800_000_060)] as [(String, JSONValue)])
  func clockSkew(_ name: String, _ value: JSONValue) async throws {
    #expect(try await verify(try await TestKeys.rsaSigned(server.claims([name: value]))).subject == "anna")
  }

  @Test("Several audiences are accepted if the token names us as its authorized party")
  func authorizedParty() async throws {
    let claims = server.claims(["aud": ["other", "app"], "azp": "app"])
    #expect(try await verify(try await TestKeys.rsaSigned(claims)).subject == "anna")
  }

  @Test("An unsigned token is refused")
  func unsigned() async throws {
    for algorithm: JSONValue in ["none", "None", "", 7] {
      let text = TestKeys.token(["alg": algorithm, "kid": "rsa"], server.claims()) { _ in [] }
      #expect(await code { _ = try await verify(text) } == .invalidToken)
    }
  }

  @Test("The server's public key is never used as a shared secret")
  func keyConfusion() async throws {
    let modulus = try #require(try TestKeys.webKeys().text().firstMatch(of: /"n":"([^"]*)"/)).1
    let secrets: [[UInt8]] = [
      Array(TestKeys.rsaPublic.utf8), Array((TestKeys.rsaPublic + "\n").utf8), Array(modulus.utf8),
      try #require(Base64URL.bytes(modulus)), Array("app".utf8),
    ]
    for secret in secrets {
      for id in ["rsa", "ec", "none"] {
        let text = TestKeys.token(["alg": "HS256", "kid": .string(id)], server.claims()) {
          Array(HMAC<SHA256>.authenticationCode(for: Array($0.utf8), using: SymmetricKey(data: secret)))
        }
        #expect(await code { _ = try await verify(text) } == .invalidToken)
      }
    }
  }

  @Test("A shared secret among the server's keys is not used")
  func publishedSecret() async throws {
    let secret = TestKeys.secret
    let published: JSONValue = [
      "keys": [["kty": "oct", "kid": "s", "k": .string(Base64URL.text(secret)), "alg": "HS256"]]
    ]
    server.keys.withLockedValue { $0 = { _ in .text(published.text()) } }
    let text = TestKeys.token(["alg": "HS256", "kid": "s"], server.claims()) {
      Array(HMAC<SHA256>.authenticationCode(for: Array($0.utf8), using: SymmetricKey(data: secret)))
    }
    #expect(await code { _ = try await verify(text) } == .invalidToken)
  }

  @Test("A key inside the token is not used")
  func embeddedKey() async throws {
    let key = try await TokenSigningKey.ed25519(seed: TestKeys.seed)
    let own = try Curve25519.Signing.PrivateKey(rawRepresentation: TestKeys.seed).publicKey.rawRepresentation
    let header: JSONValue = [
      "alg": "EdDSA", "jku": "https://evil.example/keys",
      "jwk": ["kty": "OKP", "crv": "Ed25519", "x": .string(Base64URL.text([UInt8](own)))],
    ]
    let transport = server.transport
    let text = try TestKeys.token(header, server.claims()) { try key.signature(of: Array($0.utf8)) }
    #expect(await code { _ = try await verify(text, transport) } == .invalidToken)
    #expect(transport.sent.allSatisfy { $0.url.host == "login.example" })
  }

  @Test("A signature under another key's name, or by an encryption key, is refused")
  func wrongKey() async throws {
    let text = try await TestKeys.rsaSigned(server.claims(), keyID: "ec")
    #expect(await code { _ = try await verify(text) } == .invalidToken)
    let published = try TestKeys.webKeys().text().replacing(#""use":"sig""#, with: #""use":"enc""#)
    server.keys.withLockedValue { $0 = { _ in .text(published) } }
    let own = try await TestKeys.rsaSigned(server.claims())
    #expect(await code { _ = try await verify(own) } == .invalidToken)
  }

  @Test("A key for another algorithm is not used for this one")
  func ownAlgorithm() async throws {
    let published = try TestKeys.webKeys().text().replacing(#""use":"sig""#, with: #""use":"sig","alg":"PS256""#)
    server.keys.withLockedValue { $0 = { _ in .text(published) } }
    let text = try await TestKeys.rsaSigned(server.claims())
    #expect(await code { _ = try await verify(text) } == .invalidToken)
  }

  @Test("New keys of a server are requested once, and not again for each forgery")
  func newKeys() async throws {
    let asked = NIOLockedValueBox(0)
    server.keys.withLockedValue {
      $0 = { _ in
        let isFirst = asked.withLockedValue {
          $0 += 1
          return $0 == 1
        }
        return .text(try TestKeys.webKeys(rsaID: isFirst ? "old" : "rsa").text())
      }
    }
    let client = try server.client()
    let text = try await TestKeys.rsaSigned(server.claims())
    #expect(try await client.identity(text, nonce: nil).subject == "anna")
    #expect(try await client.identity(text, nonce: nil).subject == "anna")
    #expect(asked.withLockedValue { $0 } == 2)
    let forged = try await TestKeys.rsaSigned(server.claims(), keyID: "unknown")
    #expect(await code { _ = try await client.identity(forged, nonce: nil) } == .invalidToken)
    #expect(asked.withLockedValue { $0 } == 3)
  }

  @Test(
    "An answer with damaged or too many keys is refused",
    arguments: [
      "{}", #"{"keys":7}"#, #"{"keys":[7]}"#, #"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}"#,
      #"{"keys":[{"kty":"RSA"}]}"#, "no", "{\"keys\":[" + String(repeating: "{},", count: 200) + "{}]}",
    ])
  func damagedKeys(_ text: String) async throws {
    server.keys.withLockedValue { $0 = { _ in .text(text) } }
    let token = try await TestKeys.rsaSigned(server.claims())
    #expect(await code { _ = try await verify(token) } == .invalidAnswer)
  }
}

extension IdentityTokenTests {
  private func verify(_ text: String, _ transport: StubTransport) async throws -> SignedInIdentity {
    try await verify(text, nonce: nil, transport)
  }
}
