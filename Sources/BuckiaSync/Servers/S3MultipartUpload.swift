import BuckiaBytes
import BuckiaStorage
import Crypto

/// One large object on its way into a bucket, in parts:
/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html>.
///
/// An interrupted upload is found by its object's name, and parts that have arrived by their MD5. Nothing needs to be
/// recorded here, and parts of a file that has changed since are never mixed.
struct S3MultipartUpload: Sendable {
  let contents: StorageContents
  let path: RemotePath
  let condition: PutCondition
  let bucket: S3Bucket

  private var partBytes: Int64 { bucket.configuration.partBytes(for: contents.byteCount) }

  /// A part that the server has.
  private struct Part: Sendable {
    let number: Int
    let tag: String
  }

  func run() async throws -> StoredObject {
    // Not every server checks the condition when an upload is completed.
    if condition != .none { try condition.require(of: await bucket.stat(path), at: path) }
    let (upload, known) = try await begin()
    let parts: [Part]
    do {
      parts = try await sendParts(of: upload, known)
    } catch let error as StorageError where error.code == .sourceChanged {
      // None of its parts will be needed again.
      throw await abort(upload, after: error)
    }
    do {
      return try await complete(upload, parts)
    } catch let error as StorageError where error.code == .alreadyExists || error.code == .changed {
      throw await abort(upload, after: error)
    }
  }

  private func range(of number: Int) -> Range<Int64> {
    let start = Int64(number - 1) * partBytes
    return start..<min(start + partBytes, contents.byteCount)
  }

  private var partCount: Int { max(1, Int((contents.byteCount + partBytes - 1) / partBytes)) }

  // MARK: Beginning

  /// Resumes an interrupted upload, or begins one.
  ///
  /// - Returns: Its name, and the parts that have arrived.
  private func begin() async throws -> (String, [Part]) {
    if let found = try await interrupted() {
      do { return (found, try await arrived(of: found)) } catch let error as StorageError where error.code == .notFound
      {
        // Somebody has completed or aborted it meanwhile.
      }
    }
    var request = HTTPTransportRequest("POST", bucket.url(path).with(query: [("uploads", "")]))
    request.headers["Content-Type"] = path.contentType
    let (document, _) = try await bucket.exchange.perform(request, about: path) {
      try await $0.document(named: "InitiateMultipartUploadResult")
    }
    guard let upload = document.text(of: "UploadId"), !upload.isEmpty else {
      throw StorageError(.invalidAnswer, "the server begins an upload without a name for it", path: path)
    }
    return (upload, [])
  }

  /// The newest upload of this object that was not completed.
  private func interrupted() async throws -> String? {
    let query = [("uploads", ""), ("prefix", path.text)]
    let request = HTTPTransportRequest("GET", bucket.bucket.with(query: query))
    let document: XMLTree
    do {
      (document, _) = try await bucket.exchange.perform(request, about: path) {
        try await $0.document(named: "ListMultipartUploadsResult")
      }
    } catch let error as StorageError where [.forbidden, .unsupported, .notFound].contains(error.code) {
      // Write permission need not include listing uploads.
      return nil
    }
    let uploads = document.all("Upload").filter { $0["Key"]?.text == path.text }
    return uploads.max { ($0.text(of: "Initiated") ?? "") < ($1.text(of: "Initiated") ?? "") }?.text(of: "UploadId")
  }

  /// The parts of an upload that have arrived and are as they would be sent now.
  private func arrived(of upload: String) async throws -> [Part] {
    var parts: [Part] = []
    var marker = "0"
    while true {
      let query = [("uploadId", upload), ("part-number-marker", marker)]
      let request = HTTPTransportRequest("GET", bucket.url(path).with(query: query))
      let (document, _) = try await bucket.exchange.perform(request, about: path) {
        try await $0.document(named: "ListPartsResult", "ListPartsResponse")
      }
      for entry in document.all("Part") {
        guard let number = entry.text(of: "PartNumber").flatMap({ Int($0) }), (1...partCount).contains(number),
          let tag = entry.text(of: "ETag"), let checksum = S3Bucket.checksum(tag),
          entry.text(of: "Size").flatMap({ Int64($0) }) == Int64(range(of: number).count)
        else { continue }
        let digest = try await contents.digest(Insecure.MD5.self, in: range(of: number))
        if checksum.hex == digest { parts.append(Part(number: number, tag: tag)) }
      }
      guard document.text(of: "IsTruncated") == "true", let next = document.text(of: "NextPartNumberMarker"),
        next != marker
      else { return parts }
      marker = next
    }
  }

