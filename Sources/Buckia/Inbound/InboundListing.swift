import BuckiaDiffFiles
import BuckiaKSUID

/// A file that is to be applied or checked.
struct InboundItem: Sendable {
  /// What kind of file it is.
  enum Kind: Sendable {
    case diff
    case changeset
    case encrypted
  }

  let path: String
  let kind: Kind
  /// The id in its name.
  let id: KSUID?
  /// Whether it was found in a folder, or named by itself.
  let isFromFolder: Bool

  private static let encryptedSuffix = ".bdiff.age"

  /// Takes a file that was found in a folder; nil for names that are not ours.
  init?(in folder: String, name: String) {
    path = FileSystem.path(of: name, in: folder)
    isFromFolder = true
    if let id = DiffFileName.diffID(name) {
      self.id = id
      kind = .diff
    } else if let id = DiffFileName.changesetID(name) {
      self.id = id
      kind = .changeset
    } else if name.hasSuffix(Self.encryptedSuffix), let id = KSUID(String(name.dropLast(Self.encryptedSuffix.count))) {
      self.id = id
      kind = .encrypted
    } else {
      return nil
    }
  }

  /// Takes a file that was named by itself: any name will do, and then its first bytes tell what it is.
  init(named path: String) {
    self.path = path
    isFromFolder = false
    if let id = DiffFileName.diffID(path) {
      self.id = id
      kind = .diff
    } else if let id = DiffFileName.changesetID(path) {
      self.id = id
      kind = .changeset
    } else {
      id = nil
      let beginning = FileSystem.beginning(of: path, count: 8)
      if beginning.elementsEqual("age-encr".utf8) {
        kind = .encrypted
      } else {
        kind = beginning.first == UInt8(ascii: "T") || beginning.first == UInt8(ascii: "P") ? .changeset : .diff
      }
    }
  }

  /// How many bytes the file has; 0 when it is gone.
  var byteCount: Int64 { FileSystem.byteCount(of: path) }

  /// The file's name without its folder.
  var name: String { FileSystem.name(of: path) }
}

/// Everything that some paths stand for, in the order in which it is applied.
struct InboundListing: Sendable {
  /// The files: those with an id by id, then the others as they were named.
  let items: [InboundItem]
  /// How many other files the folders hold.
  let ignored: Int
  /// Those of them that are diff files or changesets under another name, by path.
  let misnamed: [String]

  /// Lists folders whole and takes files as they are.
  ///
  /// - Throws: `BuckiaError` when a path does not exist or a folder cannot be read.
  init(_ paths: [String]) throws(BuckiaError) {
    var items: [InboundItem] = []
    var ignored = 0
    var misnamed: [String] = []
    for path in paths {
      guard FileSystem.exists(path) else {
        throw BuckiaError(.noSuchFile, "there is no such file or folder", path: path)
      }
      guard FileSystem.isFolder(path) else {
        items.append(InboundItem(named: path))
        continue
      }
      for name in try FileSystem.names(in: path) {
        if let item = InboundItem(in: path, name: name) {
          items.append(item)
          continue
        }
        ignored += 1
        let other = FileSystem.path(of: name, in: path)
        if FileKind.isDiff(other) { misnamed.append(other) }
      }
    }
    let named = items.filter { $0.id != nil }
      .sorted { first, second in
        guard let one = first.id, let other = second.id, one != other else { return first.path < second.path }
        return one < other
      }
    self.items = named + items.filter { $0.id == nil }
    self.ignored = ignored
    self.misnamed = misnamed.sorted()
  }
}
