import BuckiaBytes
import BuckiaStorage
import Crypto
import NIOConcurrencyHelpers

/// A bucket of a server that speaks S3's protocol: AWS, Backblaze B2, Cloudflare R2, MinIO, Linode and others.
///
/// The digest of every sent body is signed, and damaged bodies are refused. Large objects are sent in parts, several at
/// once, and parts that have arrived of an interrupted upload are not sent again. Operations:
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations.html>.
public struct S3Bucket: StorageProvider {
  let configuration: S3Configuration
  let address: HTTPAddress
  let exchange: HTTPExchange
  /// For all uploads together: each of several files may go in several parts.
  let slots: TransferSlots
  private let authorization: S3Authorization

  /// Takes a bucket.
  ///
  /// - Parameters:
  ///   - configuration: The bucket.
  ///   - credentials: The credentials.
  ///   - transport: What brings requests there.
  ///   - retries: How often they are repeated.
  /// - Throws: `StorageError` with `invalidSetting`.
  public init(
    _ configuration: S3Configuration, credentials: S3Credentials, transport: any HTTPTransport,
    retries: RetryPolicy = RetryPolicy()
  ) throws(StorageError) {
    let signature = SignatureV4(credentials: credentials, region: configuration.region, service: "s3")
    try self.init(configuration, S3Authorization(signature), transport, retries)
  }

  init(
    _ configuration: S3Configuration, _ authorization: S3Authorization, _ transport: any HTTPTransport,
    _ retries: RetryPolicy
  ) throws(StorageError) {
    self.configuration = configuration
    self.authorization = authorization
    slots = TransferSlots(configuration.transferLimit)
    address = try configuration.address()
    exchange = HTTPExchange(transport: transport, policy: retries, authorization: authorization)
  }

  /// The address of the bucket.
  public var name: String { address.shown }

  /// The capabilities of the protocol. The configuration tells if the server supports conditions.
  public var capabilities: StorageCapabilities {
    StorageCapabilities(
      putsIfAbsent: configuration.honoursConditions, putsIfVersion: configuration.honoursConditions, readsRanges: true,
      moves: true, listsFromName: true, uploadsInParts: true, resumesUploads: true, checksums: [.sha256],
      transferLimit: configuration.transferLimit)
  }

  func url(_ path: RemotePath) -> HTTPAddress { address.appending(path.segments) }

  // MARK: Looking

  /// `ListObjectsV2`.
  public func list(_ request: ListRequest) async throws -> ListPage {
    var query = [("list-type", "2"), ("encoding-type", "url")]
    if let folder = request.folder { query.append(("prefix", "\(folder)/")) }
    if let after = request.after { query.append(("start-after", after.text)) }
    if let limit = request.limit { query.append(("max-keys", "\(limit)")) }
    if let token = request.continuation { query.append(("continuation-token", token)) }
    let (document, _) = try await exchange.perform(HTTPTransportRequest("GET", bucket.with(query: query))) {
      try await $0.document(named: "ListBucketResult")
    }
    var page = ListPage(objects: [])
    for entry in document.all("Contents") {
      // A key that ends with a slash is a folder to some programs.
      guard let text = entry["Key"]?.text, let key = Self.decoded(text, document), !key.hasSuffix("/") else { continue }
      guard let byteCount = entry.text(of: "Size").flatMap({ Int64($0) }), byteCount >= 0 else {
        throw StorageError(.invalidAnswer, "\(name) lists an object without a size")
      }
      let path: RemotePath
      do { path = try RemotePath(key) } catch {
        page.unusableNames += 1
        continue
      }
      let tag = entry.text(of: "ETag")
      page.objects.append(
        StoredObject(
          path: path, byteCount: byteCount, version: tag.map { ObjectVersion(entityTag: $0) },
          modifiedAt: entry.text(of: "LastModified").flatMap { ISOTime.milliseconds($0) },
          checksums: tag.flatMap { Self.checksum($0) }.map { [$0] } ?? []))
    }
    if document.text(of: "IsTruncated") == "true" {
      guard let token = document.text(of: "NextContinuationToken"), !token.isEmpty else {
        throw StorageError(.invalidAnswer, "\(name) breaks its listing off and does not say where it goes on")
      }
      page.continuation = token
    }
    return page
  }

