import BuckiaBytes
import BuckiaStorage
import Testing

@testable import BuckiaSync

@Suite("Addresses, dates and settings of HTTP")
struct HTTPTests {
  @Test(
    "An address is parsed and formatted",
    arguments: [
      ("https://a.example", "https://a.example/"), ("HTTPS://A.Example:443/x", "https://a.example/x"),
      ("http://127.0.0.1:9000/b?c=d", "http://127.0.0.1:9000/b?c=d"), ("http://[::1]:80/x", "http://[::1]/x"),
      ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443/"),
    ])
  func addresses(text: String, expected: String) throws { #expect(try HTTPAddress(text).description == expected) }

  @Test(
    "An invalid address is refused, and not repeated",
    arguments: [
      "", "a.example", "ftp://a.example", "https://", "https://user:password@a.example", "https://a.example:0",
      "https://a.example:70000", "https://a.example:x", "https://a.example/ b", "https://a.example/#x",
      "https://ä.example",
    ])
  func noAddresses(text: String) throws {
    let error = try #require(throws: StorageError.self) { try HTTPAddress(text) }
    #expect(error.code == .invalidSetting)
    #expect(!error.description.contains("password@"))
  }

  @Test("Parts of a path and of a query are encoded")
  func encoding() throws {
    let address = try HTTPAddress("https://h/base").appending(["a b", "ü/?#%+"])
    #expect(address.path == "/base/a%20b/%C3%BC%2F%3F%23%25%2B")
    #expect(address.with(query: [("a", "b&c"), ("d", "")]).query == "a=b%26c&d=")
    #expect(PercentEncoding.decoded("%C3%BC%2f") == "ü/")
    for text in ["%", "%4", "%zz", "%ff"] { #expect(PercentEncoding.decoded(text) == nil) }
  }

  @Test("A relative reference is resolved")
  func references() throws {
    let address = try HTTPAddress("https://h:8443/a/b?c")
    #expect(try address.resolving("/x").description == "https://h:8443/x")
    #expect(try address.resolving("x").description == "https://h:8443/a/x")
    #expect(try address.resolving("//other/x").description == "https://other/x")
    #expect(try address.resolving("http://other/x").description == "http://other/x")
  }

  @Test("Dates are read in all standard formats")
  func dates() {
    #expect(HTTPDate.milliseconds("Sun, 06 Nov 1994 08:49:37 GMT") == 784_111_777_000)
    for text in ["", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Foo 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT"] {
      #expect(HTTPDate.milliseconds(text) == nil)
    }
    #expect(ISOTime.milliseconds("2015-08-30T12:36:00.500Z") == 1_440_938_160_500)
    #expect(ISOTime.milliseconds("2015-08-30T14:36:00+02:00") == 1_440_938_160_000)
    #expect(ISOTime(seconds: 1_440_938_160).basic == "20150830T123600Z")
    #expect(ISOTime(seconds: 951_782_400).day == "20000229")
    for text in [
      "", "2015-08-30", "2015-13-30T12:36:00Z", "2015-08-30T12:36Z", "9223372036854775807-01-01T00:00:00Z",
      "2015-08-30T12:36:00+9223372036854775807:00",
    ] {
      #expect(ISOTime.milliseconds(text) == nil)
    }
  }

  @Test("Pauses grow, vary, and are limited")
  func pauses() {
    let policy = RetryPolicy()
    #expect(policy.pause(after: 1, wanted: nil, random: 0) == 100)
    #expect(policy.pause(after: 1, wanted: nil, random: 0.999) ?? 0 <= 200)
    #expect(policy.pause(after: 4, wanted: nil, random: 0) == 800)
    #expect(policy.pause(after: 60, wanted: nil, random: 0) == 15_000)
    #expect(policy.pause(after: 1, wanted: 5_000, random: 0) == 5_000)
    #expect(policy.pause(after: 1, wanted: 50_000, random: 0) == nil)
  }

  @Test("The environment's proxies are used as curl uses them")
  func proxies() throws {
    let environment = try ProxyEnvironment([
      "https_proxy": "http://anna:p%40ss@proxy.example:3128", "HTTP_PROXY": "http://evil.example",
      "no_proxy": "internal.example, .local,10.0.0.1",
    ])
    let proxy = environment.server(for: try HTTPAddress("https://storage.example/x"))
    #expect(proxy?.host == "proxy.example")
    #expect(proxy?.port == 3128)
    #expect(proxy?.credentials == "anna:p@ss")
    #expect(environment.server(for: try HTTPAddress("http://storage.example/x")) == nil)
    for host in ["internal.example", "a.internal.example", "x.local", "10.0.0.1"] {
      #expect(environment.server(for: try HTTPAddress("https://\(host)/")) == nil)
    }
    #expect(try ProxyEnvironment(["all_proxy": "proxy:8080"]).server(for: HTTPAddress("http://x/"))?.port == 8080)
    #expect(throws: StorageError.self) { try ProxyEnvironment(["https_proxy": "socks5://x"]) }
  }

  @Test("Settings that cannot be honoured are errors")
  func settings() {
    var pins = HTTPSettings()
    pins.pinnedKeys = ["abc"]
    #expect(throws: StorageError.self) { try AsyncHTTPTransport(pins, environment: [:]) }
    var authorities = HTTPSettings()
    authorities.additionalAuthorities = ["/no/such/file.pem"]
    #expect(throws: StorageError.self) { try AsyncHTTPTransport(authorities, environment: [:]) }
  }
}
