import BuckiaStorage
import ServerTestSupport
import Testing

@testable import BuckiaSync

@Suite("Requests to S3 servers")
struct S3RequestTests {
  private let credentials = S3Credentials(accessKey: "testing", secret: "testing")

  // MARK: Listings

  @Test("A listing after a name is requested from the server, and filtered here if the server ignores it")
  func startAfter() async throws {
    let keys = ["f/a", "f/b", "f/c"].map { "<Contents><Key>\($0)</Key><Size>1</Size></Contents>" }
    let body = Array("<ListBucketResult>\(keys.joined())</ListBucketResult>".utf8)
    let server = try await FaultServer { _ in .answer(200, body: body) }
    let bucket = try S3Bucket(
      S3Configuration(endpoint: server.address, region: "us-east-1", bucket: "bucket"), credentials: credentials,
      transport: Servers.transport.get())
    let found = try await bucket.listAll(RemotePath("f"), after: RemotePath("f/b"))
    #expect(found.objects.map(\.path.text) == ["f/c"])
    #expect(server.requests.count == 1)
    #expect(server.requests.first?.target.contains("&start-after=f%2Fb") == true)
  }

  @Test("moto only lists the names after the given one")
  func startAfterAtMoto() async throws {
    let bucket = try await Servers.bucket()
    for name in ["f/a", "f/b", "f/c"] { try await bucket.put(StorageContents([1]), to: RemotePath(name), .none) }
    // A single page is not filtered here.
    let page = try await bucket.list(ListRequest(folder: RemotePath("f"), after: RemotePath("f/b")))
    #expect(page.objects.map(\.path.text) == ["f/c"])
  }

  // MARK: Moves

  @Test("A move is one copy on the server and one deletion, without a download")
  func moved() async throws {
    let bucket = try await Servers.bucket()
    let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
    try await bucket.put(StorageContents(bytes), to: RemotePath("one"), .none)
    let transport = WatchedTransport(try Servers.transport.get())
    let moving = try S3Bucket(bucket.configuration, credentials: credentials, transport: transport)
    try await moving.moveOrCopy(RemotePath("one"), to: RemotePath("folder/two"))
    let changing = transport.requests.filter { $0.method != "HEAD" }
    #expect(changing.map(\.method) == ["PUT", "DELETE"])
    #expect(changing.first?.headers["X-Amz-Copy-Source"] == "/\(bucket.configuration.bucket)/one")
    #expect(transport.requests.allSatisfy { $0.body.byteCount == 0 })
    #expect(try await bucket.listAll(nil).objects.map(\.path.text) == ["folder/two"])
    #expect(try await bucket.get(RemotePath("folder/two"), GetRequest()).chunks.bytes(upTo: 200_000) == bytes)
  }

  // MARK: Parts

  /// Accepts uploads in parts, and keeps nothing.
  private struct PartTaker: HTTPTransport {
    func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse {
      let isUpload = request.url.queryItems.contains { $0.0 == "uploadId" }
      let text =
        switch (request.method, isUpload) {
        case ("GET", _): "<ListMultipartUploadsResult/>"
        case ("POST", false): "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>"
        case ("POST", true): "<CompleteMultipartUploadResult><ETag>\"x\"</ETag></CompleteMultipartUploadResult>"
        default: ""
        }
      return HTTPTransportResponse(status: 200, headers: ["ETag": "\"x\""], body: ByteChunks(Array(text.utf8)))
    }
  }

  @Test("Several large objects together upload no more parts at once than the limit", arguments: [1, 3])
  func partsAtOnce(limit: Int) async throws {
    var configuration = S3Configuration(endpoint: "http://127.0.0.1:1", region: "us-east-1", bucket: "bucket")
    configuration.partBytes = 5 << 20
    configuration.multipartThreshold = 5 << 20
    configuration.transferLimit = limit
    let transport = WatchedTransport(PartTaker(), pause: .milliseconds(50)) { $0.method == "PUT" }
    let bucket = try S3Bucket(configuration, credentials: credentials, transport: transport)
    let contents = StorageContents(Array(repeating: 7, count: 11 << 20))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<3 {
        let path = try RemotePath("object-\(number)")
        group.addTask { try await bucket.put(contents, to: path, .none) }
      }
      try await group.waitForAll()
    }
    #expect(transport.requests.filter { $0.method == "PUT" }.count == 9)
    #expect(transport.mostAtOnce == limit)
  }
}
