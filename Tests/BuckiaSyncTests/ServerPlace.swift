import BuckiaSync
import ServerTestSupport
import TestSupport

@testable import BuckiaSync

/// A separate place for a test on one of the servers, and the requests sent to it.
struct ServerPlace {
  /// The kind of server.
  enum Kind: String, CaseIterable, Sendable { case s3, apache, rclone, wsgidav, nginx, lighttpd, bunny }

  let account: StorageAccount
  let transport: WatchedTransport
  /// Kept alive with this place.
  private let standIn: BunnyStandIn?

  private static let connections = Result { try AsyncHTTPTransport(environment: [:]) }

  init(_ kind: Kind) async throws {
    transport = WatchedTransport(try Self.connections.get())
    let name = "test-\(UInt64.random(in: 0...UInt64.max))"
    switch kind {
    case .s3:
      let configuration = S3Configuration(
        endpoint: try TestServer.s3.get().address, region: "us-east-1", bucket: name)
      let credentials = S3Credentials(accessKey: "testing", secret: "testing")
      let bucket = try S3Bucket(configuration, credentials: credentials, transport: transport)
      _ = try await bucket.exchange.perform(HTTPTransportRequest("PUT", bucket.bucket))
      account = StorageAccount(.s3(configuration, credentials))
      standIn = nil
    case .apache:
      account = StorageAccount(.webDAV(address: "\(try TestServer.apache.get().address)/open/\(name)"))
      standIn = nil
    case .rclone:
      account = StorageAccount(.webDAV(address: "\(try TestServer.rclone.get().address)/\(name)"))
      standIn = nil
    case .wsgidav:
      account = StorageAccount(.webDAV(address: "\(try TestServer.wsgidav.get().address)/\(name)"))
      standIn = nil
    case .nginx:
      account = StorageAccount(.webDAV(address: "\(try TestServer.nginx.get().address)/\(name)"))
      standIn = nil
    case .lighttpd:
      account = StorageAccount(.webDAV(address: "\(try TestServer.lighttpd.get().address)/\(name)"))
      standIn = nil
    case .bunny:
      let server = try await BunnyStandIn()
      let configuration = BunnyConfiguration(
        zone: "zone", endpoint: server.address, accessKey: BunnyStandIn.password)
      account = StorageAccount(.custom(try BunnyStorage(configuration, transport: transport)))
      standIn = server
    }
  }

  /// The storage itself, without the client.
  func storage() throws -> any StorageProvider { try account.provider(transport: transport) }

  /// A person who syncs with this place.
  func person(_ name: String, in folder: TemporaryFolder) throws -> SyncPerson {
    var person = try SyncPerson(name, in: folder, LocalFolder(folder.file("unused")))
    let account = account
    person.change = { $0.storage = account }
    return person
  }

  func client(_ person: SyncPerson, to others: [String] = []) throws -> BuckiaClient {
    try BuckiaClient(person.configuration(to: others), transport: transport)
  }

  @discardableResult
  func sync(_ person: SyncPerson, to others: [String] = []) async throws -> SyncResult {
    try await client(person, to: others).sync(person.options)
  }
}
