import BuckiaBytes
import BuckiaStorage
import Crypto

/// A storage zone of Bunny.net, and its password.
public struct BunnyConfiguration: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
  /// The main region of a zone: the beginning of the host's name
  public enum Region: String, Sendable, CaseIterable, Codable {
    case frankfurt = ""
    case london = "uk"
    case newYork = "ny"
    case losAngeles = "la"
    case singapore = "sg"
    case stockholm = "se"
    case saoPaulo = "br"
    case johannesburg = "jh"
    case sydney = "syd"
  }

  /// The name of the zone.
  public var zone: String
  /// The address of the service.
  public var endpoint: String
  /// The password of the zone: that for writing, or that for reading only.
  public var accessKey: String
  /// The number of simultaneous requests.
  public var transferLimit = 8

  /// Describes a zone.
  public init(zone: String, region: Region = .frankfurt, accessKey: String) {
    let prefix = region.rawValue.isEmpty ? "" : "\(region.rawValue)."
    self.init(zone: zone, endpoint: "https://\(prefix)storage.bunnycdn.com", accessKey: accessKey)
  }

  /// Describes a zone at an address of its own.
  public init(zone: String, endpoint: String, accessKey: String) {
    self.zone = zone
    self.endpoint = endpoint
    self.accessKey = accessKey
  }

  /// The zone alone: passwords are not printed.
  public var description: String { "Bunny.net zone \(zone)" }
  /// What `dump` shows: nothing secret.
  public var customMirror: Mirror { Mirror(self, children: ["zone": zone, "endpoint": endpoint]) }
}

/// A storage zone of Bunny.net, through its storage API: <https://docs.bunny.net/api-reference/storage>.
///
/// The API has no conditions and no moves; ``StorageProvider/putChecked(_:to:_:)`` and ``StorageProvider/moveOrCopy(_:to:replacing:)`` do without.
public struct BunnyStorage: StorageProvider {
  private struct Authorization: RequestAuthorization {
    let accessKey: String
    func authorize(_ request: inout HTTPTransportRequest) { request.headers["AccessKey"] = accessKey }
  }

  private let configuration: BunnyConfiguration
  private let address: HTTPAddress
  private let exchange: HTTPExchange

  /// Takes a zone.
  ///
  /// - Parameters:
  ///   - configuration: The zone.
  ///   - transport: What brings requests there.
  ///   - retries: How often they are repeated.
  /// - Throws: `StorageError` with `invalidSetting`.
  public init(
    _ configuration: BunnyConfiguration, transport: any HTTPTransport, retries: RetryPolicy = RetryPolicy()
  ) throws(StorageError) {
    guard !configuration.zone.isEmpty, !configuration.zone.contains("/") else {
      throw StorageError(.invalidSetting, "\"\(configuration.zone)\" is no name of a storage zone")
    }
    self.configuration = configuration
    address = try HTTPAddress(configuration.endpoint).appending([configuration.zone])
    exchange = HTTPExchange(
      transport: transport, policy: retries, authorization: Authorization(accessKey: configuration.accessKey))
  }

  /// The address of the zone.
  public var name: String { address.shown }

  /// Ranges, and SHA-256 of what is put.
  public var capabilities: StorageCapabilities {
    StorageCapabilities(
      readsRanges: true, checksums: [.sha256], looksUpInListings: true, transferLimit: configuration.transferLimit)
  }

  private func url(_ path: RemotePath) -> HTTPAddress { address.appending(path.segments) }

  // MARK: Looking

  /// How large a listing may be, in bytes: the API has no pages.
  private static let listingLimit = 256 << 20

  /// Lists folder by folder, since the API lists one at a time.
  public func list(_ request: ListRequest) async throws -> ListPage {
    var page = ListPage(objects: [])
    var folders = [request.folder]
    var count = 0
    while let folder = folders.popLast() {
      try Task.checkCancellation()
      let (entries, unusable) = try await entries(of: folder)
      page.unusableNames += unusable
      count += 1 + (entries?.count ?? 0)
      guard count <= ListPage.limit else { throw ListPage.endless(of: name) }
      if entries == nil, folder == request.folder { page.isMissing = true }
      for entry in entries ?? [] {
        if entry.isFolder { folders.append(entry.object.path) } else { page.objects.append(entry.object) }
      }
    }
    if let after = request.after { page.objects.removeAll { $0.path <= after } }
    page.objects.sort { $0.path < $1.path }
    return page
  }

