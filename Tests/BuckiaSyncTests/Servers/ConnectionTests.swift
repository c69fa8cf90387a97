import BuckiaStorage
import ServerTestSupport
import Testing

@testable import BuckiaSync

@Suite("Encrypted connections and proxies")
struct ConnectionTests {
  private func send(
    to address: String, _ change: (inout HTTPSettings) -> Void
  ) async throws -> HTTPTransportResponse {
    var settings = HTTPSettings()
    settings.connectSeconds = 5
    change(&settings)
    let transport = try AsyncHTTPTransport(settings, environment: [:])
    return try await transport.send(HTTPTransportRequest("GET", HTTPAddress(address)))
  }

  @Test("A server is trusted by its authority, and by its key if that is pinned")
  func certificates() async throws {
    let certificate = try TestCertificate()
    let server = try await FaultServer(certificate: (certificate.certificate, certificate.key)) { _ in .answer(200) }
    let address = server.address
    let unknown = try await #require(throws: StorageError.self) { try await send(to: address) { _ in } }
    #expect(unknown.code == .untrustedServer)
    #expect(server.requests.isEmpty)
    let own = try await send(to: address) { $0.additionalAuthorities = [certificate.authority] }
    #expect(own.status == 200)
    let digest = try certificate.keyDigest()
    let pinned = try await send(to: address) {
      $0.additionalAuthorities = [certificate.authority]
      $0.pinnedKeys = [digest.uppercased()]
    }
    #expect(pinned.status == 200)
    server.forgetRequests()
    let other = try await #require(throws: StorageError.self) {
      try await send(to: address) {
        $0.additionalAuthorities = [certificate.authority]
        $0.pinnedKeys = [String(repeating: "0", count: 64)]
      }
    }
    #expect(other.code == .untrustedServer)
    #expect(server.requests.isEmpty)
  }

  @Test("The error about an untrusted certificate has the reason and advice")
  func untrusted() async throws {
    let cases: [(TestCertificate, trusts: Bool, told: String)] = [
      (try TestCertificate(), false, "authorities: [file.pem]"),
      (try TestCertificate(days: -1), true, "has expired on 20"),
      (try TestCertificate(days: -1), false, "has expired on 20"),
      (try TestCertificate(for: "cloud.example"), true, "is for cloud.example, and not for localhost"),
    ]
    for (certificate, trusts, told) in cases {
      let server = try await FaultServer(certificate: (certificate.certificate, certificate.key)) { _ in .answer(200) }
      let error = try await #require(throws: StorageError.self) {
        try await send(to: server.address) { if trusts { $0.additionalAuthorities = [certificate.authority] } }
      }
      #expect(error.code == .untrustedServer)
      #expect(error.description.contains(told), "\(error)")
      #expect(server.requests.isEmpty)
    }
  }

  @Test("The error about a failed connection has a plain reason and advice")
  func told() async throws {
    let plain = try await FaultServer { _ in .answer(200) }
    let cases: [(address: String, proxy: Int?, told: String)] = [
      ("http://127.0.0.1:1", nil, "nothing listens there: the server has refused"),
      ("http://127.0.0.1:2", 1, "the proxy 127.0.0.1:1 has refused"),
      ("https://127.0.0.1:\(plain.port)", nil, "use an address with http://"),
      ("http://storage.invalid", nil, "no server of the name storage.invalid is known"),
    ]
    for (address, proxy, told) in cases {
      let error = try await #require(throws: StorageError.self) {
        try await send(to: address) { if let proxy { $0.proxy = .server(host: "127.0.0.1", port: proxy) } }
      }
      #expect(error.code == .unreachable)
      #expect(error.description.contains(told), "\(error)")
      // The messages of libraries are for programmers.
      for word in ["NIO", "errno", "Error", "connect("] { #expect(!error.message.contains(word), "\(error)") }
    }
    withExtendedLifetime(plain) {}
  }

  @Test("A pinned key is refused for an unencrypted connection")
  func pinnedPlain() async throws {
    let server = try await FaultServer { _ in .answer(200) }
    let error = try await #require(throws: StorageError.self) {
      try await send(to: server.address) { $0.pinnedKeys = [String(repeating: "0", count: 64)] }
    }
    #expect(error.code == .untrustedServer)
    #expect(server.requests.isEmpty)
  }

  @Test("A proxy receives its name and password, and its refusal is reported")
  func proxy() async throws {
    let proxy = try await FaultServer { request in
      .answer(request.header("Proxy-Authorization") == nil ? 407 : 502)
    }
    let refusal = try await #require(throws: StorageError.self) {
      try await send(to: "https://storage.invalid/a/b") { $0.proxy = .server(host: "127.0.0.1", port: proxy.port) }
    }
    #expect(refusal.code == .unauthorized)
    #expect(proxy.requests.map(\.method) == ["CONNECT"])
    #expect(proxy.requests[0].target == "storage.invalid:443")
    let transport = try AsyncHTTPTransport(environment: ["https_proxy": "http://anna:word@127.0.0.1:\(proxy.port)"])
    let fault = try await #require(throws: StorageError.self) {
      _ = try await transport.send(HTTPTransportRequest("GET", HTTPAddress("https://storage.invalid/")))
    }
    #expect(fault.code == .unreachable)
    // RFC 7617: anna:word
    #expect(proxy.requests.last?.header("Proxy-Authorization") == "Basic YW5uYTp3b3Jk")
  }

  @Test("A server with an unknown name cannot be reached")
  func noName() async throws {
    let error = try await #require(throws: StorageError.self) { try await send(to: "http://storage.invalid/") { _ in } }
    #expect(error.code == .unreachable)
    #expect(error.description.contains("storage.invalid"))
  }

  @Test("A server that accepts no connection is not waited for longer than the limit", .timeLimit(.minutes(5)))
  func noConnection() async throws {
    let server = try await DeafServer()
    let error = try await #require(throws: StorageError.self) {
      try await send(to: server.address) {
        $0.connectSeconds = 0.5
        $0.idleSeconds = 3600
      }
    }
    #expect(error.code == .unreachable)
    #expect(error.description.contains("does not answer within 0.5 seconds"))
    withExtendedLifetime(server) {}
  }

  @Test("A response that is not HTTP is an error")
  func garbage() async throws {
    let server = try await FaultServer { _ in .garbage(Array("SSH-2.0-OpenSSH_9.2\r\n".utf8)) }
    let error = try await #require(throws: StorageError.self) { try await send(to: server.address) { _ in } }
    #expect(error.code == .interrupted)
  }
}