  /// The bucket's own address, which ends with a slash in either style.
  var bucket: HTTPAddress {
    var address = address
    if !address.path.hasSuffix("/") { address.path += "/" }
    return address
  }

  /// The decoded key: with `encoding-type=url` servers encode keys as in a form, with a plus sign for a space.
  private static func decoded(_ key: String, _ document: XMLTree) -> String? {
    guard document.text(of: "EncodingType") == "url" else { return key }
    return PercentEncoding.decoded(key.split(separator: "+", omittingEmptySubsequences: false).joined(separator: " "))
  }

  /// The MD5 that an entity tag is, unless the object was sent in parts or the server encrypts it.
  static func checksum(_ tag: String) -> ContentChecksum? {
    let hex = tag.filter { $0 != "\"" }
    guard hex.utf8.count == 32, HexText.bytes(hex.lowercased()) != nil else { return nil }
    return ContentChecksum(.md5, hex: hex)
  }

  /// `HeadObject`.
  public func stat(_ path: RemotePath) async throws -> StoredObject? {
    let request = HTTPTransportRequest("HEAD", url(path))
    let answer = try await exchange.perform(request, about: path, accepting: [200, 404])
    return answer.response.status == 404 ? nil : try object(path, answer.response.headers)
  }

  private func object(_ path: RemotePath, _ headers: HTTPHeaders, byteCount: Int64? = nil) throws -> StoredObject {
    var object = try StoredObject(path, headers, byteCount: byteCount, from: name)
    object.checksums = headers["ETag"].flatMap { Self.checksum($0) }.map { [$0] } ?? []
    return object
  }

  // MARK: Reading

  /// `GetObject`.
  public func get(_ path: RemotePath, _ request: GetRequest) async throws -> StorageDownload {
    var sent = HTTPTransportRequest("GET", url(path))
    sent.headers["If-Match"] = request.version?.text
    let ranged = try RangedRead(request, &sent.headers)
    let answer = try await exchange.perform(sent, about: path, accepting: [200, 206, 412, 416])
    if answer.response.status == 412 { throw StorageError.changed(path) }
    return try ranged.download(answer.response, path) { try object(path, $0, byteCount: $1) }
  }

  // MARK: Writing

  /// `PutObject`, or an upload in parts for large objects.
  @discardableResult
  public func put(
    _ contents: StorageContents, to path: RemotePath, _ condition: PutCondition
  ) async throws -> StoredObject {
    guard contents.byteCount < configuration.multipartThreshold else {
      return try await S3MultipartUpload(contents: contents, path: path, condition: condition, bucket: self).run()
    }
    var request = HTTPTransportRequest(
      "PUT", url(path), body: .contents(contents, 0..<contents.byteCount))
    request.headers["Content-Type"] = path.contentType
    condition.write(into: &request.headers)
    request.headers[S3Authorization.payloadField] = try await contents.knownSHA256()
    let answer = try await slots.run { try await exchange.perform(request, about: path, accepting: [200, 201, 412]) }
    if answer.response.status == 412 {
      // The object may be from an earlier attempt whose answer was lost.
      if answer.attempts > 1, let found = try await ours(contents, at: path) { return found }
      throw condition.refusal(at: path)
    }
    return try object(path, answer.response.headers, byteCount: contents.byteCount)
  }

  /// The object, if its contents are these.
  func ours(_ contents: StorageContents, at path: RemotePath) async throws -> StoredObject? {
    guard let found = try await stat(path), found.byteCount == contents.byteCount else { return nil }
    let digest = try await contents.digest(Insecure.MD5.self)
    return found.checksums.contains(ContentChecksum(.md5, hex: digest)) ? found : nil
  }

