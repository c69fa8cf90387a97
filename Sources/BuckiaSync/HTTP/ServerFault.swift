import BuckiaStorage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Converts a server's refusal to an error.
enum ServerFault {
  /// How much of an answer is read in search of a reason, in bytes.
  private static let readLimit = 64 << 10

  /// The error for an answer, whose body is read.
  ///
  /// - Parameter request: The sent request. The secrets in its header are removed from the message, if the server
  ///   repeats them.
  static func error(
    _ response: HTTPTransportResponse, _ request: HTTPTransportRequest, about path: RemotePath?
  ) async -> StorageError {
    var text: String
    do { text = String(decoding: try await response.body.bytes(upTo: readLimit), as: UTF8.self) } catch {
      // The status is enough if the body cannot be read.
      text = ""
    }
    for secret in request.headers.secrets {
      text = text.split(separator: secret, omittingEmptySubsequences: false).joined(separator: "…")
    }
    return error(status: response.status, headers: response.headers, text: text, request, about: path)
  }

  static func error(
    status: Int, headers: HTTPHeaders, text: String, _ request: HTTPTransportRequest, about path: RemotePath?
  ) -> StorageError {
    let reason = reason(in: text)
    let (code, message) = meaning(of: status, reason: reason, request)
    var said = reason.map { "; the server says: \($0.sentence)" } ?? ""
    if (300...399).contains(status), let target = headers["Location"] {
      // Without the query, which may hold a token.
      said += "; it is \(target.prefix { $0 != "?" }.shown)"
    }
    var error = StorageError(code, "\(message) (\(request.url.origin) answers \(status)\(said))", path: path)
    error.status = status
    error.retryAfter = headers["Retry-After"].flatMap { retryAfter($0) }
    return error
  }

  /// How long a server wants to be left alone, in milliseconds: seconds, or a date (RFC 9110, section 10.2.3).
  static func retryAfter(_ text: String) -> Int64? {
    if let seconds = Int64(text) { return seconds >= 0 ? min(seconds, 1 << 40) * 1000 : nil }
    guard let date = HTTPDate.milliseconds(text) else { return nil }
    return max(0, date - WallClock.unixMilliseconds)
  }

  private static func meaning(
    of status: Int, reason: Reason?, _ request: HTTPTransportRequest
  ) -> (StorageError.Code, String) {
    switch (status, reason?.code) {
    case (_, "RequestTimeTooSkewed"):
      return (.clockSkew, "the clock of this device differs too much from the server's; set it right")
    case (_, "InvalidAccessKeyId"), (_, "SignatureDoesNotMatch"), (_, "ExpiredToken"), (_, "InvalidToken"):
      return (.unauthorized, "the access key, its secret or a token is wrong or has expired")
    case (_, "NoSuchBucket"): return (.notFound, "there is no such bucket; check its name and region")
    case (401, _), (407, _):
      return (.unauthorized, "the server does not know who asks: the key, token or password is wrong or has expired")
    case (403, _): return (.forbidden, "the server does not allow this with these credentials")
    case (404, _), (410, _): return (.notFound, "there is no such object")
    case (405, _), (501, _): return (.unsupported, "the server cannot do this")
    case (409, _), (423, _): return (.conflict, "something else is being done to it at the same time; try again")
    case (412, _):
      return request.headers["If-None-Match"] != nil
        ? (.alreadyExists, "an object of that name is there already, and was not replaced")
        : (.changed, "somebody has replaced or removed it meanwhile; nothing was written over it")
    case (413, _): return (.unsupported, "it is larger than the server takes")
    case (416, _): return (.changed, "it is shorter than it was; somebody has replaced it meanwhile")
    case (408, _): return (.timedOut, "the server has waited too long")
    case (429, _): return (.tooManyRequests, "the server wants fewer requests; try again later")
    case (507, _): return (.fullStorage, "the storage is full; make room there")
    case (500...599, _): return (.unavailable, "the server has a fault of its own; try again later")
    case (300...399, _):
      return (
        .redirected,
        "the server sends on to another address, which nothing was written to; check the address, and use the one that the server really has"
      )
    default: return (.invalidAnswer, "the server has refused this")
    }
  }

  /// The reason in a server's answer: `Code` and `Message` of S3's XML, or the same of others' JSON.
  struct Reason {
    let code: String?
    let sentence: String
  }

  static func reason(in text: String) -> Reason? {
    func element(_ names: String...) -> String? {
      for name in names {
        guard let start = text.range(of: "<\(name)>"),
          let end = text.range(of: "</", range: start.upperBound..<text.endIndex)
        else { continue }
        return text[start.upperBound..<end.lowerBound].shown
      }
      return nil
    }
    func member(_ names: String...) -> String? {
      for name in names {
        guard let key = text.range(of: "\"\(name)\"") else { continue }
        let rest = text[key.upperBound...].drop { $0 == ":" || $0 == " " }
        guard rest.first == "\"" else { continue }
        return rest.dropFirst().prefix { $0 != "\"" }.shown
      }
      return nil
    }
    let code = element("Code") ?? member("code", "error")
    let message = element("Message", "s:message") ?? member("message", "Message", "error_description")
    guard let sentence = message ?? code else { return nil }
    return Reason(code: code, sentence: message != nil && code != nil ? "\(code ?? ""): \(sentence)" : sentence)
  }
}

extension HTTPHeaders {
  /// The fields with credentials.
  private static let secretFields = ["Authorization", "Proxy-Authorization", "AccessKey", "X-Amz-Security-Token"]

  /// The secrets in the fields, whole and in their parts: the longer first.
  fileprivate var secrets: [String] {
    var found: Set<String> = []
    for field in Self.secretFields {
      guard let value = self[field] else { continue }
      found.insert(value)
      let parts = value.split(separator: " ", maxSplits: 1).map(String.init)
      guard parts.count == 2 else { continue }
      found.insert(parts[1])
      guard parts[0].lowercased() == "basic", let decoded = Data(base64Encoded: parts[1]) else { continue }
      let pair = String(decoding: decoded, as: UTF8.self)
      if let colon = pair.firstIndex(of: ":") { found.insert(String(pair[pair.index(after: colon)...])) }
    }
    // Very short values are not secrets.
    return found.filter { $0.utf8.count > 3 }.sorted { $0.utf8.count > $1.utf8.count }
  }
}
