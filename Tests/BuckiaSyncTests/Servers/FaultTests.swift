import BuckiaStorage
import Foundation
import NIOConcurrencyHelpers
import ServerTestSupport
import TestSupport
import Testing

@testable import BuckiaSync

/// Faults of servers, networks and people, tested on an S3 bucket. All storages share the code between them and a
/// server.
@Suite("Faults of servers")
struct FaultTests {
  private let path: RemotePath

  init() throws { path = try RemotePath("folder/object") }

  private func bucket(
    _ server: FaultServer, idleSeconds: Double = 60, attempts: Int = 3,
    _ change: (inout HTTPSettings) -> Void = { _ in }
  ) throws -> S3Bucket {
    var settings = HTTPSettings()
    settings.idleSeconds = idleSeconds
    settings.retries.attempts = attempts
    settings.retries.firstPause = 1
    change(&settings)
    return try S3Bucket(
      S3Configuration(endpoint: server.address, region: "us-east-1", bucket: "bucket"),
      credentials: S3Credentials(accessKey: "AKID", secret: "hidden words"),
      transport: AsyncHTTPTransport(settings, environment: [:]), retries: settings.retries)
  }

  private func failure(_ body: () async throws -> Void) async throws -> StorageError {
    try await #require(throws: StorageError.self) { try await body() }
  }

  /// Gives one answer after another, and repeats the last one.
  private func server(_ behaviours: FaultServer.Behaviour...) async throws -> FaultServer {
    let rest = NIOLockedValueBox(behaviours)
    return try await FaultServer { _ in
      rest.withLockedValue { $0.count > 1 ? $0.removeFirst() : $0[0] }
    }
  }

  // MARK: Answers

  @Test(
    "Each status leads to an error with a meaning and advice",
    arguments: [
      (400, "invalid-answer", 1), (401, "unauthorized", 1), (403, "forbidden", 1), (405, "unsupported-by-storage", 1),
      (409, "storage-conflict", 1), (413, "unsupported-by-storage", 1), (429, "too-many-requests", 3),
      (500, "server-unavailable", 3), (502, "server-unavailable", 3), (503, "server-unavailable", 3),
      (504, "server-unavailable", 3), (507, "full-storage", 1),
    ] as [(Int, String, Int)])
  func statuses(status: Int, code: String, attempts: Int) async throws {
    let server = try await server(.answer(status))
    let error = try await failure { try await bucket(server).put(StorageContents([1]), to: path, .none) }
    #expect(error.code.rawValue == code)
    #expect(error.status == status)
    #expect(error.path == path)
    #expect(error.description.contains("\(status)"))
    // An attempt may not reach the server.
    #expect(attempts == 1 ? server.requests.count == 1 : (2...attempts).contains(server.requests.count))
    #expect(!"\(error)".contains("hidden"))
  }

  @Test("The reason that an S3 server gives is reported, without terminal control characters")
  func reasons() async throws {
    let body = "<Error><Code>InvalidAccessKeyId</Code><Message>The key \u{1B}[31mis unknown</Message></Error>"
    let server = try await server(.answer(403, body: Array(body.utf8)))
    let error = try await failure { _ = try await bucket(server).get(path, GetRequest()) }
    #expect(error.code == .unauthorized)
    #expect(error.description.contains("is unknown"))
    #expect(!error.description.contains("\u{1B}"))
  }

  @Test("A temporary fault is retried", arguments: [500, 503, 429, 408])
  func passing(status: Int) async throws {
    let server = try await server(.answer(status), .answer(status), .answer(200, headers: [("ETag", "\"1\"")]))
    // On a busy machine an attempt may not reach the server.
    try await bucket(server, attempts: 8).put(StorageContents(Array("text".utf8)), to: path, .none)
    #expect(server.requests.count == 3)
    // Each attempt sends and signs the bytes again.
    #expect(server.requests.allSatisfy { $0.body == Array("text".utf8) })
  }

  @Test("Retry-After in seconds is honoured")
  func retryAfter() async throws {
    let server = try await server(.answer(503, headers: [("Retry-After", "1")]), .answer(204))
    let start = ContinuousClock.now
    try await bucket(server).delete(path)
    #expect(ContinuousClock.now - start >= .seconds(1))
    let longer = try await self.server(.answer(503, headers: [("Retry-After", "3600")]))
    let error = try await failure { try await bucket(longer).delete(path) }
    #expect(longer.requests.count == 1)
    #expect(error.retryAfter == 3_600_000)
  }

