import BuckiaBytes
import BuckiaSync
import BuckiaStorage
import Crypto
import Testing

@testable import BuckiaSync

@Suite("Signed tokens")
struct SignedTokenTests {
  private let time = TestClock()

  private static func key(_ algorithm: SignatureAlgorithm, id: String? = nil) async throws -> TokenSigningKey {
    switch algorithm {
    case .es256: try await .ecdsaP256(pem: SecretText(TestKeys.ecdsaPrivate), id: id)
    case .edDSA: try await .ed25519(seed: TestKeys.seed, id: id)
    default: try await .hmacSHA256(secret: TestKeys.secret, id: id)
    }
  }

  private func factory(_ key: TokenSigningKey) -> SignedTokenFactory {
    SignedTokenFactory(key: key, issuer: "https://share.example", audience: "storage", clock: time.clock)
  }

  private func verifier(_ keys: [TokenVerificationKey], leewaySeconds: Int64 = 60) -> SignedTokenVerifier {
    SignedTokenVerifier(
      keys: keys, issuer: "https://share.example", audience: "storage", leewaySeconds: leewaySeconds, clock: time.clock)
  }

  private var options: AccessTokenOptions {
    get throws {
      AccessTokenOptions(.readingAll(writing: try RemotePath("7f3a/inbound")), validSeconds: 600, name: "anna")
    }
  }

  /// Valid claims, with one of them changed.
  private func claims(_ name: String = "", _ value: JSONValue? = nil) throws -> JSONObject {
    var claims = JSONObject([
      .init("iss", "https://share.example"), .init("sub", "anna"), .init("aud", "storage"),
      .init("exp", .integer(time.now / 1000 + 600)), .init("buckia_permissions", try options.permissions.document),
    ])
    if !name.isEmpty { claims.members.removeAll { $0.name == name } }
    if let value { claims.append(name, value) }
    return claims
  }

  @Test("A verified token has its permissions", arguments: [SignatureAlgorithm.hs256, .es256, .edDSA])
  func roundTrip(_ algorithm: SignatureAlgorithm) async throws {
    let key = try await Self.key(algorithm, id: "k1")
    let token = try factory(key).makeToken(try options)
    let grant = try verifier([key.verificationKey]).verify(token.value.value)
    #expect(grant.subject == "anna")
    #expect(grant.permissions == (try options.permissions))
    #expect(grant.expires == time.now + 600_000 && token.expires == grant.expires)
    #expect(grant.id?.utf8.count == 43)
    let header = Base64URL.bytes(token.value.value.prefix { $0 != "." }).map { String(decoding: $0, as: UTF8.self) }
    #expect(header == #"{"alg":"\#(algorithm.rawValue)","typ":"JWT","kid":"k1"}"#)
  }

  @Test("The public halves verify, too")
  func publicKeys() async throws {
    let ed25519 = try await TokenVerificationKey.ed25519(
      [UInt8](Curve25519.Signing.PrivateKey(rawRepresentation: TestKeys.seed).publicKey.rawRepresentation))
    let ecdsa = try await TokenVerificationKey.ecdsaP256(pem: TestKeys.ecdsaPublic)
    for algorithm: SignatureAlgorithm in [.es256, .edDSA] {
      let token = try factory(try await Self.key(algorithm)).makeToken(try options)
      #expect(try verifier([ed25519, ecdsa]).verify(token.value.value).subject == "anna")
    }
  }

  @Test("The example of RFC 7515, appendix A.1, is verified")
  func publishedVector() async throws {
    let secret = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"
    let key = try await TokenVerificationKey.hmacSHA256(secret: try #require(Base64URL.bytes(secret)))
    let text =
      "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
      + ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    let token = try CompactToken(text)
    try token.require(signatureBy: [key])
    #expect(token.claims.text("iss") == "joe")
    #expect(throws: StorageError.self) {
      try CompactToken(text.replacing("dBj", with: "dBk")).require(signatureBy: [key])
    }
  }

