import BuckiaSync
import BuckiaStorage
import Testing

/// The expected addresses are from the tests that Bunny.net publishes with its C# library
/// (<https://github.com/BunnyWay/BunnyCDN.TokenAuthentication>), for the scheme without HMAC.
@Suite("Signed addresses of Bunny.net's CDN")
struct BunnyURLTokenTests {
  private static let host = "https://token-tester.b-cdn.net"
  private static let expires: Int64 = 1_598_024_587

  struct Vector: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let path: String
    let rules: BunnyTokenRules
    let signed: String

    init(_ description: String, _ path: String, _ signed: String, _ change: (inout BunnyTokenRules) -> Void = { _ in })
    {
      testDescription = description
      self.path = path
      self.signed = signed
      var rules = BunnyTokenRules(expires: BunnyURLTokenTests.expires)
      change(&rules)
      self.rules = rules
    }
  }

  private static let vectors = [
    Vector(
      "countries", "/300kb.jpg",
      "/300kb.jpg?token=3ZdIIg1-PB_UOF62lQIqfT4MWr2ENIdd0KWnQVuej3w&token_countries=CA&token_path=%2F&expires=1598024587"
    ) {
      $0.countries = ["CA"]
      $0.path = "/"
    },
    Vector(
      "blocked countries", "/300kb.jpg",
      "/300kb.jpg?token=bq6dlNKcoVbTrzCJepE5gHoC436eTtz97Ruk89V8tmU&token_countries_blocked=CA&expires=1598024587"
    ) { $0.blockedCountries = ["CA"] },
    Vector(
      "an address", "/300kb.jpg", "/300kb.jpg?token=xUWMwsZcXfzxMvTTFiKAN6if1WBhDZV1Shjt_GOrjG0&expires=1598024587"
    ) { $0.userIP = "1.2.3.4" },
    Vector(
      "a path", "/abc/300kb.jpg",
      "/abc/300kb.jpg?token=xwPaUzEMSgOZ7yl86K55G7len9n1UMiuP36IAyw8Mjs&token_path=%2Fabc&expires=1598024587"
    ) { $0.path = "/abc" },
    Vector(
      "in the path", "/abc/", "/bcdn_token=e0fYj-NC_YeROS_0gTGvscP7HR_Du78I7WBVSDV8P4E&expires=1598024587/abc/"
    ) { $0.isInPath = true },
    Vector(
      "in the path, with a path", "/abc/",
      "/bcdn_token=xwPaUzEMSgOZ7yl86K55G7len9n1UMiuP36IAyw8Mjs&token_path=%2Fabc&expires=1598024587/abc/"
    ) {
      $0.isInPath = true
      $0.path = "/abc"
    },
  ]

  @Test("Signed addresses equal those that Bunny.net publishes", arguments: vectors)
  func published(vector: Vector) throws {
    #expect(try vector.rules.signed(Self.host + vector.path, key: "SecurityKey") == Self.host + vector.signed)
  }

  @Test("The signature covers referrers, the speed limit and the query of the address")
  func covered() throws {
    var rules = BunnyTokenRules(expires: Self.expires)
    let plain = try rules.signed("\(Self.host)/a.jpg", key: "SecurityKey")
    rules.referrers = ["example.com"]
    rules.speedLimit = 500
    let limited = try rules.signed("\(Self.host)/a.jpg?width=3", key: "SecurityKey")
    #expect(limited.contains("&limit=500&token_referer=example.com&width=3&expires="))
    func token(_ text: String) -> Substring? { text.split(separator: "token=").last?.prefix { $0 != "&" } }
    #expect(token(plain) != token(limited))
  }

  @Test("An invalid address is refused") func invalid() {
    #expect(throws: StorageError.self) { try BunnyTokenRules(expires: 1).signed("/a.jpg", key: "k") }
  }
}