  /// A date as HTTP writes it.
  private func text(of date: Date) -> String {
    let format = DateFormatter()
    format.locale = Locale(identifier: "en_US_POSIX")
    format.timeZone = TimeZone(secondsFromGMT: 0)
    format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return format.string(from: date)
  }

  @Test("Retry-After with a date is honoured")
  func retryAfterDate() async throws {
    // Dates have whole seconds.
    let end = Date(timeIntervalSince1970: Date(timeIntervalSinceNow: 3).timeIntervalSince1970.rounded(.down))
    let server = try await server(.answer(503, headers: [("Retry-After", text(of: end))]), .answer(204))
    try await bucket(server).delete(path)
    #expect(Date(timeIntervalSinceNow: 0.1) >= end)
    let earlier = Date(timeIntervalSinceNow: -3600)
    let past = try await self.server(.answer(503, headers: [("Retry-After", text(of: earlier))]), .answer(204))
    try await bucket(past).delete(path)
    #expect(past.requests.count == 2)
    let longer = try await self.server(
      .answer(503, headers: [("Retry-After", text(of: Date(timeIntervalSinceNow: 3600)))]))
    let error = try await failure { try await bucket(longer).delete(path) }
    #expect(longer.requests.count == 1)
    #expect((3_000_000...3_600_000).contains(error.retryAfter ?? 0))
  }

  @Test("A condition that an earlier attempt has made false is not a failure")
  func lostAnswer() async throws {
    // The first attempt stores the object, and its answer is lost.
    let tag = "\"1cb251ec0d568de6a929b520c4aed8d1\""  // MD5 of "text"
    let server = try await server(
      .reset, .answer(412), .answer(200, headers: [("ETag", tag), ("Content-Length", "4")]))
    let object = try await bucket(server).put(StorageContents(Array("text".utf8)), to: path, .ifAbsent)
    #expect(object.byteCount == 4)
    let others = try await self.server(
      .reset, .answer(412),
      .answer(200, headers: [("ETag", "\"00000000000000000000000000000000\""), ("Content-Length", "4")]))
    let error = try await failure {
      try await bucket(others).put(StorageContents(Array("text".utf8)), to: path, .ifAbsent)
    }
    #expect(error.code == .alreadyExists)
  }

  // MARK: Connections

  @Test("No server listens")
  func refused() async throws {
    let port: Int
    do {
      let server = try await server(.answer(200))
      port = server.port
    }
    try await Task.sleep(for: .milliseconds(50))
    let storage = try S3Bucket(
      S3Configuration(endpoint: "http://127.0.0.1:\(port)", region: "x", bucket: "b"),
      credentials: S3Credentials(accessKey: "a", secret: "s"), transport: AsyncHTTPTransport(environment: [:]),
      retries: quick)
    let error = try await failure { try await storage.delete(path) }
    #expect(error.code == .unreachable)
    #expect(error.isTransient)
  }

  private var quick: RetryPolicy {
    var policy = RetryPolicy()
    policy.attempts = 2
    policy.firstPause = 1
    return policy
  }

  @Test("The connection breaks before the answer")
  func reset() async throws {
    let server = try await server(.reset)
    let error = try await failure { try await bucket(server).delete(path) }
    #expect(error.code == .interrupted)
    #expect(server.requests.count >= 3)
  }

  @Test("The server falls silent")
  func stalled() async throws {
    let server = try await server(.stall)
    let error = try await failure { try await bucket(server, idleSeconds: 0.2, attempts: 2).delete(path) }
    #expect(error.code == .timedOut)
  }

  @Test("The server stops in the middle of an object, and the next request gets the rest")
  func stalledBody() async throws {
    let folder = try TemporaryFolder()
    let body = Array("0123456789".utf8)
    let server = try await server(
      .truncate(announced: 10, sent: Array(body.prefix(4)), headers: [("ETag", "\"1\"")]),
      .answer(206, headers: [("ETag", "\"1\""), ("Content-Range", "bytes 4-9/10")], body: Array(body.dropFirst(4))))
    try await bucket(server).download(path, to: folder.file("object"))
    #expect(try fileBytes(folder.file("object")) == body)
    #expect(server.requests.last?.header("Range") == "bytes=4-")
    #expect(server.requests.last?.header("If-Match") == "\"1\"")
  }

