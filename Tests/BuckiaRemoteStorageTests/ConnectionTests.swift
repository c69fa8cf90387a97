import BuckiaStorage
import ServerTestSupport
import Testing

@testable import BuckiaRemoteStorage

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

  @Test("A server is trusted by its authority, and by its key where that is pinned")
  func certificates() async throws {
    let certificate = try TestCertificate()
    let server = try await FaultServer(certificate: (certificate.certificate, certificate.key)) { _ in .answer(200) }
    let address = server.address
    let unknown = try await #require(throws: StorageError.self) { try await send(to: address) { _ in } }
    #expect(unknown.code == .untrustedServer)
    #expect(server.requests.isEmpty)
    let own = try await send(to: address) { $0.additionalAuthorities = [certificate.certificate] }
    #expect(own.status == 200)
    let digest = try certificate.keyDigest()
    let pinned = try await send(to: address) {
      $0.additionalAuthorities = [certificate.certificate]
      $0.pinnedKeys = [digest.uppercased()]
    }
    #expect(pinned.status == 200)
    server.forgetRequests()
    let other = try await #require(throws: StorageError.self) {
      try await send(to: address) {
        $0.additionalAuthorities = [certificate.certificate]
        $0.pinnedKeys = [String(repeating: "0", count: 64)]
      }
    }
    #expect(other.code == .untrustedServer)
    #expect(server.requests.isEmpty)
  }

  @Test("A pinned key is no key of a connection without encryption")
  func pinnedPlain() async throws {
    let server = try await FaultServer { _ in .answer(200) }
    let error = try await #require(throws: StorageError.self) {
      try await send(to: server.address) { $0.pinnedKeys = [String(repeating: "0", count: 64)] }
    }
    #expect(error.code == .untrustedServer)
    #expect(server.requests.isEmpty)
  }

  @Test("A proxy is asked to connect, with its name and password, and its refusal is told")
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

  @Test("A server whose name nobody knows cannot be reached")
  func noName() async throws {
    let error = try await #require(throws: StorageError.self) { try await send(to: "http://storage.invalid/") { _ in } }
    #expect(error.code == .unreachable)
    #expect(error.description.contains("storage.invalid"))
  }

  @Test("A server that takes no connection is not waited for longer than may be", .timeLimit(.minutes(5)))
  func noConnection() async throws {
    let server = try await DeafServer()
    let error = try await #require(throws: StorageError.self) {
      try await send(to: server.address) {
        $0.connectSeconds = 0.5
        $0.idleSeconds = 3600
      }
    }
    #expect(error.code == .unreachable)
    #expect(error.description.contains("does not answer"))
    withExtendedLifetime(server) {}
  }

  @Test("What is no HTTP is no answer")
  func garbage() async throws {
    let server = try await FaultServer { _ in .garbage(Array("SSH-2.0-OpenSSH_9.2\r\n".utf8)) }
    let error = try await #require(throws: StorageError.self) { try await send(to: server.address) { _ in } }
    #expect(error.code == .interrupted)
  }
}