  /// The contents of one folder; nil if it does not exist.
  private func entries(of folder: RemotePath?) async throws -> ([(object: StoredObject, isFolder: Bool)]?, Int) {
    var url = folder.map { self.url($0) } ?? address
    url.path += "/"
    var request = HTTPTransportRequest("GET", url)
    request.headers["Accept"] = "application/json"
    let (text, _) = try await exchange.perform(request, about: folder, accepting: [200, 404]) {
      $0.status == 200 ? try await $0.body.bytes(upTo: Self.listingLimit) : nil
    }
    guard let text else { return (nil, 0) }
    let document: JSONValue
    do { document = try JSONParser.parse(text, numbers: .all) } catch {
      throw StorageError(.invalidAnswer, "\(name) does not answer with a listing: \(error)", path: folder)
    }
    guard case .array(let items) = document else {
      throw StorageError(.invalidAnswer, "\(name) does not answer with a listing", path: folder)
    }
    var found: [(object: StoredObject, isFolder: Bool)] = []
    var unusable = 0
    for item in items {
      guard case .object(let members) = item, case .string(let text)? = members["ObjectName"],
        case .bool(let isFolder)? = members["IsDirectory"], case .integer(let byteCount)? = members["Length"],
        byteCount >= 0
      else { throw StorageError(.invalidAnswer, "\(name) lists something without a name or a size", path: folder) }
      let path: RemotePath
      do {
        guard !text.utf8.contains(UInt8(ascii: "/")) else { throw StorageError(.invalidName, text) }
        path = try folder?.appending(text) ?? RemotePath(text)
      } catch {
        unusable += 1
        continue
      }
      found.append((Self.object(path, byteCount, members), isFolder))
    }
    return (found, unusable)
  }

  private static func object(_ path: RemotePath, _ byteCount: Int64, _ members: JSONObject) -> StoredObject {
    var object = StoredObject(path: path, byteCount: byteCount)
    // Times are in UTC without saying so.
    if case .string(let time)? = members["LastChanged"] {
      object.modifiedAt = ISOTime.milliseconds(time.hasSuffix("Z") ? time : "\(time)Z")
    }
    if case .string(let checksum)? = members["Checksum"], checksum.utf8.count == 2 * SHA256.byteCount {
      object.checksums = [ContentChecksum(.sha256, hex: checksum)]
      object.version = ObjectVersion("\"\(checksum.lowercased())\"")
    }
    return object
  }

  /// Looks the object up in the listing of its folder: the API has no other way.
  public func stat(_ path: RemotePath) async throws -> StoredObject? {
    try await entries(of: path.folder).0?.first { $0.object.path == path && !$0.isFolder }?.object
  }

  // MARK: Reading and writing

  /// Downloads an object. A wanted version is a digest: of the whole it is checked at its end, and of a part it is looked up first.
  public func get(_ path: RemotePath, _ request: GetRequest) async throws -> StorageDownload {
    let isWhole = request.offset == 0 && request.count == nil
    if !isWhole, let wanted = request.version, let found = try await stat(path), found.version != wanted {
      throw StorageError.changed(path)
    }
    var sent = HTTPTransportRequest("GET", url(path))
    let ranged = try RangedRead(request, &sent.headers)
    let response = try await exchange.perform(sent, about: path, accepting: [200, 206, 416]).response
    let download = try ranged.download(response, path) { headers, byteCount in
      var object = try StoredObject(path, headers, byteCount: byteCount)
      object.version = request.version
      return object
    }
    guard isWhole, let wanted = request.version else { return download }
    return StorageDownload(object: download.object, chunks: Self.checked(download.chunks, wanted, path))
  }