  @Test("The server falls silent in the middle of an object, and the next request gets the rest")
  func silentBody() async throws {
    let folder = try TemporaryFolder()
    let body = Array("0123456789".utf8)
    let server = try await server(
      .stallAfter(announced: 10, sent: Array(body.prefix(4)), headers: [("ETag", "\"1\"")]),
      .answer(206, headers: [("ETag", "\"1\""), ("Content-Range", "bytes 4-9/10")], body: Array(body.dropFirst(4))))
    try await bucket(server, idleSeconds: 5).download(path, to: folder.file("object"))
    #expect(try fileBytes(folder.file("object")) == body)
    #expect(server.requests.first?.header("Range") == nil)
    #expect(server.requests.last?.header("Range") == "bytes=4-")
  }

  @Test("A server that repeatedly falls silent in the middle of an object is given up, and leaves no file")
  func alwaysSilentBody() async throws {
    let folder = try TemporaryFolder()
    let server = try await server(.stallAfter(announced: 10, sent: [1, 2]))
    let error = try await failure {
      try await bucket(server, idleSeconds: 0.3).download(path, to: folder.file("object"), attempts: 2)
    }
    #expect(error.code == .timedOut)
    #expect(error.path == path)
    #expect(server.requests.count >= 2)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
  }

  @Test("An object that always ends too early leaves no file")
  func truncated() async throws {
    let folder = try TemporaryFolder()
    let server = try await server(.truncate(announced: 10, sent: [1, 2]))
    let error = try await failure { try await bucket(server).download(path, to: folder.file("object"), attempts: 2) }
    #expect([.interrupted, .truncated].contains(error.code))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
  }

  @Test("A part other than the requested one is refused")
  func otherRange() async throws {
    let server = try await server(.answer(206, headers: [("Content-Range", "bytes 0-4/10")], body: [1, 2, 3, 4, 5]))
    let error = try await failure {
      _ = try await bucket(server).get(path, GetRequest(offset: 5)).chunks.bytes(upTo: 100)
    }
    #expect(error.code == .invalidAnswer)
  }

  @Test("If a server does not support ranges and sends the whole, the part is taken from it")
  func noRanges() async throws {
    let server = try await server(.answer(200, body: Array("0123456789".utf8)))
    let bytes = try await bucket(server).get(path, GetRequest(offset: 3, count: 4)).chunks.bytes(upTo: 100)
    #expect(bytes == Array("3456".utf8))
  }

  // MARK: Redirects

  @Test("Redirect loops end")
  func redirectLoop() async throws {
    let server = try await server(.answer(307, headers: [("Location", "/bucket/folder/object")]))
    let error = try await failure { _ = try await bucket(server).get(path, GetRequest()) }
    #expect(error.code == .redirected)
    #expect(server.requests.count <= 7)
  }

  @Test("No redirect to another server is followed")
  func otherServer() async throws {
    let other = try await server(.answer(200))
    let server = try await server(.answer(307, headers: [("Location", "\(other.address)/x")]))
    let error = try await failure { _ = try await bucket(server).get(path, GetRequest()) }
    #expect(error.code == .redirected)
    #expect(error.description.contains(other.address))
    #expect(other.requests.isEmpty)
  }

  @Test(
    "A redirect to another page is no answer about an object", arguments: ["/", "/login?next=x", "/bucket/"])
  func lostPath(target: String) async throws {
    let server = try await FaultServer { request in
      request.target == target
        ? .answer(200, body: Array("<html>login</html>".utf8)) : .answer(302, headers: [("Location", target)])
    }
    let error = try await failure { _ = try await bucket(server).get(path, GetRequest()) }
    #expect(error.code == .redirected)
    #expect(error.description.contains("not about the same"), "\(error)")
    let put = try await failure { try await bucket(server).put(StorageContents([1]), to: path, .none) }
    #expect(put.code == .redirected)
    #expect(put.description.contains("it is /"), "\(put)")
    #expect(!put.description.contains("next=x"))
  }

  // MARK: Listings and documents

  private func listing(_ keys: [String], more: String = "") -> FaultServer.Behaviour {
    let contents = keys.map { "<Contents><Key>\($0)</Key><Size>1</Size><ETag>\"x\"</ETag></Contents>" }.joined()
    return .answer(200, body: Array("<ListBucketResult>\(contents)\(more)</ListBucketResult>".utf8))
  }