  // MARK: Sending

  private func sendParts(of upload: String, _ known: [Part]) async throws -> [Part] {
    let arrived = Set(known.map(\.number))
    var missing = (1...partCount).filter { !arrived.contains($0) }[...]
    return try await withThrowingTaskGroup(of: Part.self) { group in
      var parts = known
      for _ in 0..<max(1, bucket.configuration.transferLimit) {
        guard let number = missing.popFirst() else { break }
        group.addTask { try await send(number, of: upload) }
      }
      while let part = try await group.next() {
        parts.append(part)
        if let number = missing.popFirst() { group.addTask { try await send(number, of: upload) } }
      }
      return parts.sorted { $0.number < $1.number }
    }
  }

  private func send(_ number: Int, of upload: String) async throws -> Part {
    let range = range(of: number)
    let query = [("partNumber", "\(number)"), ("uploadId", upload)]
    var request = HTTPTransportRequest("PUT", bucket.url(path).with(query: query), body: .contents(contents, range))
    request.headers[S3Authorization.payloadField] = try await contents.digest(SHA256.self, in: range)
    let answer = try await bucket.slots.run { try await bucket.exchange.perform(request, about: path) }
    guard let tag = answer.response.headers["ETag"] else {
      throw StorageError(.invalidAnswer, "the server takes a part and gives it no name", path: path)
    }
    return Part(number: number, tag: tag)
  }

  private func complete(_ upload: String, _ parts: [Part]) async throws -> StoredObject {
    let list = parts.map { part in
      let tag = part.tag.split(separator: "\"").joined()
      return "<Part><PartNumber>\(part.number)</PartNumber><ETag>&quot;\(Self.escaped(tag))&quot;</ETag></Part>"
    }
    let text =
      "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\(list.joined())</CompleteMultipartUpload>"
    let body = Array(text.utf8)
    var request = HTTPTransportRequest(
      "POST", bucket.url(path).with(query: [("uploadId", upload)]), body: .bytes(body))
    request.headers["Content-Type"] = "application/xml"
    request.headers[S3Authorization.payloadField] = HexText.lowercase(SHA256.hash(data: body))
    condition.write(into: &request.headers)
    let (document, attempts) = try await bucket.exchange.perform(
      request, about: path, accepting: [200, 404, 412]
    ) { response -> XMLTree? in
      if response.status == 412 { throw condition.refusal(at: path) }
      guard response.status == 200 else { return nil }
      // AWS and others do not agree on the name.
      return try await response.document(named: "CompleteMultipartUploadResult", "CompleteMultipartUploadResponse")
    }
    if let document {
      let tag = document.text(of: "ETag")
      return StoredObject(path: path, byteCount: contents.byteCount, version: tag.map { ObjectVersion(entityTag: $0) })
    }
    // An earlier attempt may have completed it, and only its answer was lost.
    if attempts > 1, let found = try await bucket.stat(path), found.byteCount == contents.byteCount { return found }
    throw StorageError(.conflict, "somebody has ended the upload meanwhile; try again", path: path)
  }

  private static func escaped(_ text: String) -> String {
    text.split(separator: "&", omittingEmptySubsequences: false).joined(separator: "&amp;")
      .split(separator: "<", omittingEmptySubsequences: false).joined(separator: "&lt;")
  }

  /// Aborts a failed upload, by which the server deletes its parts.
  ///
  /// - Returns: The error of the upload, even if the server no longer answers.
  private func abort(_ upload: String, after failure: StorageError) async -> StorageError {
    let request = HTTPTransportRequest("DELETE", bucket.url(path).with(query: [("uploadId", upload)]))
    do {
      _ = try await bucket.exchange.perform(request, about: path, accepting: [200, 204, 404])
    } catch { return failure }
    return failure
  }
}
