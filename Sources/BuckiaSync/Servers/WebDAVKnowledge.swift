import BuckiaBytes
import BuckiaStorage

/// A cache of a WebDAV server's files and folders, which saves requests for the existence of a folder and the type of
/// an object to delete.
struct WebDAVKnowledge: Sendable {
  private var folders: Set<RemotePath> = []
  private var hasRoot = false
  private var objects: Set<RemotePath> = []
  private var listings: [RemotePath: Listing] = [:]

  /// The contents of a folder under an entity tag.
  struct Listing {
    let tag: ObjectVersion
    let entries: [WebDAVEntry]
    let unusableNames: Int
  }

  /// The most files in the cache.
  private static let limit = 200_000
  /// The most folders with contents in the cache.
  private static let listingLimit = 10_000

  mutating func note(_ entries: [WebDAVEntry], in folder: RemotePath?) {
    noteFolder(folder)
    for entry in entries { note(entry) }
  }

  mutating func note(_ entry: WebDAVEntry) {
    if entry.isFolder {
      folders.insert(entry.path)
      objects.remove(entry.path)
    } else {
      if objects.count >= Self.limit { objects = [] }
      objects.insert(entry.path)
    }
  }

  mutating func noteFolder(_ folder: RemotePath?) {
    if let folder { folders.insert(folder) }
    hasRoot = true
  }

  func hasFolder(_ folder: RemotePath?) -> Bool { folder.map { folders.contains($0) } ?? hasRoot }

  /// The contents of a folder, if it still has the same entity tag.
  func listing(of folder: RemotePath, tag: ObjectVersion?) -> Listing? {
    listings[folder].flatMap { $0.tag == tag ? $0 : nil }
  }

  mutating func note(_ listing: Listing, of folder: RemotePath) {
    if listings.count >= Self.listingLimit { listings = [:] }
    listings[folder] = listing
  }

  func hasObject(_ path: RemotePath) -> Bool { objects.contains(path) }

  mutating func forget(_ path: RemotePath) { objects.remove(path) }
}

/// One file or folder that a WebDAV server describes.
struct WebDAVEntry: Sendable, Equatable {
  let object: StoredObject
  let isFolder: Bool

  var path: RemotePath { object.path }
}

/// A WebDAV server's description of files and folders: a `multistatus` document
struct MultiStatus {
  private(set) var entries: [WebDAVEntry] = []
  /// True if the entity tag of a folder changes with any change in it, at any depth, as on ownCloud, Nextcloud and
  /// others (<https://doc.owncloud.com/server/latest/developer_manual/webdav_api/>). They are recognized by the ids
  /// that they give to files.
  private(set) var tagsCoverFolders = false
  /// The number of items whose names are not valid as ``RemotePath``.
  private(set) var unusableNames = 0

  /// The properties that are asked for.
  static let wanted = """
    <?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getetag/>\
    <getlastmodified/><fileid xmlns="http://owncloud.org/ns"/></prop></propfind>
    """
  /// The properties of RFC 4331.
  static let quota = """
    <?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop><quota-available-bytes/><quota-used-bytes/></prop></propfind>
    """

  /// Reads an answer's document.
  ///
  /// - Parameter base: The address of the storage. What lies outside is not its business, and left out.
  /// - Throws: `StorageError`.
  init(_ document: XMLTree, below base: HTTPAddress) throws {
    let prefix = Self.segments(base.path) ?? []
    let items = document.all("response")
    var foreign = 0
    for item in items {
      guard let reference = item.text(of: "href"), !Self.isFailure(item.text(of: "status")),
        let properties = item.all("propstat").first(where: { !Self.isFailure($0.text(of: "status")) })?["prop"]
      else { continue }
      guard let segments = Self.segments(Self.path(of: reference)),
        segments.prefix(prefix.count).elementsEqual(prefix, by: { $0.utf8.elementsEqual($1.utf8) })
      else {
        foreign += 1
        continue
      }
      guard segments.count > prefix.count else { continue }
      let path: RemotePath
      do { path = try RemotePath(segments.dropFirst(prefix.count).joined(separator: "/")) } catch {
        unusableNames += 1
        continue
      }
      if properties["fileid"] != nil { tagsCoverFolders = true }
      let isFolder = properties["resourcetype"]?["collection"] != nil
      let byteCount = properties.text(of: "getcontentlength").flatMap { Int64($0) }
      guard isFolder || byteCount.map({ $0 >= 0 }) == true else {
        throw StorageError(.invalidAnswer, "the server does not say how large it is", path: path)
      }
      let object = StoredObject(
        path: path, byteCount: byteCount ?? 0,
        version: properties.text(of: "getetag").flatMap { $0.isEmpty ? nil : ObjectVersion(entityTag: $0) },
        modifiedAt: properties.text(of: "getlastmodified").flatMap { HTTPDate.milliseconds($0) })
      entries.append(WebDAVEntry(object: object, isFolder: isFolder))
    }
    // The answer includes the requested address itself. If no item is below the address, the contents are unknown.
    guard foreign == 0 || foreign < items.count else {
      throw StorageError(
        .invalidAnswer,
        "the server answers with other paths than it was asked for, such as \(items[0].text(of: "href") ?? ""): a proxy before it rewrites them; use an address of which the server knows the path"
      )
    }
  }

  /// True if a status line, `HTTP/1.1 404 Not Found`, says that something is not there.
  private static func isFailure(_ line: String?) -> Bool {
    guard let code = line?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else { return false }
    return !(200...299).contains(code)
  }

  /// The path of a reference, which some servers write with scheme and host.
  private static func path(of reference: String) -> String {
    guard let scheme = reference.range(of: "://") else { return reference }
    let rest = reference[scheme.upperBound...]
    return rest.firstIndex(of: "/").map { String(rest[$0...]) } ?? "/"
  }

  /// The decoded parts of a path; nil if it is malformed.
  private static func segments(_ path: String) -> [String]? {
    var segments: [String] = []
    for part in path.split(separator: "/") {
      guard let segment = PercentEncoding.decoded(part) else { return nil }
      segments.append(segment)
    }
    return segments
  }
}