  /// `DeleteObject`.
  public func delete(_ path: RemotePath) async throws {
    _ = try await exchange.perform(
      HTTPTransportRequest("DELETE", url(path)), about: path, accepting: [200, 202, 204, 404])
  }

  /// The largest object that the protocol copies in one step, in bytes: 5 GiB.
  private static let copyLimit: Int64 = 5 << 30

  /// Copies the object within the server, and deletes the original. Throws `unsupported` for objects that are too large
  /// for that.
  public func move(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool) async throws {
    guard path != newPath else { return }
    guard let object = try await stat(path) else { throw StorageError.notFound(path) }
    guard object.byteCount <= Self.copyLimit else {
      throw StorageError(.unsupported, "\(name) copies no object of more than 5 GiB in one step", path: path)
    }
    if !isReplacing, try await stat(newPath) != nil { throw StorageError.alreadyExists(newPath) }
    var request = HTTPTransportRequest("PUT", url(newPath))
    let source = [configuration.bucket] + path.segments
    request.headers["X-Amz-Copy-Source"] = "/" + source.map { PercentEncoding.encoded($0) }.joined(separator: "/")
    // The server begins to answer before it has copied, and a failure can come with a successful status.
    _ = try await exchange.perform(request, about: path) { try await $0.document(named: "CopyObjectResult") }
    try await delete(path)
  }

  /// An address that allows reading or writing an object for a while without credentials.
  ///
  /// - Parameters:
  ///   - path: The object.
  ///   - permission: The allowed operation.
  ///   - seconds: For how long; at most 604,800, which is a week.
  /// - Throws: `StorageError` with `invalidSetting` for any other time.
  public func presignedAddress(
    of path: RemotePath, for permission: PresignedPermission, seconds: Int
  ) throws(StorageError) -> String {
    guard (1...604_800).contains(seconds) else {
      throw StorageError(.invalidSetting, "a presigned address is good for 1 to 604,800 seconds, not \(seconds)")
    }
    return authorization.signature.presigned(
      permission.rawValue, url(path), seconds: seconds, at: authorization.time
    ).description
  }
}

/// The operation that a presigned address allows.
public enum PresignedPermission: String, Sendable {
  /// To read the object.
  case read = "GET"
  /// To write it.
  case write = "PUT"
  /// To delete it.
  case delete = "DELETE"
}

extension PutCondition {
  /// Writes the condition as HTTP has it (RFC 9110, section 13.1).
  func write(into headers: inout HTTPHeaders) {
    switch self {
    case .none: break
    case .ifAbsent: headers["If-None-Match"] = "*"
    case .ifVersion(let version): headers["If-Match"] = version.text
    }
  }

  /// The error of a condition that does not hold.
  func refusal(at path: RemotePath) -> StorageError {
    self == .ifAbsent ? .alreadyExists(path) : .changed(path)
  }
}

extension HTTPTransportResponse {
  /// How large a document may be that a server sends, in bytes: a page of 1,000 names has some hundred kilobytes.
  private static let documentLimit = 16 << 20

  /// Reads the body as an XML document.
  ///
  /// - Parameter names: What its root may be called.
  /// - Throws: `StorageError`: the one that the document describes, or `invalidAnswer` when it is another than expected.
  func document(named names: String...) async throws -> XMLTree {
    let document = try XMLTree.parse(try await body.bytes(upTo: Self.documentLimit))
    if names.contains(document.name) { return document }
    if document.name == "Error" {
      let code = document.text(of: "Code") ?? ""
      let isTransient = ["InternalError", "SlowDown", "ServiceUnavailable"].contains(code)
      throw StorageError(
        isTransient ? .unavailable : .invalidAnswer,
        "the server has failed: \(code): \(document.text(of: "Message") ?? "")")
    }
    throw StorageError(
      .invalidAnswer,
      "the server's answer is a <\(document.name)> instead of a <\(names[0])>; check the address: a web page, or a proxy, answers in place of the storage"
    )
  }
}

