import BuckiaStorage
import NIOConcurrencyHelpers

/// A folder of a WebDAV server: Nextcloud, ownCloud, Apache, rclone and others (RFC 4918).
///
/// WebDAV deletes whole folders like files, which is why only known files are deleted.
public struct WebDAVFolder: StorageProvider {
  private let address: HTTPAddress
  private let exchange: HTTPExchange
  private let configuration: WebDAVConfiguration
  private let known = NIOLockedValueBox(WebDAVKnowledge())

  /// Creates a provider for a folder, which is created with its first object.
  ///
  /// - Parameters:
  ///   - configuration: The folder.
  ///   - transport: What brings requests there.
  ///   - retries: How often they are repeated.
  /// - Throws: `StorageError` with `invalidSetting`.
  public init(
    _ configuration: WebDAVConfiguration, transport: any HTTPTransport, retries: RetryPolicy = RetryPolicy()
  ) throws(StorageError) {
    let authorization = try configuration.credentials.map { (credentials) throws(StorageError) in
      try BasicAuthorization(user: credentials.user, password: credentials.password)
    }
    try self.init(configuration, authorization, transport: transport, retries: retries)
  }

  /// The same with credentials of another kind.
  package init(
    _ configuration: WebDAVConfiguration, _ authorization: (any RequestAuthorization)?, transport: any HTTPTransport,
    retries: RetryPolicy
  ) throws(StorageError) {
    var address = try HTTPAddress(configuration.address)
    while address.path.hasSuffix("/") { address.path.removeLast() }
    guard address.query == nil else {
      throw StorageError(.invalidSetting, "the address of a WebDAV folder has no query")
    }
    self.address = address
    self.configuration = configuration
    exchange = HTTPExchange(transport: transport, policy: retries, authorization: authorization)
  }

  /// The address of the folder.
  public var name: String { address.shown }

  /// The capabilities of WebDAV. The configuration tells if the server supports conditions.
  public var capabilities: StorageCapabilities {
    StorageCapabilities(
      putsIfAbsent: configuration.honoursConditions, putsIfVersion: configuration.honoursConditions,
      conditionsAreAtomic: false, readsRanges: true, moves: true, transferLimit: configuration.transferLimit)
  }

  private func url(_ path: RemotePath) -> HTTPAddress { address.appending(path.segments) }

  /// The address of a folder, with the trailing slash that servers require.
  private func url(folder path: RemotePath?) -> HTTPAddress {
    var address = path.map { url($0) } ?? address
    address.path += "/"
    return address
  }

  // MARK: Looking

  /// Lists folder by folder, by `PROPFIND`. If the entity tag of a folder covers everything in it, unchanged folders
  /// are not requested again.
  public func list(_ request: ListRequest) async throws -> ListPage {
    var page = ListPage(objects: [])
    // Few servers list all folders at once (`Depth: infinity`).
    var folders: [(path: RemotePath?, tag: ObjectVersion?)] = [(request.folder, nil)]
    var count = 0
    while let folder = folders.popLast() {
      try Task.checkCancellation()
      let entries = try await entries(of: folder.path, tag: folder.tag, page: &page)
      count += 1 + (entries?.count ?? 0)
      guard count <= configuration.listingLimit else { throw ListPage.endless(of: name) }
      if entries == nil, folder.path == request.folder { page.isMissing = true }
      for entry in entries ?? [] {
        if entry.isFolder {
          folders.append((entry.path, entry.object.version))
        } else {
          page.objects.append(entry.object)
        }
      }
    }
    if let after = request.after { page.objects.removeAll { $0.path <= after } }
    page.objects.sort { $0.path < $1.path }
    return page
  }

  /// The contents of one folder.
  ///
  /// - Parameter tag: The entity tag in its parent's listing; nil if unknown.
  /// - Returns: nil if the folder does not exist.
  private func entries(
    of folder: RemotePath?, tag: ObjectVersion?, page: inout ListPage
  ) async throws -> [WebDAVEntry]? {
    if let folder, let known = known.withLockedValue({ $0.listing(of: folder, tag: tag) }) {
      page.unusableNames += known.unusableNames
      return known.entries
    }
    guard let document = try await propfind(url(folder: folder), depth: 1, about: folder) else { return nil }
    let statuses = try MultiStatus(document, below: address)
    page.unusableNames += statuses.unusableNames
    // The folder itself is among them.
    let entries = statuses.entries.filter { $0.path != folder && $0.path.folder == folder }
    known.withLockedValue { $0.note(entries, in: folder) }
    // Its own tag of this very answer: that of the folder around it may be from before.
    if statuses.tagsCoverFolders, let folder,
      let tag = statuses.entries.first(where: { $0.path == folder })?.object.version
    {
      let listing = WebDAVKnowledge.Listing(tag: tag, entries: entries, unusableNames: statuses.unusableNames)
      known.withLockedValue { $0.note(listing, of: folder) }
    }
    return entries
  }