  @Test("A token changed anywhere is refused")
  func tampering() async throws {
    let key = try await Self.key(.edDSA)
    let text = try factory(key).makeToken(try options).value.value
    let verifier = verifier([key.verificationKey])
    _ = try verifier.verify(text)
    let bytes = Array(text.utf8)
    // The last character's low bits do not belong to the signature.
    for index in stride(from: 0, to: bytes.count - 1, by: 3) {
      var changed = bytes
      changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      #expect(throws: StorageError.self, "\(index)") { try verifier.verify(String(decoding: changed, as: UTF8.self)) }
    }
  }

  @Test(
    "An unsigned token is refused, however it names the algorithm",
    arguments: ["none", "None", "NONE", "nOnE", "", "HS257", "RS256", "ES256K"])
  func unsigned(_ algorithm: String) async throws {
    let key = try await Self.key(.hs256)
    let claims = try claims()
    for signature in [[], [0], Array(repeating: UInt8(0), count: 64)] as [[UInt8]] {
      let text = TestKeys.token(["alg": .string(algorithm)], .object(claims)) { _ in signature }
      #expect(await code { _ = try verifier([key.verificationKey]).verify(text) } == .invalidToken)
    }
  }

  @Test("A public key is never used as a shared secret")
  func keyConfusion() async throws {
    let claims = try claims()
    let ecdsa = try await TokenVerificationKey.ecdsaP256(pem: TestKeys.ecdsaPublic)
    let secrets = [TestKeys.ecdsaPublic, TestKeys.ecdsaPublic + "\n"].map { Array($0.utf8) }
    for secret in secrets {
      let text = TestKeys.token(["alg": "HS256"], .object(claims)) {
        Array(HMAC<SHA256>.authenticationCode(for: Array($0.utf8), using: SymmetricKey(data: secret)))
      }
      #expect(await code { _ = try verifier([ecdsa]).verify(text) } == .invalidToken)
    }
  }

  @Test("A key is only used for its own algorithm, even if the signature would be valid")
  func mislabelled() async throws {
    let key = try await Self.key(.edDSA)
    let text = try TestKeys.token(["alg": "ES256"], .object(try claims())) { try key.signature(of: Array($0.utf8)) }
    #expect(await code { _ = try verifier([key.verificationKey]).verify(text) } == .invalidToken)
  }

  @Test("A signature by another key, or for another key's id, is refused")
  func otherKey() async throws {
    let claims = try claims()
    let other = try await TokenSigningKey.ed25519(seed: TestKeys.seed.reversed(), id: "k1")
    let own = try await Self.key(.edDSA, id: "k1")
    let forged = try CompactToken.text(claims, signedBy: other)
    #expect(await code { _ = try verifier([own.verificationKey]).verify(forged) } == .invalidToken)
    let renamed = try CompactToken.text(claims, signedBy: try await Self.key(.edDSA, id: "k2"))
    #expect(await code { _ = try verifier([own.verificationKey]).verify(renamed) } == .invalidToken)
    #expect(await code { _ = try verifier([]).verify(forged) } == .invalidToken)
  }

  @Test("Times are enforced, with the leeway and no more")
  func times() async throws {
    let key = try await Self.key(.hs256)
    let token = try factory(key).makeToken(try options).value.value
    let verifier = verifier([key.verificationKey])
    time.advance(-60_000)
    #expect(try verifier.verify(token).subject == "anna")
    time.advance(-1000)
    #expect(await code { _ = try verifier.verify(token) } == .notYetValid)
    time.advance(61_000 + 659_000)
    #expect(try verifier.verify(token).subject == "anna")
    time.advance(1000)
    #expect(await code { _ = try verifier.verify(token) } == .expired)
  }

  @Test("A leeway of more than an hour is not honoured")
  func leeway() async throws {
    let key = try await Self.key(.hs256)
    let token = try factory(key).makeToken(try options).value.value
    time.advance(600_000 + 3_600_000)
    #expect(await code { _ = try verifier([key.verificationKey], leewaySeconds: .max).verify(token) } == .expired)
    #expect(await code { _ = try verifier([key.verificationKey], leewaySeconds: .min).verify(token) } == .expired)
  }

