import BuckiaStorage
import ServerTestSupport
import Testing

@testable import BuckiaSync

@Suite("Bunny.net storage zones, against a stand-in")
struct BunnyStorageTests {
  private func storage(_ server: BunnyStandIn, _ transport: any HTTPTransport) throws -> BunnyStorage {
    try BunnyStorage(
      BunnyConfiguration(zone: "zone", endpoint: server.address, accessKey: BunnyStandIn.password),
      transport: transport)
  }

  /// Flips one bit of the sent data.
  private struct DamagingTransport: HTTPTransport {
    let inner: any HTTPTransport

    func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse {
      var request = request
      if case .contents(let contents, let range) = request.body {
        var bytes = try await contents.chunks(in: range).bytes(upTo: 1 << 20)
        bytes[0] ^= 1
        request.body = .bytes(bytes)
      }
      return try await inner.send(request)
    }
  }

  @Test("An upload carries its SHA-256, and is refused if the received bytes have another")
  func checksums() async throws {
    let server = try await BunnyStandIn()
    let transport = try Servers.transport.get()
    let path = try RemotePath("folder/object")
    let good = try storage(server, transport)
    try await good.put(StorageContents(Array("text".utf8)), to: path, .none)
    // printf text | sha256sum
    #expect(
      server.requests.last?.header("Checksum") == "982D9E3EB996F559E633F4D194DEF3761D909F5A3B647D1A851FEAD67C32C9D1")
    let damaging = try storage(server, DamagingTransport(inner: transport))
    let error = try await #require(throws: StorageError.self) {
      try await damaging.put(StorageContents(Array("other text".utf8)), to: path, .none)
    }
    #expect(error.status == 400)
    #expect(error.path == path)
    #expect(try await good.get(path, GetRequest()).chunks.bytes(upTo: 100) == Array("text".utf8))
  }

  @Test("Only the requested part of an object is transferred")
  func ranges() async throws {
    let server = try await BunnyStandIn()
    let transport = WatchedTransport(try Servers.transport.get())
    let storage = try storage(server, transport)
    let path = try RemotePath("object")
    try await storage.put(StorageContents(Array("0123456789".utf8)), to: path, .none)
    let middle = try await storage.get(path, GetRequest(offset: 3, count: 4))
    #expect(middle.object.byteCount == 10)
    #expect(try await middle.chunks.bytes(upTo: 100) == Array("3456".utf8))
    #expect(server.requests.last?.header("Range") == "bytes=3-6")
    #expect(transport.statuses.last == 206)
    let rest = try await storage.get(path, GetRequest(offset: 8))
    #expect(try await rest.chunks.bytes(upTo: 100) == Array("89".utf8))
    #expect(server.requests.last?.header("Range") == "bytes=8-")
    let end = try await storage.get(path, GetRequest(offset: 10))
    #expect(try await end.chunks.bytes(upTo: 100) == [])
    #expect(transport.statuses.last == 416)
  }

  @Test("A whole object of a certain version takes one request, and another version is an error")
  func versions() async throws {
    let server = try await BunnyStandIn()
    let transport = WatchedTransport(try Servers.transport.get())
    let storage = try storage(server, transport)
    let path = try RemotePath("folder/object")
    try await storage.put(StorageContents(Array("first".utf8)), to: path, .none)
    let version = try #require(try await storage.stat(path)?.version)
    transport.forget()
    let download = try await storage.get(path, GetRequest(version: version))
    #expect(try await download.chunks.bytes(upTo: 100) == Array("first".utf8))
    #expect(transport.requests.count == 1)
    try await storage.put(StorageContents(Array("other".utf8)), to: path, .none)
    let error = try await #require(throws: StorageError.self) {
      _ = try await storage.get(path, GetRequest(version: version)).chunks.bytes(upTo: 100)
    }
    #expect(error.code == .changed)
  }

  /// The hosts are those of <https://docs.bunny.net/storage/http>.
  @Test(
    "Each region has its own address",
    arguments: [
      (.frankfurt, "storage.bunnycdn.com"), (.london, "uk.storage.bunnycdn.com"),
      (.newYork, "ny.storage.bunnycdn.com"), (.losAngeles, "la.storage.bunnycdn.com"),
      (.singapore, "sg.storage.bunnycdn.com"), (.stockholm, "se.storage.bunnycdn.com"),
      (.saoPaulo, "br.storage.bunnycdn.com"), (.johannesburg, "jh.storage.bunnycdn.com"),
      (.sydney, "syd.storage.bunnycdn.com"),
    ] as [(BunnyConfiguration.Region, String)])
  func regions(region: BunnyConfiguration.Region, host: String) throws {
    let storage = try BunnyStorage(
      BunnyConfiguration(zone: "zone", region: region, accessKey: "key"), transport: Servers.transport.get())
    #expect(storage.name == "https://\(host)/zone")
  }
}
