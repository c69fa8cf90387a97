import Dispatch

/// Decides which finished files are removed: those of inbound folders, and named ones if that is wanted.
struct InboundRemoval: Sendable {
  /// Removes nothing: for a dry run, and inside a transaction that the application may still roll back.
  static let none = InboundRemoval(removesFound: false, removesNamed: false, outgoingFolders: [])

  private let removesFound: Bool
  private let removesNamed: Bool
  /// Folders with files that were made from this database: an outbox that was given by mistake must not be emptied.
  let outgoingFolders: Set<String>

  private init(removesFound: Bool, removesNamed: Bool, outgoingFolders: Set<String>) {
    self.removesFound = removesFound
    self.removesNamed = removesNamed
    self.outgoingFolders = outgoingFolders
  }

  /// The removal by the options, except in folders with outgoing files.
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

  /// True if a file with this state is removed.
  func removes(_ item: InboundItem, _ state: DiffState) -> Bool {
    // Held parts are in the database.
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

/// Removes finished files in another thread, because removing ten thousand files takes long.
final class FileRemover: @unchecked Sendable {
  private let queue = DispatchQueue(label: "buckia.remover")
  // Touched on the queue only, which does one thing after the other.
  private var results: [(place: Int, outcome: FileRemoval.Outcome)] = []

  /// Begins to remove files, after those of earlier calls.
  ///
  /// - Parameter files: The files, each with the place of its outcome in the report.
  func remove(_ files: [(place: Int, removal: FileRemoval)]) {
    guard !files.isEmpty else { return }
    queue.async { for file in files { self.results.append((file.place, file.removal.run())) } }
  }

  /// Waits until all files have been seen to.
  ///
  /// - Returns: What became of them.
  func finish() -> [(place: Int, outcome: FileRemoval.Outcome)] { queue.sync { results } }
}

/// The name that a file has while it is being removed: `.buckia-<random>.<its own name>`.
///
/// A file gets a private name to be examined where no other file can take its place. If the process ends just then, the
/// file stays under this name, and the next listing of the folder recognizes it.
extension FileRemoval {
  private static let prefix = ".buckia-"
  /// The most bytes that a file's name has.
  private static let nameBytes = 255

  /// A private name for a file; nil if it would be too long.
  static func privateName(for plainName: String) -> String? {
    let name = "\(prefix)\(String(UInt64.random(in: 0...UInt64.max), radix: 36)).\(plainName)"
    return name.utf8.count <= nameBytes ? name : nil
  }

  /// The file's own name; nil for names of any other form.
  static func plainName(of name: String) -> String? {
    guard name.utf8.starts(with: prefix.utf8) else { return nil }
    let rest = name.utf8.dropFirst(prefix.utf8.count)
    guard let dot = rest.firstIndex(of: UInt8(ascii: ".")), dot > rest.startIndex else { return nil }
    return String(Substring(rest[rest.index(after: dot)...]))
  }
}
