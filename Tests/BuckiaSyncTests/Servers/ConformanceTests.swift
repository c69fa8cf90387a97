import BuckiaStorage
import ServerTestSupport
import TestSupport
import Testing

@testable import BuckiaSync

/// The servers that the tests share. Each test has its own folder or bucket.
enum Servers {
  static let s3 = TestServer.s3
  static let apache = TestServer.apache
  static let rclone = TestServer.rclone
  static let transport = Result { try AsyncHTTPTransport(environment: [:]) }

  /// A new bucket, on moto unless another address is given.
  static func bucket(
    at address: String? = nil, over transport: AsyncHTTPTransport? = nil, retries: RetryPolicy = RetryPolicy(),
    _ change: (inout S3Configuration) -> Void = { _ in }
  ) async throws -> S3Bucket {
    let name = "test-\(UInt64.random(in: 0...UInt64.max))"
    var configuration = S3Configuration(
      endpoint: try address ?? s3.get().address, region: "us-east-1", bucket: name)
    change(&configuration)
    let bucket = try S3Bucket(
      configuration, credentials: S3Credentials(accessKey: "testing", secret: "testing"),
      transport: transport ?? Self.transport.get(), retries: retries)
    _ = try await bucket.exchange.perform(HTTPTransportRequest("PUT", bucket.bucket))
    return bucket
  }

  /// A new folder on Apache.
  static func apacheFolder(_ part: String = "open") throws -> WebDAVFolder {
    try WebDAVFolder(
      WebDAVConfiguration(address: "\(apache.get().address)/\(part)/test-\(UInt64.random(in: 0...UInt64.max))"),
      transport: transport.get())
  }

  /// A new folder on a WebDAV server.
  static func folder(
    at address: String, over transport: AsyncHTTPTransport? = nil, retries: RetryPolicy = RetryPolicy(),
    honoursConditions: Bool = true
  ) throws -> WebDAVFolder {
    var configuration = WebDAVConfiguration(address: "\(address)/test-\(UInt64.random(in: 0...UInt64.max))")
    configuration.honoursConditions = honoursConditions
    return try WebDAVFolder(configuration, transport: transport ?? Self.transport.get(), retries: retries)
  }

  /// A new folder on WsgiDAV.
  static func wsgidavFolder() throws -> WebDAVFolder { try folder(at: TestServer.wsgidav.get().address) }

  /// A new folder on rclone.
  static func rcloneFolder() throws -> WebDAVFolder {
    var configuration = WebDAVConfiguration(
      address: "\(try rclone.get().address)/test-\(UInt64.random(in: 0...UInt64.max))")
    // rclone ignores If-None-Match, which the probe detects.
    configuration.honoursConditions = false
    return try WebDAVFolder(configuration, transport: transport.get())
  }
}

@Suite("All storages meet the requirements")
struct ConformanceTests {
  private func faults(of storage: any StorageProvider) async throws -> [StorageConformance.Fault] {
    try await StorageConformance.run(on: storage, in: RemotePath("conformance"))
  }

  @Test("S3, against moto") func s3() async throws {
    let found = try await faults(of: Servers.bucket())
    #expect(found == [])
  }

  @Test("WebDAV, against Apache's mod_dav") func apache() async throws {
    let found = try await faults(of: Servers.apacheFolder())
    #expect(found == [])
  }

  @Test("WebDAV, against rclone") func rclone() async throws {
    let found = try await faults(of: Servers.rcloneFolder())
    #expect(found == [])
  }

  @Test("WebDAV, against WsgiDAV") func wsgidav() async throws {
    let found = try await faults(of: Servers.wsgidavFolder())
    // WsgiDAV makes entity tags from the second and the size, and does not check conditions on missing files.
    let known = ["only the expected version is replaced", "a version changes with the contents"]
    #expect(found.filter { !known.contains($0.rule) } == [])
  }

  @Test("WebDAV, against nginx, which ignores conditions") func nginx() async throws {
    let found = try await faults(of: Servers.folder(at: TestServer.nginx.get().address, honoursConditions: false))
    #expect(found == [])
  }

  @Test("WebDAV, against lighttpd") func lighttpd() async throws {
    let found = try await faults(of: Servers.folder(at: TestServer.lighttpd.get().address))
    #expect(found == [])
  }

  @Test("S3, against rclone versions that have it") func rcloneS3() async throws {
    guard let server = try TestServer.rcloneS3.get() else { return }
    let found = try await faults(of: Servers.bucket(at: server.address) { $0.honoursConditions = false })
    #expect(found == [])
  }