  /// The bytes, which end with an error if they are not of a version.
  private static func checked(_ chunks: ByteChunks, _ version: ObjectVersion, _ path: RemotePath) -> ByteChunks {
    chunks.checked {
      var hash = SHA256()
      return { chunk in
        if let chunk { return hash.update(data: chunk) }
        guard version.text == "\"\(HexText.lowercase(hash.finalize()))\"" else { throw StorageError.changed(path) }
      }
    }
  }

  /// Uploads an object with its SHA-256. A condition is checked before, not in the same step.
  @discardableResult
  public func put(
    _ contents: StorageContents, to path: RemotePath, _ condition: PutCondition
  ) async throws -> StoredObject {
    if condition != .none { try condition.require(of: await stat(path), at: path) }
    let digest = try await contents.knownSHA256()
    var request = HTTPTransportRequest("PUT", url(path), body: .contents(contents, 0..<contents.byteCount))
    request.headers["Content-Type"] = path.contentType
    request.headers["Checksum"] = digest.uppercased()
    _ = try await exchange.perform(request, about: path, accepting: [200, 201])
    return StoredObject(
      path: path, byteCount: contents.byteCount, version: ObjectVersion("\"\(digest)\""),
      checksums: [ContentChecksum(.sha256, hex: digest)])
  }

  /// Deletes an object, and no folder.
  public func delete(_ path: RemotePath) async throws {
    // A folder's address ends with a slash, and therefore stays.
    _ = try await exchange.perform(HTTPTransportRequest("DELETE", url(path)), about: path, accepting: [200, 204, 404])
  }
}

/// The rules of a signed address of Bunny.net's CDN:
public struct BunnyTokenRules: Sendable, Equatable {
  /// Until when, in seconds since 1970.
  public var expires: Int64
  /// The folder in which everything may be read with the token, such as `/7f3a/`; nil for the one object.
  public var path: String?
  /// The one IP address from which.
  public var userIP: String?
  /// The countries from which, by their codes in ISO 3166.
  public var countries: [String] = []
  /// The countries from which not.
  public var blockedCountries: [String] = []
  /// The web sites whose pages may show it, such as `example.com`.
  public var referrers: [String] = []
  /// How fast, in kilobytes a second.
  public var speedLimit: Int?
  /// True to put the token into the path instead of the query, where relative references keep it: for video.
  public var isInPath = false

  /// Rules for one object.
  ///
  /// - Parameter expires: Until when, in seconds since 1970.
  public init(expires: Int64) { self.expires = expires }

  /// The parameters by name, as the token covers them.
  private var parameters: [(String, String)] {
    var found: [(String, String)] = []
    if let path { found.append(("token_path", path)) }
    if !countries.isEmpty { found.append(("token_countries", countries.joined(separator: ","))) }
    if !blockedCountries.isEmpty { found.append(("token_countries_blocked", blockedCountries.joined(separator: ","))) }
    if !referrers.isEmpty { found.append(("token_referer", referrers.joined(separator: ","))) }
    if let speedLimit { found.append(("limit", "\(speedLimit)")) }
    return found
  }

  /// Signs an address.
  ///
  /// - Parameters:
  ///   - address: The address at the CDN, with its query if it has one.
  ///   - key: The key of the pull zone.
  /// - Returns: The address with the token.
  /// - Throws: `StorageError` with `invalidSetting` when it is no address.
  public func signed(_ address: String, key: String) throws(StorageError) -> String {
    let url = try HTTPAddress(address)
    let all = (url.queryItems + parameters).sorted { $0.0.utf8.lexicographicallyPrecedes($1.0.utf8) }
    let covered = all.map { "\($0.0)=\($0.1)" }.joined(separator: "&")
    let target = path ?? PercentEncoding.decoded(url.path) ?? url.path
    let message = key + target + "\(expires)" + (userIP ?? "") + covered
    let token = Base64URL.text(Array(SHA256.hash(data: Array(message.utf8))))
    let written = all.map { "&\($0.0)=\(PercentEncoding.encoded($0.1))" }.joined() + "&expires=\(expires)"
    return isInPath
      ? "\(url.origin)/bcdn_token=\(token)\(written)\(url.path)" : "\(url.origin)\(url.path)?token=\(token)\(written)"
  }
}
