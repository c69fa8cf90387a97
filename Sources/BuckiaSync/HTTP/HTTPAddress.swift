import BuckiaBytes
import BuckiaStorage

/// An absolute address of a server, as RFC 3986 writes them: `https://host:port/path?query`.
public struct HTTPAddress: Sendable, Hashable, CustomStringConvertible {
  /// True if the connection is encrypted.
  public var isSecure: Bool
  /// The host's name or address, in lower case; an IPv6 address in brackets.
  public var host: String
  /// The port, if it is not the usual one.
  public var port: Int?
  /// The path, percent-encoded; it begins with a slash.
  public var path: String
  /// The query, percent-encoded, without the question mark; nil for none.
  public var query: String?

  /// Parses an address.
  ///
  /// - Throws: `StorageError` with `invalidSetting` when it is not one for HTTP, or holds a user's name or a fragment.
  public init(_ text: String) throws(StorageError) {
    func fault(_ reason: String) -> StorageError {
      // The text is not repeated: there may be a password in it.
      StorageError(.invalidSetting, "the address of the server is not in order: \(reason)")
    }
    let lowered = text.prefix(8).lowercased()
    guard lowered.hasPrefix("http://") || lowered.hasPrefix("https://") else {
      throw fault("it begins with neither https:// nor http://")
    }
    isSecure = lowered.hasPrefix("https://")
    let rest = text.dropFirst(isSecure ? 8 : 7)
    guard rest.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw fault("it has spaces or letters that need percent-encoding")
    }
    guard !rest.contains("#") else { throw fault("it has a fragment (#…)") }
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let authority = rest[..<end]
    guard !authority.contains("@") else { throw fault("it has a user's name or a password; give these separately") }
    let hostEnd =
      authority.hasPrefix("[")
      ? authority.firstIndex(of: "]").map { authority.index(after: $0) } : authority.firstIndex(of: ":")
    host = authority[..<(hostEnd ?? authority.endIndex)].lowercased()
    guard !host.isEmpty else { throw fault("it names no host") }
    let portText = hostEnd.map { authority[$0...].dropFirst() } ?? ""
    if portText.isEmpty {
      port = nil
    } else {
      guard let number = Int(portText), (1...65535).contains(number) else {
        throw fault("the port is no number from 1 to 65535")
      }
      port = number == (isSecure ? 443 : 80) ? nil : number
    }
    let target = rest[end...]
    let question = target.firstIndex(of: "?")
    let written = String(target[..<(question ?? target.endIndex)])
    path = written.isEmpty ? "/" : written
    query = question.map { String(target[target.index(after: $0)...]) }
  }

  /// The host, with a port other than the usual one: the value of the field `Host`.
  public var authority: String { port.map { "\(host):\($0)" } ?? host }

  /// Scheme, host and port.
  public var origin: String { "\(isSecure ? "https" : "http")://\(authority)" }

  /// The whole address, with its query.
  public var description: String { origin + path + (query.map { "?\($0)" } ?? "") }

  /// The address for errors: without the query, which may hold a token.
  public var shown: String { origin + path }

  /// The address of something below this one.
  ///
  /// - Parameter segments: The parts of the path, not encoded.
  public func appending(_ segments: [String]) -> HTTPAddress {
    var address = self
    for segment in segments {
      if !address.path.hasSuffix("/") { address.path += "/" }
      address.path += PercentEncoding.encoded(segment)
    }
    return address
  }

  /// The address with a query.
  ///
  /// - Parameter items: Names and values, not encoded.
  public func with(query items: [(String, String)]) -> HTTPAddress {
    var address = self
    address.query =
      items.isEmpty
      ? nil : items.map { "\(PercentEncoding.encoded($0))=\(PercentEncoding.encoded($1))" }.joined(separator: "&")
    return address
  }

  /// Resolves an address in `Location`, which may be relative (RFC 3986, section 5).
  ///
  /// - Throws: `StorageError`.
  func resolving(_ reference: String) throws(StorageError) -> HTTPAddress {
    if reference.hasPrefix("//") { return try HTTPAddress("\(isSecure ? "https" : "http"):\(reference)") }
    if reference.hasPrefix("/") { return try HTTPAddress(origin + reference) }
    if reference.contains("://") { return try HTTPAddress(reference) }
    let folder = path.lastIndex(of: "/").map { path[...$0] } ?? "/"
    return try HTTPAddress(origin + folder + reference)
  }
}