  /// - Returns: The answer; nil if nothing exists there.
  private func propfind(
    _ url: HTTPAddress, depth: Int, about path: RemotePath?, properties: String = MultiStatus.wanted
  ) async throws -> XMLTree? {
    var request = HTTPTransportRequest("PROPFIND", url, body: .bytes(Array(properties.utf8)))
    request.headers["Depth"] = "\(depth)"
    request.headers["Content-Type"] = "application/xml; charset=utf-8"
    return try await exchange.perform(request, about: path, accepting: [207, 404]) {
      $0.status == 207 ? try await $0.document(named: "multistatus") : nil
    }.content
  }

  /// `PROPFIND` of one object. A folder is none.
  public func stat(_ path: RemotePath) async throws -> StoredObject? {
    let entry = try await entry(path)
    return entry?.isFolder == false ? entry?.object : nil
  }

  private func entry(_ path: RemotePath) async throws -> WebDAVEntry? {
    guard let document = try await propfind(url(path), depth: 0, about: path),
      let entry = try MultiStatus(document, below: address).entries.first(where: { $0.path == path })
    else { return nil }
    known.withLockedValue { $0.note(entry) }
    return entry
  }

  /// The quota, if the server reports it (RFC 4331).
  ///
  /// - Returns: The used and the available bytes; nil if the server does not report them.
  /// - Throws: `StorageError`.
  public func quota() async throws -> (used: Int64, available: Int64)? {
    guard let document = try await propfind(url(folder: nil), depth: 0, about: nil, properties: MultiStatus.quota)
    else { return nil }
    for status in document.all("response").flatMap({ $0.all("propstat") }) {
      guard let properties = status["prop"],
        let used = properties.text(of: "quota-used-bytes").flatMap({ Int64($0) }),
        let available = properties.text(of: "quota-available-bytes").flatMap({ Int64($0) }), available >= 0
      else { continue }
      return (used, available)
    }
    return nil
  }

  // MARK: Reading

  /// `GET`, with a range if one is wanted.
  public func get(_ path: RemotePath, _ request: GetRequest) async throws -> StorageDownload {
    var sent = HTTPTransportRequest("GET", url(path))
    let ranged = try RangedRead(request, &sent.headers)
    let response = try await exchange.perform(sent, about: path, accepting: [200, 206, 416]).response
    // A page that shows a folder is no object.
    if try await isFolder(path, response) { throw StorageError.notFound(path) }
    // Not every server checks a condition when it is asked to read, and Apache refuses one in the first second of a version.
    if let wanted = request.version, let found = response.headers["ETag"].map({ ObjectVersion(entityTag: $0) }),
      found != wanted
    {
      throw StorageError.changed(path)
    }
    return try ranged.download(response, path) { try StoredObject(path, $0, byteCount: $1) }
  }

  private func isFolder(_ path: RemotePath, _ response: HTTPTransportResponse) async throws -> Bool {
    guard response.headers["ETag"] == nil, response.headers["Content-Type"]?.hasPrefix("text/html") == true else {
      return false
    }
    return try await entry(path)?.isFolder == true
  }

  // MARK: Writing

  /// `PUT`, after the `MKCOL` of missing folders.
  @discardableResult
  public func put(
    _ contents: StorageContents, to path: RemotePath, _ condition: PutCondition
  ) async throws -> StoredObject {
    try await makeFolders(around: path)
    var request = HTTPTransportRequest("PUT", url(path), body: .contents(contents, 0..<contents.byteCount))
    request.headers["Content-Type"] = path.contentType
    condition.write(into: &request.headers)
    var answer = try await exchange.perform(request, about: path, accepting: [200, 201, 204, 404, 409, 412])
    if [404, 409].contains(answer.response.status) {
      // Somebody has removed the folder meanwhile.
      known.withLockedValue { $0 = WebDAVKnowledge() }
      try await makeFolders(around: path)
      answer = try await exchange.perform(request, about: path, accepting: [200, 201, 204, 412])
    }
    if answer.response.status == 412 {
      // What an earlier attempt has put there is ours, if only its answer was lost.
      if answer.attempts > 1,
        try await contents.objectWithBeginning(at: path, in: self)?.byteCount == contents.byteCount,
        let found = try await stat(path)
      {
        return found
      }
      // In the first second of a version Apache has none that a condition could name.
      guard case .ifVersion(let wanted) = condition, try await stat(path)?.version == wanted else {
        throw condition.refusal(at: path)
      }
      return try await put(contents, to: path, .none)
    }
    let object = StoredObject(
      path: path, byteCount: contents.byteCount,
      version: answer.response.headers["ETag"].map { ObjectVersion(entityTag: $0) })
    known.withLockedValue { $0.note(WebDAVEntry(object: object, isFolder: false)) }
    return object
  }