  @Test(
    "A server whose certificate a private authority has signed, directly and through a proxy",
    arguments: [false, true])
  func encrypted(throughProxy: Bool) async throws {
    let server = try TestServer("apache", certificate: TestCertificate())
    var settings = HTTPSettings()
    settings.additionalAuthorities = [try #require(server.authority)]
    if throughProxy { settings.proxy = .server(host: "127.0.0.1", port: try TestServer.proxy.get().port) }
    let transport = try AsyncHTTPTransport(settings, environment: [:])
    let found = try await faults(of: Servers.folder(at: "\(server.address)/open", over: transport))
    #expect(found == [])
  }

  @Test("A server behind a proxy that decrypts all traffic") func proxied() async throws {
    var settings = HTTPSettings()
    settings.proxy = .server(host: "127.0.0.1", port: try TestServer.proxy.get().port)
    let transport = try AsyncHTTPTransport(settings, environment: [:])
    let found = try await faults(of: Servers.folder(at: "\(Servers.apache.get().address)/open", over: transport))
    #expect(found == [])
  }

  /// A read that breaks off ends with an error, and the caller can repeat it. Any other fault would be a wrong answer.
  private func expectNothingWrong(_ faults: [StorageConformance.Fault]) {
    #expect(faults.filter { !$0.finding.hasPrefix("throws") } == [])
    #expect(faults.count < 4, "\(faults)")
  }

  /// What a relay does to the connections of a test, by number.
  enum Network: CaseIterable, Sendable {
    case slow, cuttingRequests, cuttingAnswers, cuttingBoth

    func behaviour(_ number: Int) -> Relay.Behaviour {
      // A connection serves many requests, and is cut in the middle of one of them.
      let bytes = 600 + number * 97_777 % 900_000
      return switch self {
      case .slow: .delay(2)
      case .cuttingRequests: .cutRequest(after: bytes)
      case .cuttingAnswers: .cutAnswer(after: bytes)
      case .cuttingBoth: number.isMultiple(of: 2) ? .cutRequest(after: bytes) : .cutAnswer(after: bytes)
      }
    }
  }

  @Test(
    "A network that is slow, or breaks connections in the middle of requests and answers", arguments: Network.allCases)
  func badNetwork(network: Network) async throws {
    var settings = HTTPSettings()
    settings.retries.attempts = 12
    settings.retries.firstPause = 1
    settings.retries.longestPause = 20
    let transport = try AsyncHTTPTransport(settings, environment: [:])
    let s3 = try await Relay(to: Servers.s3.get().port) { network.behaviour($0) }
    let apache = try await Relay(to: Servers.apache.get().port) { network.behaviour($0) }
    let bucket = try await Servers.bucket(at: s3.address, over: transport, retries: settings.retries)
    expectNothingWrong(try await faults(of: bucket))
    let folder = try Servers.folder(at: "\(apache.address)/open", over: transport, retries: settings.retries)
    expectNothingWrong(try await faults(of: folder))
    withExtendedLifetime((s3, apache)) {}
  }

  @Test("Bunny.net, against a stand-in that follows its documentation") func bunny() async throws {
    let server = try await BunnyStandIn()
    let storage = try BunnyStorage(
      BunnyConfiguration(zone: "zone", endpoint: server.address, accessKey: BunnyStandIn.password),
      transport: Servers.transport.get())
    let found = try await faults(of: storage)
    #expect(found == [])
  }
}

@Suite("Probing the abilities of servers")
struct ProbeTests {
  @Test("nginx ignores conditions, and lighttpd honours them")
  func others() async throws {
    let nginx = try await StorageProbe.run(on: Servers.folder(at: TestServer.nginx.get().address))
    #expect(!nginx.putsIfAbsent && !nginx.putsIfVersion)
    #expect(nginx.readsRanges && nginx.moves)
    let lighttpd = try await StorageProbe.run(on: Servers.folder(at: TestServer.lighttpd.get().address))
    #expect(lighttpd.putsIfAbsent && lighttpd.putsIfVersion && lighttpd.readsRanges && lighttpd.moves)
  }

  @Test("rclone ignores the condition that no object exists")
  func rclone() async throws {
    let configuration = WebDAVConfiguration(address: "\(try Servers.rclone.get().address)/probe")
    let storage = try WebDAVFolder(configuration, transport: Servers.transport.get())
    #expect(storage.capabilities.putsIfAbsent)
    let found = try await StorageProbe.run(on: storage)
    #expect(!found.putsIfAbsent)
    #expect(found.readsRanges)
    #expect(found.moves)
  }

  @Test("Apache honours conditions")
  func apache() async throws {
    let found = try await StorageProbe.run(on: Servers.apacheFolder())
    #expect(found.putsIfAbsent)
    #expect(found.putsIfVersion)
    #expect(found.readsRanges)
  }

  @Test("moto honours conditions")
  func s3() async throws {
    let bucket = try await Servers.bucket()
    #expect(try await StorageProbe.run(on: bucket).putsIfAbsent)
    #expect(try await bucket.listAll(nil).objects.isEmpty)
  }
}
