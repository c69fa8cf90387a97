import BuckiaBytes
import BuckiaFormat
import BuckiaLedger
import Dispatch

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

/// Removes files that are done, in a thread of its own: ten thousand of them take as long as some of what is applied
/// meanwhile.
final class FileRemover: @unchecked Sendable {
  private let queue = DispatchQueue(label: "buckia.remover")
  // Touched on the queue only, which does one thing after the other.
  private var results: [(place: Int, outcome: FileRemoval.Outcome)] = []

  /// Begins to remove files, after those that were given before.
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

/// Removes a file that has been read, if it is still that file: whoever delivers files may have put another in its place.
struct FileRemoval: Sendable {
  /// What became of the file.
  enum Outcome: Equatable {
    /// It is gone, by us or by another process.
    case removed
    /// Another file has its place, and stays for the next time.
    case replaced
    /// It stays, for this reason.
    case failed(String)
  }

  /// Where it is.
  let path: String
  /// Its own name, without its folder.
  let name: String
  /// Which file was read.
  let identity: FileIdentity

  /// Removes the file.
  ///
  /// No call removes a file only if it is a certain one. So it is renamed first, to a name that nobody else uses, and looked
  /// at there; another file that has been caught in this way gets its name back. Whenever the process ends, each file is there
  /// under one name at least, and the next listing finds it.
  func run() -> Outcome {
    do throws(ByteStreamError) {
      guard let present = try FileIdentity.current(at: path) else { return .removed }
      guard present == identity else { return .replaced }
      guard let privateName = Self.privateName(for: name) else {
        return unlink(path) == 0 || errno == ENOENT ? .removed : .failed(lastError)
      }
      let moved = FileSystem.path(of: privateName, in: FileSystem.folder(of: path))
      guard rename(path, moved) == 0 else { return errno == ENOENT ? .removed : .failed(lastError) }
      guard let caught = try FileIdentity.current(at: moved) else { return .removed }
      guard caught == identity else {
        putBack(moved)
        return .replaced
      }
      return unlink(moved) == 0 || errno == ENOENT ? .removed : .failed(lastError)
    } catch {
      return .failed(error.message)
    }
  }

  /// Gives a file its name back, unless a third one has it by now: then it waits under the private one.
  func putBack(_ moved: String) {
    // A second name is made only where the name is free; renaming would replace.
    if link(moved, path) == 0 { unlink(moved) }
  }

  private var lastError: String { String(cString: strerror(errno)) }
}

/// The name that a file has while it is being removed: `.buckia-<random>.<its own name>`.
///
/// A file gets it in order to be looked at once more where nothing can take its place. If the process ends just then, the
/// file stays under this name, and whoever lists the folder next still takes it for what it is.
extension FileRemoval {
  private static let prefix = ".buckia-"
  /// The most bytes that a file's name has.
  private static let nameBytes = 255

  /// A new name for a file; nil where it is too long for one.
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