  private func makeFolders(around path: RemotePath) async throws {
    // The folder of the storage itself belongs to them.
    var missing: [RemotePath?] = []
    var folder = path.folder
    while let present = folder {
      if known.withLockedValue({ $0.hasFolder(present) }) { break }
      missing.append(present)
      folder = present.folder
    }
    if folder == nil, !known.withLockedValue({ $0.hasFolder(nil) }) { missing.append(nil) }
    for folder in missing.reversed() {
      let request = HTTPTransportRequest("MKCOL", url(folder: folder))
      // An existing folder answers 405 (Apache, Nextcloud), 201 (rclone) or 301.
      let status = try await exchange.perform(
        request, about: folder, accepting: [200, 201, 301, 405, 403, 409]
      ).response.status
      if status == 409 {
        throw StorageError(
          .notFound, "the folder around \(address.shown) does not exist; make it on the server, or check the address",
          path: folder)
      }
      if status == 403, try await folderExists(folder) == false {
        throw StorageError(.forbidden, "the server does not let a folder be made here", path: folder)
      }
      known.withLockedValue { $0.noteFolder(folder) }
    }
  }

  private func folderExists(_ folder: RemotePath?) async throws -> Bool {
    try await propfind(url(folder: folder), depth: 0, about: folder) != nil
  }

  /// `DELETE` of a known file.
  public func delete(_ path: RemotePath) async throws {
    if !known.withLockedValue({ $0.hasObject(path) }) {
      guard let entry = try await entry(path) else { return }
      guard !entry.isFolder else {
        throw StorageError(
          .conflict, "it is a folder on the server, and was not deleted with all that is in it", path: path)
      }
    }
    _ = try await exchange.perform(
      HTTPTransportRequest("DELETE", url(path)), about: path, accepting: [200, 202, 204, 404])
    known.withLockedValue { $0.forget(path) }
  }

  /// `MOVE`.
  public func move(_ path: RemotePath, to newPath: RemotePath, replacing isReplacing: Bool) async throws {
    guard path != newPath else { return }
    try await makeFolders(around: newPath)
    var request = HTTPTransportRequest("MOVE", url(path))
    request.headers["Destination"] = url(newPath).description
    request.headers["Overwrite"] = isReplacing ? "T" : "F"
    let answer = try await exchange.perform(request, about: path, accepting: [200, 201, 204, 403, 404, 412])
    known.withLockedValue { $0.forget(path) }
    switch answer.response.status {
    case 412: throw StorageError.alreadyExists(newPath)
    // rclone forbids access to missing objects.
    case 403 where try await stat(path) != nil:
      throw StorageError(.forbidden, "the server does not let it be moved to \(newPath)", path: path)
    case 403, 404:
      // An earlier attempt may have moved it, and only its answer was lost.
      if answer.attempts > 1, try await stat(newPath) != nil { return }
      throw StorageError.notFound(path)
    default: return
    }
  }
}

/// A folder of a WebDAV server, and the credentials.
public struct WebDAVConfiguration: Sendable, Equatable {
  /// The address of the folder, such as `https://cloud.example/remote.php/dav/files/anna/Buckia`.
  public var address: String
  /// The user's name and password, or app password; nil for anonymous access.
  public var credentials: WebDAVCredentials?
  /// The number of simultaneous requests.
  public var transferLimit = 4
  /// True if the server honours `If-None-Match: *` when something is put: rclone does not. ``StorageProbe`` finds out.
  public var honoursConditions = true
  /// The most files and folders of a listing.
  var listingLimit = ListPage.limit

  /// Describes a folder.
  public init(address: String, credentials: WebDAVCredentials? = nil) {
    self.address = address
    self.credentials = credentials
  }
}

/// Credentials for a WebDAV server, which are sent with the first request (RFC 7617).
public struct WebDAVCredentials: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
  /// The user's name.
  public let user: String
  /// The password, or better one that belongs to this app alone.
  public let password: String

  /// Takes a name and a password.
  public init(user: String, password: String) {
    self.user = user
    self.password = password
  }

  /// The name alone: passwords are not printed.
  public var description: String { "WebDAV user \(user)" }
  /// What `dump` shows: nothing secret.
  public var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}
