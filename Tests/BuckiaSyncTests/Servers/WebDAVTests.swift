import BuckiaStorage
import ServerTestSupport
import TestSupport
import Testing

@testable import BuckiaSync

@Suite("Folders of WebDAV servers")
struct WebDAVTests {
  private func closed(_ credentials: WebDAVCredentials?) throws -> WebDAVFolder {
    try WebDAVFolder(
      WebDAVConfiguration(
        address: "\(Servers.apache.get().address)/closed/test-\(UInt64.random(in: 0...UInt64.max))",
        credentials: credentials),
      transport: Servers.transport.get())
  }

  @Test("A name and a password are sent at once, and a wrong one is reported")
  func passwords() async throws {
    let path = try RemotePath("object")
    try await closed(WebDAVCredentials(user: "anna", password: "secret word")).put(
      StorageContents([1]), to: path, .none)
    for credentials in [nil, WebDAVCredentials(user: "anna", password: "wrong")] {
      let error = try await #require(throws: StorageError.self) {
        try await closed(credentials).put(StorageContents([1]), to: path, .none)
      }
      #expect(error.code == .unauthorized)
      #expect(!"\(error)".contains("wrong\""))
    }
    let credentials = WebDAVCredentials(user: "anna", password: "secret word")
    var dumped = ""
    dump(credentials, to: &dumped)
    for text in ["\(credentials)", String(reflecting: credentials), dumped] { #expect(!text.contains("secret")) }
  }

  @Test(
    "An entity tag names one version in any notation",
    arguments: [
      "abc", "\"abc\"", "W/\"abc\"", "W/abc", "\"abc-gzip\"", "W/\"abc--gzip\"", "\"abc;gzip\"", "\"abc-br\"",
    ])
  func entityTags(text: String) { #expect(ObjectVersion(entityTag: text).text == "\"abc\"") }

  @Test("A server that answers with other paths than the requested ones is an error, not an empty folder")
  func rewrittenPaths() async throws {
    let server = try await FaultServer { _ in
      let body = """
        <d:multistatus xmlns:d="DAV:"><d:response><d:href>/backend/anna/</d:href><d:propstat><d:prop><d:resourcetype>
        <d:collection/></d:resourcetype></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response></d:multistatus>
        """
      return .answer(207, body: Array(body.utf8))
    }
    let storage = try WebDAVFolder(
      WebDAVConfiguration(address: "\(server.address)/dav"), transport: Servers.transport.get())
    for look in [{ _ = try await storage.listAll($0) }, { _ = try await storage.stat($0) }]
      as [(RemotePath) async throws -> Void]
    {
      let error = try await #require(throws: StorageError.self) { try await look(RemotePath("anna")) }
      #expect(error.code == .invalidAnswer)
      #expect(error.message.contains("/backend/anna/"))
    }
  }

  @Test("A folder with the name of an object is not deleted with its contents")
  func foldersStay() async throws {
    for storage in try [Servers.apacheFolder(), Servers.rcloneFolder()] {
      try await storage.put(StorageContents([1]), to: RemotePath("photos/one"), .none)
      let error = try await #require(throws: StorageError.self) { try await storage.delete(RemotePath("photos")) }
      #expect(error.code == .conflict)
      #expect(try await storage.exists(RemotePath("photos/one")))
    }
  }

  @Test("A folder that is removed meanwhile is created again")
  func removedFolder() async throws {
    let storage = try Servers.apacheFolder()
    try await storage.put(StorageContents([1]), to: RemotePath("photos/one"), .none)
    let server = try Servers.apache.get().address
    let address = try HTTPAddress("\(server)/open/\(storage.name.split(separator: "/").last ?? "")/photos/")
    _ = try await Servers.transport.get().send(HTTPTransportRequest("DELETE", address))
    try await storage.put(StorageContents([2]), to: RemotePath("photos/two"), .none)
    #expect(try await storage.listAll(nil).objects.map(\.path.text) == ["photos/two"])
  }

  @Test("A folder whose parent folder does not exist is an error")
  func noSurroundings() async throws {
    let storage = try WebDAVFolder(
      WebDAVConfiguration(address: "\(Servers.apache.get().address)/open/none/of/these"),
      transport: Servers.transport.get())
    let error = try await #require(throws: StorageError.self) {
      try await storage.put(StorageContents([1]), to: RemotePath("x"), .none)
    }
    #expect(error.code == .notFound)
    #expect(try await storage.listAll(nil).objects.isEmpty)
  }