  @Test("Invalid names and names outside the folder are left out, and counted")
  func hostileNames() async throws {
    let server = try await server(
      listing(["f/ok", "f/../../etc/passwd", "f//x", "f/a\u{85}b", "f/照片 🐰", "f/folder/"]))
    let found = try await bucket(server).listAll(RemotePath("f"))
    #expect(found.objects.map(\.path.text) == ["f/ok", "f/照片 🐰"])
    #expect(found.unusableNames == 3)
  }

  @Test("A listing that cannot continue, never ends, or has no sizes is refused")
  func brokenListings() async throws {
    let bodies = [
      listing(["f/a"], more: "<IsTruncated>true</IsTruncated>"),
      listing(["f/a"], more: "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"),
      .answer(200, body: Array("<ListBucketResult><Contents><Key>f/a</Key></Contents></ListBucketResult>".utf8)),
      .answer(200, body: Array("<html>login</html>".utf8)), .answer(200, body: Array("no XML".utf8)), .answer(200),
      .answer(200, body: Array("<Error><Code>InternalError</Code></Error>".utf8)),
    ]
    for body in bodies {
      let server = try await server(body)
      let error = try await failure { _ = try await bucket(server).listAll(RemotePath("f")) }
      #expect([.invalidAnswer, .unavailable].contains(error.code), "\(error)")
    }
  }

  @Test("A listing that breaks off in the middle is requested again")
  func interruptedListing() async throws {
    let page = "<ListBucketResult><Contents><Key>f/a</Key><Size>1</Size></Contents></ListBucketResult>"
    let part = Array(page.utf8.prefix(20))
    let server = try await server(
      .truncate(announced: page.utf8.count, sent: part), .stallAfter(announced: page.utf8.count, sent: part),
      .answer(200, body: Array("<Error><Code>SlowDown</Code></Error>".utf8)), .answer(200, body: Array(page.utf8)))
    let found = try await bucket(server, idleSeconds: 5, attempts: 8).listAll(RemotePath("f"))
    #expect(found.objects.map(\.path.text) == ["f/a"])
    #expect(server.requests.count >= 4)
  }

  @Test("Documents that define entities, or nest elements too deeply, are refused")
  func hostileXML() throws {
    let bomb = #"<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>"#
    let outside = #"<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>"#
    let deep = String(repeating: "<a>", count: 100) + String(repeating: "</a>", count: 100)
    for text in [bomb, outside, deep] {
      let error = #expect(throws: StorageError.self) { try XMLTree.parse(Array(text.utf8)) }
      #expect(error?.code == .invalidAnswer)
    }
  }

