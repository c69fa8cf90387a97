import BuckiaStorage
import ServerTestSupport
import TestSupport
import Testing

@testable import BuckiaRemoteStorage

/// The servers that the tests share. Each test has a folder or a bucket of its own.
enum Servers {
  static let s3 = TestServer.s3
  static let apache = TestServer.apache
  static let rclone = TestServer.rclone
  static let transport = Result { try AsyncHTTPTransport(environment: [:]) }

  /// A bucket of its own.
  static func bucket(_ change: (inout S3Configuration) -> Void = { _ in }) async throws -> S3Bucket {
    let name = "test-\(UInt64.random(in: 0...UInt64.max))"
    var configuration = S3Configuration(endpoint: try s3.get().address, region: "us-east-1", bucket: name)
    change(&configuration)
    let bucket = try S3Bucket(
      configuration, credentials: S3Credentials(accessKey: "testing", secret: "testing"), transport: transport.get())
    _ = try await bucket.exchange.perform(HTTPTransportRequest("PUT", bucket.bucket))
    return bucket
  }

  /// A folder of its own, of Apache.
  static func apacheFolder(_ part: String = "open") throws -> WebDAVFolder {
    try WebDAVFolder(
      WebDAVConfiguration(address: "\(apache.get().address)/\(part)/test-\(UInt64.random(in: 0...UInt64.max))"),
      transport: transport.get())
  }

  /// A folder of its own, of WsgiDAV.
  static func wsgidavFolder() throws -> WebDAVFolder {
    try WebDAVFolder(
      WebDAVConfiguration(address: "\(TestServer.wsgidav.get().address)/test-\(UInt64.random(in: 0...UInt64.max))"),
      transport: transport.get())
  }

  /// A folder of its own, of rclone.
  static func rcloneFolder() throws -> WebDAVFolder {
    var configuration = WebDAVConfiguration(
      address: "\(try rclone.get().address)/test-\(UInt64.random(in: 0...UInt64.max))")
    // rclone ignores If-None-Match: the probe finds that out.
    configuration.honoursConditions = false
    return try WebDAVFolder(configuration, transport: transport.get())
  }
}

@Suite("All storages do what a storage has to do")
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
    // Its entity tags are the second and the size, and it does not look for what is not there.
    let known = ["only the expected version is replaced", "a version changes with the contents"]
    #expect(found.filter { !known.contains($0.rule) } == [])
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

@Suite("What servers really do is found out")
struct ProbeTests {
  @Test("rclone ignores that nothing may be there")
  func rclone() async throws {
    let configuration = WebDAVConfiguration(address: "\(try Servers.rclone.get().address)/probe")
    let storage = try WebDAVFolder(configuration, transport: Servers.transport.get())
    #expect(storage.capabilities.putsIfAbsent)
    let found = try await StorageProbe.run(on: storage)
    #expect(!found.putsIfAbsent)
    #expect(found.readsRanges)
    #expect(found.moves)
  }

  @Test("Apache heeds it")
  func apache() async throws {
    let found = try await StorageProbe.run(on: Servers.apacheFolder())
    #expect(found.putsIfAbsent)
    #expect(found.putsIfVersion)
    #expect(found.readsRanges)
  }

  @Test("moto heeds it")
  func s3() async throws {
    let bucket = try await Servers.bucket()
    #expect(try await StorageProbe.run(on: bucket).putsIfAbsent)
    #expect(try await bucket.listAll(nil).objects.isEmpty)
  }
}
