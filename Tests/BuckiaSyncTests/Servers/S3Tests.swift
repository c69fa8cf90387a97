import BuckiaStorage
import Foundation
import ServerTestSupport
import TestSupport
import Testing

@testable import BuckiaSync

@Suite("Buckets of an S3 server, against moto")
struct S3Tests {
  private static let mebibyte = 1 << 20

  private func pattern(_ count: Int, _ seed: UInt64 = 1) -> [UInt8] {
    var state = seed
    return (0..<count).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 33)
    }
  }

  @Test("A large object is uploaded in parts, and downloaded unchanged")
  func parts() async throws {
    let folder = try TemporaryFolder()
    let bucket = try await Servers.bucket { $0.partBytes = 5 << 20 }
    let path = try RemotePath("large/object.mp4")
    let bytes = pattern(17 * Self.mebibyte + 3)
    let source = try folder.write(bytes, to: "source")
    let object = try await bucket.upload(file: source, to: path)
    #expect(object.byteCount == Int64(bytes.count))
    // The entity tag of an object in parts ends with their number.
    #expect(try await bucket.stat(path)?.version?.text.contains("-4") == true)
    try await bucket.download(path, to: folder.file("copy"))
    #expect(try fileBytes(folder.file("copy")) == bytes)
  }

  @Test("An interrupted upload continues with the missing parts")
  func resumed() async throws {
    let folder = try TemporaryFolder()
    let bytes = pattern(22 * Self.mebibyte)
    let source = try folder.write(bytes, to: "source")
    let path = try RemotePath("resumed")
    var configuration = try await Servers.bucket { $0.partBytes = 5 << 20 }.configuration
    configuration.transferLimit = 1
    let failing = PartTransport(inner: try Servers.transport.get(), failingPart: 4)
    let credentials = S3Credentials(accessKey: "testing", secret: "testing")
    let interrupted = try S3Bucket(configuration, credentials: credentials, transport: failing)
    await #expect(throws: StorageError.self) { try await interrupted.upload(file: source, to: path) }
    #expect(try await interrupted.stat(path) == nil)
    let counting = PartTransport(inner: try Servers.transport.get(), failingPart: nil)
    let bucket = try S3Bucket(configuration, credentials: credentials, transport: counting)
    try await bucket.upload(file: source, to: path)
    #expect(counting.sent == [4, 5])
    try await bucket.download(path, to: folder.file("copy"))
    #expect(try fileBytes(folder.file("copy")) == bytes)
  }

  @Test("Parts of a former state of the file are not reused for the current one")
  func changedSince() async throws {
    let folder = try TemporaryFolder()
    var bytes = pattern(17 * Self.mebibyte)
    let source = try folder.write(bytes, to: "source")
    let path = try RemotePath("changed")
    var configuration = try await Servers.bucket { $0.partBytes = 5 << 20 }.configuration
    configuration.transferLimit = 1
    let credentials = S3Credentials(accessKey: "testing", secret: "testing")
    let failing = PartTransport(inner: try Servers.transport.get(), failingPart: 3)
    let interrupted = try S3Bucket(configuration, credentials: credentials, transport: failing)
    await #expect(throws: StorageError.self) { try await interrupted.upload(file: source, to: path) }
    bytes[3] &+= 1
    try folder.write(bytes, to: "source")
    let counting = PartTransport(inner: try Servers.transport.get(), failingPart: nil)
    let bucket = try S3Bucket(configuration, credentials: credentials, transport: counting)
    try await bucket.upload(file: source, to: path)
    #expect(counting.sent == [1, 3, 4])
    try await bucket.download(path, to: folder.file("copy"))
    #expect(try fileBytes(folder.file("copy")) == bytes)
  }

  @Test("A large object replaces nothing if it must not exist")
  func conditionInParts() async throws {
    let bucket = try await Servers.bucket { $0.partBytes = 5 << 20 }
    let path = try RemotePath("object")
    try await bucket.put(StorageContents([1]), to: path, .none)
    let error = try await #require(throws: StorageError.self) {
      try await bucket.put(StorageContents(pattern(17 * Self.mebibyte)), to: path, .ifAbsent)
    }
    #expect(error.code == .alreadyExists)
    #expect(try await bucket.stat(path)?.byteCount == 1)
  }

  @Test("A presigned address allows reading and writing one object without credentials")
  func presigned() async throws {
    let bucket = try await Servers.bucket()
    let path = try RemotePath("some folder/photo 1.jpg")
    let transport = try Servers.transport.get()
    let write = try HTTPAddress(bucket.presignedAddress(of: path, for: .write, seconds: 60))
    #expect(try await transport.send(HTTPTransportRequest("PUT", write, body: .bytes([1, 2, 3]))).status == 200)
    let read = try HTTPAddress(bucket.presignedAddress(of: path, for: .read, seconds: 60))
    #expect(try await transport.send(HTTPTransportRequest("GET", read)).body.bytes(upTo: 10) == [1, 2, 3])
    #expect(throws: StorageError.self) { try bucket.presignedAddress(of: path, for: .read, seconds: 604_801) }
  }

  @Test("Media have the types that browsers expect")
  func contentType() async throws {
    let bucket = try await Servers.bucket()
    let transport = try Servers.transport.get()
    for (name, type) in [("a.jpg", "image/jpeg"), ("b.MP4", "video/mp4"), ("c.bdiff", "application/octet-stream")] {
      let path = try RemotePath(name)
      try await bucket.put(StorageContents([1]), to: path, .none)
      let address = try HTTPAddress(bucket.presignedAddress(of: path, for: .read, seconds: 60))
      #expect(try await transport.send(HTTPTransportRequest("GET", address)).headers["Content-Type"] == type)
    }
  }

  @Test("The name of a missing bucket is in the error")
  func noBucket() async throws {
    let storage = try S3Bucket(
      S3Configuration(endpoint: Servers.s3.get().address, region: "us-east-1", bucket: "no-such-bucket-here"),
      credentials: S3Credentials(accessKey: "testing", secret: "testing"), transport: Servers.transport.get())
    let error = try await #require(throws: StorageError.self) { try await storage.listAll(nil) }
    #expect(error.code == .notFound)
    #expect(error.description.contains("bucket"))
  }

  @Test("The size of parts follows from their greatest number")
  func partSizes() throws {
    let configuration = S3Configuration(endpoint: "http://x", region: "x", bucket: "b")
    #expect(configuration.partBytes(for: 1 << 30) == 8 << 20)
    #expect(configuration.partBytes(for: 5 << 40) >= (5 << 40) / 10_000)
    #expect(configuration.partBytes(for: 5 << 40) % (1 << 20) == 0)
  }

  @Test("The name of the bucket is put before the host or into the path")
  func styles() throws {
    var configuration = S3Configuration(endpoint: "https://s3.example:8443/base", region: "x", bucket: "anna")
    #expect(try configuration.address().description == "https://s3.example:8443/base/anna")
    configuration.style = .virtualHost
    #expect(try configuration.address().description == "https://anna.s3.example:8443/base")
    configuration.bucket = "a/b"
    #expect(throws: StorageError.self) { try configuration.address() }
  }
}

/// Counts the uploaded parts, and lets one fail.
final class PartTransport: HTTPTransport, @unchecked Sendable {
  private let inner: any HTTPTransport
  private let failingPart: Int?
  // The lock guards `numbers`.
  private let lock = NSLock()
  private var numbers: [Int] = []

  var sent: [Int] { lock.withLock { numbers.sorted() } }

  init(inner: any HTTPTransport, failingPart: Int?) {
    self.inner = inner
    self.failingPart = failingPart
  }

  func send(_ request: HTTPTransportRequest) async throws -> HTTPTransportResponse {
    if let number = request.url.queryItems.first(where: { $0.0 == "partNumber" }).flatMap({ Int($0.1) }) {
      if number == failingPart { throw StorageError(.forbidden, "no") }
      lock.withLock { numbers.append(number) }
    }
    return try await inner.send(request)
  }
}
