import BuckiaStorage
import NIOConcurrencyHelpers

/// What a WebDAV server has said of its files and folders: saves asking again whether a folder exists, and whether what is to be deleted is a
/// file.
final class WebDAVKnowledge: Sendable {
  private struct State {
    var folders: Set<RemotePath> = []
    var hasRoot = false
    var objects: Set<RemotePath> = []
    var listings: [RemotePath: Listing] = [:]
  }

  /// What was in a folder when it had an entity tag.
  struct Listing {
    let tag: ObjectVersion
    let entries: [WebDAVEntry]
    let unusableNames: Int
  }

  /// How many files are remembered at most.
  private static let limit = 200_000
  /// How many folders are remembered with what is in them.
  private static let listingLimit = 10_000

  private let state = NIOLockedValueBox(State())

  func note(_ entries: [WebDAVEntry], in folder: RemotePath?) {
    noteFolder(folder)
    for entry in entries { note(entry) }
  }

  func note(_ entry: WebDAVEntry) {
    state.withLockedValue { state in
      if entry.isFolder {
        state.folders.insert(entry.path)
        state.objects.remove(entry.path)
      } else {
        if state.objects.count >= Self.limit { state.objects = [] }
        state.objects.insert(entry.path)
      }
    }
  }

  func noteFolder(_ folder: RemotePath?) {
    state.withLockedValue { state in
      if let folder { state.folders.insert(folder) }
      state.hasRoot = true
    }
  }

  func hasFolder(_ folder: RemotePath?) -> Bool {
    state.withLockedValue { state in folder.map { state.folders.contains($0) } ?? state.hasRoot }
  }

  /// What was in a folder, if it has the same entity tag still.
  func listing(of folder: RemotePath, tag: ObjectVersion?) -> Listing? {
    state.withLockedValue { state in state.listings[folder].flatMap { $0.tag == tag ? $0 : nil } }
  }

  func note(_ listing: Listing, of folder: RemotePath) {
    state.withLockedValue { state in
      if state.listings.count >= Self.listingLimit { state.listings = [:] }
      state.listings[folder] = listing
    }
  }

  func hasObject(_ path: RemotePath) -> Bool { state.withLockedValue { $0.objects.contains(path) } }

  func forget(_ path: RemotePath) {
    state.withLockedValue { state in
      _ = state.objects.remove(path)
    }
  }

  func forgetFolders() { state.withLockedValue { $0 = State() } }
}