/// A bucket, and its address.
public struct S3Configuration: Sendable, Equatable {
  /// The place of the bucket's name.
  public enum Style: String, Sendable, Codable {
    /// Into the path: `https://host/bucket/object`. Every server understands it.
    case path
    /// Before the host: `https://bucket.host/object`. AWS wants it of new buckets.
    case virtualHost = "virtual-host"
  }

  /// The address of the service, such as `https://s3.eu-central-1.amazonaws.com` or `http://127.0.0.1:9000`.
  public var endpoint: String
  /// The region in signatures; `auto` for R2, `us-east-1` if a server has none.
  public var region: String
  /// The bucket.
  public var bucket: String
  /// The place of its name.
  public var style: Style
  /// From how many bytes on an object is sent in parts.
  public var multipartThreshold: Int64 = 16 << 20
  /// The size of a part in bytes; larger if an object would have over 10,000 parts.
  public var partBytes: Int64 = 8 << 20
  /// The number of simultaneous requests: R2 allows two or three for one object.
  public var transferLimit = 4
  /// True if the server honours `If-None-Match` and `If-Match` when an object is put. ``StorageProbe`` finds out.
  public var honoursConditions = true

  /// Describes a bucket.
  public init(endpoint: String, region: String, bucket: String, style: Style = .path) {
    self.endpoint = endpoint
    self.region = region
    self.bucket = bucket
    self.style = style
  }

  /// The least and the most that S3 lets a part have, in bytes:
  /// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>.
  static let partRange: ClosedRange<Int64> = (5 << 20)...(5 << 30)
  /// The most parts of an object.
  static let partLimit: Int64 = 10_000

  /// The address of the bucket.
  ///
  /// - Throws: `StorageError` with `invalidSetting`.
  func address() throws(StorageError) -> HTTPAddress {
    var address = try HTTPAddress(endpoint)
    let isName = bucket.utf8.allSatisfy {
      ($0 >= 0x30 && $0 <= 0x39) || ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A) || [0x2D, 0x2E, 0x5F].contains($0)
    }
    guard !bucket.isEmpty, isName else {
      throw StorageError(.invalidSetting, "\"\(bucket)\" is no name of a bucket: letters, digits, dots and hyphens")
    }
    guard Self.partRange.contains(partBytes) else {
      throw StorageError(.invalidSetting, "a part has from 5 MiB to 5 GiB, not \(partBytes) bytes")
    }
    switch style {
    case .path: return address.appending([bucket])
    case .virtualHost:
      address.host = "\(bucket).\(address.host)"
      return address
    }
  }

  /// The size of each part of an object except the last.
  func partBytes(for byteCount: Int64) -> Int64 {
    let least = (byteCount + Self.partLimit - 1) / Self.partLimit
    // Whole mebibytes, because a resumed upload must have the same parts.
    let mebibytes = (least + (1 << 20) - 1) >> 20
    return max(partBytes, mebibytes << 20)
  }
}

/// Limits the number of simultaneous transfers: some servers support two or three.
final class TransferSlots: Sendable {
  private struct State {
    var free: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: NIOLockedValueBox<State>

  init(_ count: Int) { state = NIOLockedValueBox(State(free: max(1, count))) }

  /// Runs work when there is room for it, in the order of the calls.
  func run<Result: Sendable>(_ work: () async throws -> Result) async throws -> Result {
    await begin()
    defer { end() }
    try Task.checkCancellation()
    return try await work()
  }

  private func begin() async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLockedValue { state in
        guard state.free == 0 else {
          state.free -= 1
          return true
        }
        state.waiting.append(continuation)
        return false
      }
      if isFree { continuation.resume() }
    }
  }

  private func end() {
    let next = state.withLockedValue { state -> CheckedContinuation<Void, Never>? in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.free += 1
      return nil
    }
    next?.resume()
  }
}