  @Test("A server moves an object itself, without a download")
  func moved() async throws {
    let name = "test-\(UInt64.random(in: 0...UInt64.max))"
    for server in try ["\(Servers.apache.get().address)/open", Servers.rclone.get().address] {
      let transport = WatchedTransport(try Servers.transport.get())
      let storage = try WebDAVFolder(WebDAVConfiguration(address: "\(server)/\(name)"), transport: transport)
      try await storage.put(StorageContents(Array("text".utf8)), to: RemotePath("one"), .none)
      transport.forget()
      try await storage.moveOrCopy(RemotePath("one"), to: RemotePath("folder/two"))
      let methods = transport.requests.map(\.method)
      #expect(methods.filter { $0 == "MOVE" }.count == 1)
      #expect(!methods.contains { ["GET", "PUT", "COPY", "DELETE"].contains($0) }, "\(methods)")
      let moved = try await storage.get(RemotePath("folder/two"), GetRequest())
      #expect(try await moved.chunks.bytes(upTo: 10) == Array("text".utf8))
    }
  }

  // MARK: Answers of other servers

  private func entries(
    _ document: String, base: String = "https://cloud.example/remote.php/dav/files/anna"
  ) async throws -> MultiStatus {
    let answer = HTTPTransportResponse(status: 207, headers: [:], body: ByteChunks(Array(document.utf8)))
    return try await MultiStatus(answer.document(named: "multistatus"), below: HTTPAddress(base))
  }

  @Test("An answer in Nextcloud's form")
  func nextcloud() async throws {
    let found = try await entries(
      """
      <?xml version="1.0"?>
      <d:multistatus xmlns:d="DAV:" xmlns:s="http://sabredav.org/ns" xmlns:oc="http://owncloud.org/ns">
       <d:response><d:href>/remote.php/dav/files/anna/Photos/</d:href><d:propstat><d:prop>
         <d:resourcetype><d:collection/></d:resourcetype><d:getetag>&quot;60ba&quot;</d:getetag></d:prop>
         <d:status>HTTP/1.1 200 OK</d:status></d:propstat>
         <d:propstat><d:prop><d:getcontentlength/></d:prop><d:status>HTTP/1.1 404 Not Found</d:status></d:propstat></d:response>
       <d:response><d:href>/remote.php/dav/files/anna/Photos/gr%C3%BCn%20%26.jpg</d:href><d:propstat><d:prop>
         <d:resourcetype/><d:getcontentlength>7</d:getcontentlength><d:getetag>&quot;f1&quot;</d:getetag>
         <d:getlastmodified>Tue, 24 Nov 2026 10:00:00 GMT</d:getlastmodified></d:prop>
         <d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>
      </d:multistatus>
      """)
    #expect(found.entries.map(\.path.text) == ["Photos", "Photos/grün &.jpg"])
    #expect(found.entries.map(\.isFolder) == [true, false])
    #expect(found.entries[1].object.byteCount == 7)
    #expect(found.entries[1].object.version == ObjectVersion("\"f1\""))
    #expect(found.entries[1].object.modifiedAt == 1_795_514_400_000)
  }

  @Test("References with scheme and host are resolved, and foreign ones are left out")
  func references() async throws {
    func response(_ href: String) -> String {
      "<response><href>\(href)</href><propstat><prop><resourcetype/><getcontentlength>1</getcontentlength></prop>"
        + "<status>HTTP/1.1 200 OK</status></propstat></response>"
    }
    let hrefs = [
      "https://cloud.example/dav/a", "/dav/b", "/other/c", "/dav/%2E%2E/d", "/dav/e%2Ff", "/davx/g", "/dav/h%00",
      "/dav/%zz",
    ]
    let found = try await entries(
      "<multistatus xmlns='DAV:'>\(hrefs.map(response).joined())</multistatus>", base: "https://cloud.example/dav")
    #expect(found.entries.map(\.path.text) == ["a", "b", "e/f"])
    #expect(found.unusableNames == 2)
  }

  @Test("An answer that is not WebDAV is refused", arguments: ["", "<html/>", "{}", "<multistatus xmlns='DAV:'>"])
  func noAnswer(text: String) async throws {
    let error = try await #require(throws: StorageError.self) { _ = try await entries(text) }
    #expect(error.code == .invalidAnswer)
  }

  @Test("The free space is read")
  func quota() async throws {
    let body = """
      <d:multistatus xmlns:d="DAV:"><d:response><d:href>/dav/</d:href><d:propstat><d:prop>
      <d:quota-available-bytes>5000</d:quota-available-bytes><d:quota-used-bytes>70</d:quota-used-bytes></d:prop>
      <d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response></d:multistatus>
      """
    let server = try await FaultServer { _ in .answer(207, body: Array(body.utf8)) }
    let storage = try WebDAVFolder(
      WebDAVConfiguration(address: "\(server.address)/dav"), transport: Servers.transport.get())
    let quota = try await storage.quota()
    #expect(quota?.used == 70)
    #expect(quota?.available == 5000)
  }
}
