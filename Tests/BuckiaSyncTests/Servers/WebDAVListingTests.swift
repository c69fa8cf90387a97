import BuckiaStorage
import NIOConcurrencyHelpers
import ServerTestSupport
import Testing

@testable import BuckiaSync

@Suite("Listings of WebDAV servers with few requests")
struct WebDAVListingTests {
  /// A server with the folders `a` and `b`, each with one file, and with folder tags as in Nextcloud.
  private final class Cloud: Sendable {
    private let tags = NIOLockedValueBox(["": 1, "a": 1, "b": 1])
    private let givesIDs: Bool

    init(givesIDs: Bool) { self.givesIDs = givesIDs }

    /// Changes the file in a folder.
    func change(_ folder: String) {
      tags.withLockedValue { tags in
        tags[folder, default: 0] += 1
        tags["", default: 0] += 1
      }
    }

    func answer(to request: FaultServer.Request) -> FaultServer.Behaviour {
      let tags = tags.withLockedValue { $0 }
      let id = givesIDs ? "<oc:fileid>7</oc:fileid>" : ""
      func folder(_ name: String) -> String {
        """
        <d:response><d:href>/dav/\(name)\(name.isEmpty ? "" : "/")</d:href><d:propstat><d:prop><d:resourcetype><d:collection/></d:resourcetype>
        <d:getetag>"\(tags[name] ?? 0)"</d:getetag>\(id)</d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>
        """
      }
      func file(_ name: String) -> String {
        """
        <d:response><d:href>/dav/\(name)/file</d:href><d:propstat><d:prop><d:resourcetype/><d:getcontentlength>\(tags[name] ?? 0)</d:getcontentlength>
        <d:getetag>"f\(tags[name] ?? 0)"</d:getetag>\(id)</d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>
        """
      }
      let name = request.target.split(separator: "/").dropFirst().first.map(String.init) ?? ""
      let found = name.isEmpty ? ["", "a", "b"].map(folder) : [folder(name), file(name)]
      let body = """
        <d:multistatus xmlns:d="DAV:" xmlns:oc="http://owncloud.org/ns">\(found.joined())</d:multistatus>
        """
      return .answer(207, body: Array(body.utf8))
    }
  }

  private func listed(_ storage: WebDAVFolder) async throws -> [Int64] {
    try await storage.listAll(nil).objects.map(\.byteCount)
  }

  @Test("An unchanged folder tag saves a request, and a changed folder is listed again")
  func unchanged() async throws {
    let cloud = Cloud(givesIDs: true)
    let server = try await FaultServer { cloud.answer(to: $0) }
    let storage = try WebDAVFolder(
      WebDAVConfiguration(address: "\(server.address)/dav"), transport: Servers.transport.get())
    #expect(try await listed(storage) == [1, 1])
    #expect(server.requests.count == 3)
    server.forgetRequests()
    #expect(try await listed(storage) == [1, 1])
    #expect(server.requests.map(\.target) == ["/dav/"])
    server.forgetRequests()
    cloud.change("b")
    #expect(try await listed(storage) == [1, 2])
    #expect(server.requests.map(\.target) == ["/dav/", "/dav/b/"])
  }

  @Test("If folder tags need not change with their contents, all folders are listed")
  func otherServers() async throws {
    let cloud = Cloud(givesIDs: false)
    let server = try await FaultServer { cloud.answer(to: $0) }
    let storage = try WebDAVFolder(
      WebDAVConfiguration(address: "\(server.address)/dav"), transport: Servers.transport.get())
    for _ in 0..<2 { #expect(try await listed(storage) == [1, 1]) }
    #expect(server.requests.count == 6)
  }

  @Test("Endlessly nested folders are an error")
  func endless() async throws {
    let server = try await FaultServer { request in
      func folder(_ path: String) -> String {
        "<response><href>\(path)</href><propstat><prop><resourcetype><collection/></resourcetype></prop>"
          + "<status>HTTP/1.1 200 OK</status></propstat></response>"
      }
      let folders = ["", "a/", "b/"].map { folder(request.target + $0) }.joined()
      return .answer(207, body: Array("<multistatus xmlns=\"DAV:\">\(folders)</multistatus>".utf8))
    }
    var configuration = WebDAVConfiguration(address: "\(server.address)/dav")
    configuration.listingLimit = 100
    let storage = try WebDAVFolder(configuration, transport: AsyncHTTPTransport(environment: [:]))
    let error = try await #require(throws: StorageError.self) { try await storage.listAll(RemotePath("anna")) }
    #expect(error.code == .invalidAnswer)
    #expect(server.requests.count < 101)
  }
}
