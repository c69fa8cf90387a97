import BuckiaFormat
import BuckiaLedger

/// Which files are removed when they are done: those of inbound folders, and others where that is wanted.
struct InboundRemoval: Sendable {
  /// Nothing is removed: it is only a rehearsal, or part of what the application may still roll back.
  static let none = InboundRemoval(removesFound: false, removesNamed: false, outgoingFolders: [])

  private let removesFound: Bool
  private let removesNamed: Bool
  /// Folders with files that were made from this very database: an outbox must not be emptied, whoever gives it by mistake.
  let outgoingFolders: Set<String>

  private init(removesFound: Bool, removesNamed: Bool, outgoingFolders: Set<String>) {
    self.removesFound = removesFound
    self.removesNamed = removesNamed
    self.outgoingFolders = outgoingFolders
  }

  /// What the options say of files, but for those in folders that hold outgoing ones.
  ///
  /// - Parameters:
  ///   - options: How to apply.
  ///   - items: All files.
  ///   - database: The database that they are applied to.
  ///   - replica: The replica that it is.
  ///   - home: Knows which files were made from it.
  init(
    _ options: ApplyOptions, of items: [InboundItem], appliedTo database: String, replica: ReplicaID?, home: BuckiaHome
  ) {
    removesFound = !options.keepsFiles
    removesNamed = options.removesNamedFiles
    let looksForMade = removesFound && items.contains(where: \.isFromFolder)
    let made = looksForMade ? home.outgoingIDs(of: database, replica: replica) : []
    var folders: Set<String> = []
    if !made.isEmpty {
      for item in items {
        if case .folder(let folder) = item.origin, let id = item.id, made.contains(id) { folders.insert(folder) }
      }
    }
    outgoingFolders = folders
  }

  /// Whether a file is removed that has come to this state.
  func removes(_ item: InboundItem, _ state: DiffState) -> Bool {
    // What is held is in the database.
    guard [.applied, .alreadyApplied, .held].contains(state) else { return false }
    return switch item.origin {
    // An empty changeset may be a file that has only begun to arrive.
    case .folder where item.namedKind == .changeset && item.byteCount == 0: false
    case .folder(let folder): removesFound && !outgoingFolders.contains(folder)
    case .path: removesNamed
    case .bytes: false
    }
  }
}
