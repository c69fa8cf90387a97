import BuckiaBytes
import BuckiaFormat

/// A file that is to be applied, checked or looked into.
struct InboundItem: Sendable {
  /// What it is given by.
  enum Origin: Equatable {
    /// It was found in this folder.
    case folder(String)
    /// It was named by itself.
    case path
    /// It came as bytes.
    case bytes
  }

  /// Where it is, or what its bytes are called.
  let path: String
  /// Its name without its folder. What an interrupted removal has left is still called what it was before.
  let name: String
  /// The id in its name.
  let id: KSUID?
  let origin: Origin
  /// What its name says that it is; nil when only its bytes can tell.
  let namedKind: InboundKind?
  /// What opens it if it is encrypted.
  var keys = ReaderKeys.none
  /// How much it may ask for.
  var limits = DiffFileLimits()
  private let spooled: SpooledInput?

  private init(
    path: String, name: String, origin: Origin, spooled: SpooledInput? = nil, answer: KSUID? = nil
  ) {
    self.path = path
    self.name = name
    self.origin = origin
    self.spooled = spooled
    let known = Self.known(name)
    id = answer ?? known?.id
    namedKind = known?.kind
  }

  /// Takes the answer to an invitation that was found in a folder; nil for other names.
  init?(answerIn folder: String, name: String) {
    let plain = RemovalName.plainName(of: name) ?? name
    guard let id = DiffFileName.acceptanceID(plain) else { return nil }
    self.init(path: FileSystem.path(of: name, in: folder), name: plain, origin: .folder(folder), answer: id)
  }

  /// Whether it is the answer to an invitation, by its first bytes. One that cannot be read is none: whoever reads it says why.
  var isAnswer: Bool {
    guard id == nil else { return false }
    do throws(DiffFileError) {
      let label = Array(Acceptance.label.utf8)
      return try open().file.beginning(label.count) == label
    } catch {
      return false
    }
  }

  /// Whether it is encrypted, by its name or its first bytes. One that cannot be read may be.
  var isEncrypted: Bool {
    if let namedKind { return namedKind == .encrypted }
    do throws(DiffFileError) { return try open().kind == .encrypted } catch { return true }
  }

  /// Takes a file that was found in a folder; nil for names that are not ours.
  init?(in folder: String, name: String) {
    let plain = RemovalName.plainName(of: name) ?? name
    guard Self.known(plain) != nil else { return nil }
    self.init(path: FileSystem.path(of: name, in: folder), name: plain, origin: .folder(folder))
  }

  /// Takes a file that was named by itself: any name will do, and then its first bytes tell what it is.
  init(named path: String) {
    self.init(path: path, name: FileSystem.name(of: path), origin: .path)
  }

  /// Takes what an interrupted removal has left of a file that was named by itself.
  init(left path: String, of name: String) {
    self.init(path: path, name: name, origin: .path)
  }

  /// Takes bytes.
  init(_ spooled: SpooledInput) {
    self.init(path: spooled.name, name: spooled.name, origin: .bytes, spooled: spooled)
  }

  private static func known(_ name: String) -> (id: KSUID, kind: InboundKind)? {
    if let id = DiffFileName.diffID(name) { return (id, .diff) }
    if let id = DiffFileName.changesetID(name) { return (id, .changeset) }
    return DiffFileName.encryptedID(name).map { ($0, .encrypted) }
  }

  /// Whether it was found in a folder.
  var isFromFolder: Bool { if case .folder = origin { true } else { false } }

  /// How many bytes the file has; 0 when it is gone.
  var byteCount: Int64 { spooled?.byteCount ?? FileSystem.byteCount(of: path) }

  /// Whether the name has to be the id of the manifest.
  var nameRule: DiffFile.NameRule { isFromFolder ? .mustMatch : .ifNamedByID }

  /// Opens the file; what it is called does not matter any more then.
  ///
  /// - Throws: `DiffFileError` when it cannot be opened, or its first bytes cannot be read.
  func open() throws(DiffFileError) -> (file: OpenedFile, kind: InboundKind) {
    let file = if let spooled { spooled.opened() } else { try OpenedFile(at: path, as: name) }
    if let namedKind { return (file, namedKind) }
    let beginning = try file.beginning(8)
    // A changeset without changes is an empty file.
    if beginning.isEmpty, !name.hasSuffix(DiffFileName.diffSuffix), !name.hasSuffix(DiffFileName.encryptedSuffix) {
      return (file, .changeset)
    }
    return (file, InboundKind(beginning: beginning) ?? .diff)
  }
}
