import BuckiaBytes
import BuckiaStorage
import Crypto
import NIOConcurrencyHelpers

/// Asks for a part of an object, and copes with servers that send the whole (RFC 9110, section 14).
struct RangedRead {
  private let offset: Int64
  private let count: Int64?

  /// - Throws: `StorageError` with `invalidSetting` for a range below 0.
  init(_ request: GetRequest, _ headers: inout HTTPHeaders) throws(StorageError) {
    guard request.offset >= 0, request.count.map({ $0 > 0 }) ?? true else {
      throw StorageError(.invalidSetting, "a part of an object begins at 0 or later and has at least one byte")
    }
    offset = request.offset
    count = request.count
    guard offset > 0 || count != nil else { return }
    let (end, isTooLarge) = offset.addingReportingOverflow((count ?? 1) - 1)
    headers["Range"] = "bytes=\(offset)-\(count == nil || isTooLarge ? "" : "\(end)")"
  }

  /// The download from an answer of status 200, 206 or 416.
  ///
  /// - Parameter object: Describes the object, from the header fields and its size; the size is nil if the fields say it.
  /// - Throws: `StorageError` with `invalidAnswer`.
  func download(
    _ response: HTTPTransportResponse, _ path: RemotePath, _ object: (HTTPHeaders, Int64?) throws -> StoredObject
  ) throws -> StorageDownload {
    switch response.status {
    case 206:
      guard let (start, total) = Self.contentRange(response.headers["Content-Range"]), start == offset else {
        throw StorageError(.invalidAnswer, "the server sends another part than was asked for", path: path)
      }
      let found = try object(response.headers, total)
      return StorageDownload(
        object: found, chunks: exactly(min(count ?? .max, total - offset), of: response.body, path))
    case 416:
      // There is nothing from there on: right at the end that is no error.
      guard let total = Self.total(response.headers["Content-Range"]), offset >= total else {
        throw StorageError.changed(path)
      }
      return StorageDownload(object: try object(response.headers, total), chunks: ByteChunks([]))
    default:
      let found = try object(response.headers, nil)
      let whole = exactly(found.byteCount, of: response.body, path)
      guard offset > 0 || count != nil else { return StorageDownload(object: found, chunks: whole) }
      return StorageDownload(object: found, chunks: part(of: whole))
    }
  }

  /// The bytes, if there are as many as there have to be.
  private func exactly(_ count: Int64, of chunks: ByteChunks, _ path: RemotePath) -> ByteChunks {
    chunks.checked {
      var left = count
      return { chunk in
        left -= Int64(chunk?.count ?? 0)
        guard chunk == nil ? left == 0 : left >= 0 else {
          throw StorageError(.truncated, "\(count - left) bytes came instead of \(count)", path: path)
        }
      }
    }
  }

  /// The wanted part of all bytes.
  private func part(of chunks: ByteChunks) -> ByteChunks {
    let (offset, count) = (offset, count)
    return ByteChunks {
      var iterator = chunks.makeAsyncIterator()
      var skipped = offset
      var left = count ?? .max
      return {
        while left > 0, let chunk = try await iterator.next() {
          let start = min(skipped, Int64(chunk.count))
          skipped -= start
          let end = min(Int64(chunk.count), start + min(left, Int64(chunk.count) - start))
          guard end > start else { continue }
          left -= end - start
          return Array(chunk[Int(start)..<Int(end)])
        }
        return nil
      }
    }
  }

  /// Start and total of `bytes 3-6/10`.
  private static func contentRange(_ text: String?) -> (start: Int64, total: Int64)? {
    guard let total = total(text), let range = text?.dropFirst("bytes ".count).prefix(while: { $0 != "/" }),
      let dash = range.firstIndex(of: "-"), let start = Int64(range[..<dash])
    else { return nil }
    return (start, total)
  }

  private static func total(_ text: String?) -> Int64? {
    guard let text, text.lowercased().hasPrefix("bytes "), let slash = text.lastIndex(of: "/"),
      let total = Int64(text[text.index(after: slash)...]), total >= 0
    else { return nil }
    return total
  }
}

extension StoredObject {
  /// The object that an answer's header describes.
  ///
  /// - Parameters:
  ///   - byteCount: Its size; nil if the header says it.
  ///   - server: The server's name for errors.
  /// - Throws: `StorageError` with `invalidAnswer` where its size is not said.
  init(
    _ path: RemotePath, _ headers: HTTPHeaders, byteCount: Int64?, from server: String = "the server"
  ) throws(StorageError) {
    guard let byteCount = byteCount ?? headers["Content-Length"].flatMap({ Int64($0) }) else {
      throw StorageError(.invalidAnswer, "\(server) does not say how large it is", path: path)
    }
    self.init(
      path: path, byteCount: byteCount, version: headers["ETag"].map { ObjectVersion(entityTag: $0) },
      modifiedAt: headers["Last-Modified"].flatMap { HTTPDate.milliseconds($0) })
  }
}

/// Computes the SHA-256 of contents while they are sent.
final class SentDigest: Sendable {
  private let state = NIOLockedValueBox((hash: SHA256(), byteCount: Int64(0)))

  func begin() { state.withLockedValue { $0 = (SHA256(), 0) } }

  func add(_ chunk: [UInt8]) {
    state.withLockedValue { state in
      state.hash.update(data: chunk)
      state.byteCount += Int64(chunk.count)
    }
  }

  /// The digest in lower-case hexadecimal, if so many bytes were read the last time; else nil.
  func sha256(ofAll byteCount: Int64) -> String? {
    state.withLockedValue { $0.byteCount == byteCount ? HexText.lowercase($0.hash.finalize()) : nil }
  }
}

/// The media types of usual files beside a database, by the ending of their names, for viewing them in a browser. Other
/// files have the type of any bytes (RFC 2046, section 4.5.1).
extension RemotePath {
  private static let contentTypes = [
    "jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif", "webp": "image/webp",
    "heic": "image/heic", "avif": "image/avif", "svg": "image/svg+xml", "mp4": "video/mp4", "m4v": "video/mp4",
    "mov": "video/quicktime", "webm": "video/webm", "mp3": "audio/mpeg", "m4a": "audio/mp4", "wav": "audio/wav",
    "flac": "audio/flac", "ogg": "audio/ogg", "opus": "audio/ogg", "pdf": "application/pdf",
    "txt": "text/plain; charset=utf-8",
    "json": "application/json", "sqlite": "application/vnd.sqlite3",
  ]

  /// The type of an object.
  var contentType: String {
    let name = name
    guard let dot = name.lastIndex(of: ".") else { return "application/octet-stream" }
    return Self.contentTypes[name[name.index(after: dot)...].lowercased()] ?? "application/octet-stream"
  }
}
