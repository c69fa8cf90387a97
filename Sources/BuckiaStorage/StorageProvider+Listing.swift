/// All objects of a folder.
public struct StorageListing: Sendable, Equatable {
  /// The objects, by name, each once.
  public var objects: [StoredObject]
  /// How many more there are whose names are no ``RemotePath``.
  public var unusableNames: Int
  /// True if the storage says that there is no such folder, and not only that nothing is in it.
  public var isMissing = false
}

extension StorageListing {
  /// How many objects a listing has at most, and as many pages and folders: what goes on is a server at fault, and not a folder.
  package static let limit = 500_000

  /// The error of a listing that does not end.
  package static func endless(of storage: String) -> StorageError {
    StorageError(
      .invalidAnswer,
      "\(storage) lists more than \(limit) objects or folders and does not end; nothing was done with it. Check the address, or keep fewer files there"
    )
  }
}

extension StorageProvider {
  /// Lists all objects of a folder, page by page.
  ///
  /// - Parameters:
  ///   - folder: The folder; nil for everything.
  ///   - after: Only names that come after this one.
  ///   - pageSize: How many objects to ask for at once; nil for as many as the storage likes.
  /// - Returns: The objects by name, even if the storage lists them in another order or some of them twice.
  /// - Throws: `StorageError` with `invalidAnswer` when the listing does not come to an end or holds what was not asked for; what the
  ///   storage throws.
  public func listAll(
    _ folder: RemotePath?, after: RemotePath? = nil, pageSize: Int? = nil
  ) async throws -> StorageListing {
    var listing = StorageListing(objects: [], unusableNames: 0)
    var request = ListRequest(folder: folder, after: after, limit: pageSize)
    var seen: Set<String> = []
    var isSorted = true
    while true {
      let page = try await list(request)
      listing.unusableNames += page.unusableNames
      listing.isMissing = listing.isMissing || page.isMissing
      for object in page.objects {
        if let folder, !object.path.isIn(folder) {
          throw StorageError(.invalidAnswer, "\(name) lists \(object.path), which is not in \(folder)")
        }
        if let after, object.path <= after { continue }
        if let last = listing.objects.last, object.path <= last.path { isSorted = false }
        listing.objects.append(object)
      }
      guard let continuation = page.continuation else { break }
      guard listing.objects.count < StorageListing.limit, seen.count < StorageListing.limit else {
        throw StorageListing.endless(of: name)
      }
      guard seen.insert(continuation).inserted else {
        throw StorageError(.invalidAnswer, "\(name) lists the same page again and again; nothing was done with it")
      }
      request.continuation = continuation
    }
    if !isSorted { listing.objects = Self.sorted(listing.objects) }
    return listing
  }

  /// The objects by name, each once.
  private static func sorted(_ objects: [StoredObject]) -> [StoredObject] {
    var known: Set<RemotePath> = []
    // Of an object that was written while it was listed, the later page knows more.
    return objects.reversed().filter { known.insert($0.path).inserted }.sorted { $0.path < $1.path }
  }
}