  @Test("A document type is detected in any encoding")
  func encodedDocumentType() throws {
    let declaration = #"<?xml version="1.0" encoding="UTF-16"?>"#
    let document = #"<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>"#
    for text in [declaration + document, document] {
      let little = text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
      let big = text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0 >> 8), UInt8(truncatingIfNeeded: $0)] }
      for bytes in [[0xFF, 0xFE] + little, little, [0xFE, 0xFF] + big, big] as [[UInt8]] {
        let error = #expect(throws: StorageError.self) { try XMLTree.parse(bytes) }
        #expect(error?.code == .invalidAnswer)
      }
    }
  }

  @Test("A listing of 100,000 objects lists each once")
  func manyObjects() async throws {
    let server = try await FaultServer { request in
      let token = request.target.split(separator: "&").first { $0.hasPrefix("continuation-token=") }
      let page = token.flatMap { Int($0.dropFirst("continuation-token=".count)) } ?? 0
      let contents = (0..<1000).map { number in
        let name = String(1_000_000 + page * 1000 + number)
        return "<Contents><Key>f/\(name)</Key><Size>1</Size></Contents>"
      }.joined()
      let more =
        page < 99
        ? "<IsTruncated>true</IsTruncated><NextContinuationToken>\(page + 1)</NextContinuationToken>" : ""
      return .answer(200, body: Array("<ListBucketResult>\(contents)\(more)</ListBucketResult>".utf8))
    }
    let found = try await bucket(server).listAll(RemotePath("f"))
    #expect(found.objects.count == 100_000)
    #expect(server.requests.count == 100)
  }

  // MARK: Clocks, credentials, cancellation

  @Test("Signatures use the server's time if the clock is wrong")
  func clockSkew() async throws {
    let date = "Tue, 24 Nov 2026 10:00:00 GMT"
    let skewed = "<Error><Code>RequestTimeTooSkewed</Code><Message>too large</Message></Error>"
    let server = try await server(
      .answer(403, headers: [("Date", date)], body: Array(skewed.utf8)), .answer(204))
    let signature = SignatureV4(
      credentials: S3Credentials(accessKey: "AKID", secret: "s"), region: "us-east-1", service: "s3")
    let storage = try S3Bucket(
      S3Configuration(endpoint: server.address, region: "us-east-1", bucket: "bucket"),
      S3Authorization(signature, now: { 0 }), AsyncHTTPTransport(environment: [:]), RetryPolicy())
    try await storage.delete(path)
    #expect(server.requests.map { $0.header("X-Amz-Date") } == ["19700101T000000Z", "20261124T100000Z"])
    let stubborn = try await self.server(.answer(403, headers: [("Date", date)], body: Array(skewed.utf8)))
    let error = try await failure { try await bucket(stubborn).delete(path) }
    #expect(error.code == .clockSkew)
  }

  @Test("A cancelled download ends", .timeLimit(.minutes(5)))
  func cancelled() async throws {
    let server = try await server(.stall)
    let storage = try bucket(server, idleSeconds: 3600)
    let path = path
    let task = Task { try await storage.delete(path) }
    try await Task.sleep(for: .milliseconds(200))
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test("A cancelled upload ends, and the server does not have the object", .timeLimit(.minutes(5)))
  func cancelledUpload() async throws {
    let server = try await server(.answer(200))
    // The upload would take minutes.
    let storage = try bucket(server, idleSeconds: 3600) { $0.bytesPerSecond = 1000 }
    let path = path
    let task = Task { try await storage.put(StorageContents(Array(repeating: 1, count: 400_000)), to: path, .none) }
    try await Task.sleep(for: .milliseconds(300))
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(server.requests.isEmpty)
  }

  @Test("The limit of bytes per second applies to uploads")
  func uploadBandwidth() async throws {
    let server = try await server(.answer(200, headers: [("ETag", "\"1\"")]))
    let storage = try bucket(server, idleSeconds: 60) { $0.bytesPerSecond = 100_000 }
    let start = ContinuousClock.now
    for _ in 0..<3 { try await storage.put(StorageContents(Array(repeating: 1, count: 60_000)), to: path, .none) }
    // 180,000 bytes, of which the first piece does not wait.
    #expect(ContinuousClock.now - start >= .seconds(1))
  }

  @Test("The limit of bytes per second applies to downloads")
  func bandwidth() async throws {
    let server = try await server(.answer(200, body: Array(repeating: 1, count: 60_000)))
    let storage = try bucket(server, idleSeconds: 60) { $0.bytesPerSecond = 100_000 }
    let start = ContinuousClock.now
    for _ in 0..<3 { _ = try await storage.get(path, GetRequest()).chunks.bytes(upTo: 100_000) }
    // 180,000 bytes, of which the first piece does not wait.
    #expect(ContinuousClock.now - start >= .seconds(1))
  }

  @Test("A slow reader is not taken for a silent server")
  func slowReader() async throws {
    // More than is buffered of an answer that is not read.
    let size = 32 << 20
    let server = try await server(.answer(200, body: Array(repeating: 1, count: size)))
    let storage = try bucket(server, idleSeconds: 1)
    var chunks = try await storage.get(path, GetRequest()).chunks.makeAsyncIterator()
    var count = try #require(try await chunks.next()).count
    try await Task.sleep(for: .seconds(3))
    while let chunk = try await chunks.next() { count += chunk.count }
    #expect(count == size)
  }

  @Test("An upload slowed down by its own limit is not given up")
  func slowSender() async throws {
    let server = try await server(.answer(200, headers: [("ETag", "\"1\"")]))
    let storage = try bucket(server, idleSeconds: 0.4) { $0.bytesPerSecond = 50_000 }
    // The second upload waits for the bytes that the first has used up.
    for _ in 0..<2 { try await storage.put(StorageContents(Array(repeating: 1, count: 60_000)), to: path, .none) }
    #expect(server.requests.count == 2)
  }
}