  @Test(
    "Missing, malformed and foreign claims are refused",
    arguments: [
      ("iss", nil), ("iss", "https://share.example/"), ("iss", ["https://share.example"]), ("aud", nil),
      ("aud", "other"),
      ("aud", []), ("aud", 7), ("sub", nil), ("sub", 7), ("exp", nil), ("exp", "1900000000"), ("exp", .null),
      ("exp", .real(1e300)), ("exp", -1), ("exp", .integer(.max)), ("nbf", 1_900_000_000), ("nbf", "x"),
      ("iat", 1_900_000_000), ("buckia_permissions", nil), ("buckia_permissions", "all"),
    ] as [(String, JSONValue?)])
  func hostileClaims(_ name: String, _ value: JSONValue?) async throws {
    let key = try await Self.key(.hs256)
    let text = try CompactToken.text(try claims(name, value), signedBy: key)
    #expect(throws: StorageError.self) { try verifier([key.verificationKey]).verify(text) }
  }

  @Test("Claims in all permitted forms are accepted")
  func friendlyClaims() async throws {
    let key = try await Self.key(.hs256)
    for (name, value): (String, JSONValue) in [
      ("aud", ["other", "storage"]), ("exp", .real(1_800_000_100.5)), ("x", [1]),
    ] {
      let text = try CompactToken.text(try claims(name, value), signedBy: key)
      #expect(try verifier([key.verificationKey]).verify(text).subject == "anna")
    }
  }

  @Test(
    "A text that is no token is refused",
    arguments: [
      "", ".", "..", "...", "a.b.c", "e30.e30.e30", "bnVsbA.e30.AAAA", "eyJhbGciOiJIUzI1NiJ9.e30",
      "eyJhbGciOiJIUzI1NiJ9.e30.",
      "eyJhbGciOiJIUzI1NiJ9.e30.!!!!", "eyJhbGciOiJIUzI1NiJ9.W10.AAAA", "eyJhbGciOjd9.e30.AAAA",
      String(repeating: "a", count: 70_000),
    ])
  func noToken(_ text: String) async throws {
    let key = try await Self.key(.hs256)
    #expect(await code { _ = try verifier([key.verificationKey]).verify(text) } == .invalidToken)
  }

  @Test("A header with a critical extension, or a repeated member, is refused")
  func hostileHeader() async throws {
    let key = try await Self.key(.hs256)
    let claims = try claims()
    for header: JSONValue in [
      ["alg": "HS256", "crit": ["exp"]], ["alg": "HS256", "crit": []], ["alg": "HS256", "kid": 7],
    ] {
      let text = try TestKeys.token(header, .object(claims)) { try key.signature(of: Array($0.utf8)) }
      #expect(await code { _ = try verifier([key.verificationKey]).verify(text) } == .invalidToken)
    }
    let twice = Base64URL.text(Array(#"{"alg":"none","alg":"HS256"}"#.utf8)) + ".e30"
    let text = "\(twice).\(Base64URL.text(try key.signature(of: Array(twice.utf8))))"
    #expect(await code { _ = try verifier([key.verificationKey]).verify(text) } == .invalidToken)
  }

  @Test("Invalid keys are refused")
  func badKeys() async throws {
    #expect(
      await code { _ = try await TokenSigningKey.hmacSHA256(secret: Array(repeating: 1, count: 31)) } == .invalidSetting
    )
    #expect(await code { _ = try await TokenSigningKey.ed25519(seed: [1]) } == .invalidSetting)
    #expect(await code { _ = try await TokenSigningKey.ecdsaP256(pem: SecretText("x")) } == .invalidSetting)
    #expect(await code { _ = try await TokenVerificationKey.ed25519([1]) } == .invalidSetting)
    #expect(await code { _ = try await TokenVerificationKey.ecdsaP256(pem: TestKeys.rsaPublic) } == .invalidSetting)
  }

  @Test("A manager renews signed tokens by itself")
  func source() async throws {
    let factory = factory(try await Self.key(.edDSA))
    let manager = TokenManager(store: MemoryTokenStore(), clock: time.clock)
    await manager.setSources([factory.source(try options)], for: .inbound(of: "ben"))
    let first = try await manager.token(for: .inbound(of: "ben"))
    #expect(try await manager.token(for: .inbound(of: "ben")) == first)
    time.advance(599_000)
    #expect(try await manager.token(for: .inbound(of: "ben")) != first)
  }
}
