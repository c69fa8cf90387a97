/// A file that is to be applied, checked or looked into.
struct InboundItem: Sendable {
  /// The origin of an item.
  enum Origin: Equatable {
    /// It was found in this folder.
    case folder(String)
    /// It was named by itself.
    case path
    /// It came as bytes.
    case bytes
  }

  /// The path, or the name of its bytes.
  let path: String
  /// The name without the folder. A file that an interrupted removal has left keeps its earlier name.
  let name: String
  /// The id in its name.
  let id: KSUID?
  let origin: Origin
  /// The kind by its name; nil if only the bytes can tell.
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

  /// Creates an item for an answer to an invitation in a folder; nil for other names.
  init?(answerIn folder: String, name: String) {
    let plain = FileRemoval.plainName(of: name) ?? name
    guard let id = DiffFileName.acceptanceID(plain) else { return nil }
    self.init(path: FileSystem.path(of: name, in: folder), name: plain, origin: .folder(folder), answer: id)
  }

  /// True if the file is the answer to an invitation, by its first bytes. False for a file that cannot be read; reading
  /// it later reports the reason.
  var isAnswer: Bool {
    guard id == nil else { return false }
    do throws(DiffFileError) {
      let label = Array(Acceptance.label.utf8)
      return try open().file.beginning(label.count) == label
    } catch {
      return false
    }
  }

  /// True if it is encrypted, by its name or its first bytes. One that cannot be read may be.
  var isEncrypted: Bool {
    if let namedKind { return namedKind == .encrypted }
    do throws(DiffFileError) { return try open().kind == .encrypted } catch { return true }
  }

  /// Creates an item for a file in a folder; nil for names of other files.
  init?(in folder: String, name: String) {
    let plain = FileRemoval.plainName(of: name) ?? name
    guard Self.known(plain) != nil else { return nil }
    self.init(path: FileSystem.path(of: name, in: folder), name: plain, origin: .folder(folder))
  }

  /// Creates an item for a named file. If the name has another form, the first bytes determine the kind.
  ///
  /// - Parameter name: The name before an interrupted removal; nil for the present name.
  init(named path: String, before name: String? = nil) {
    self.init(path: path, name: name ?? FileSystem.name(of: path), origin: .path)
  }

  /// Creates an item for bytes.
  init(_ spooled: SpooledInput) {
    self.init(path: spooled.name, name: spooled.name, origin: .bytes, spooled: spooled)
  }

  private static func known(_ name: String) -> (id: KSUID, kind: InboundKind)? {
    if let id = DiffFileName.diffID(name) { return (id, .diff) }
    if let id = DiffFileName.changesetID(name) { return (id, .changeset) }
    return DiffFileName.encryptedID(name).map { ($0, .encrypted) }
  }

  /// True if it was found in a folder.
  var isFromFolder: Bool { if case .folder = origin { true } else { false } }

  /// The size of the file in bytes; 0 if it is missing.
  var byteCount: Int64 { spooled?.byteCount ?? FileSystem.byteCount(of: path) }

  /// True if the name has to be the id of the manifest.
  var nameRule: DiffFile.NameRule { isFromFolder ? .mustMatch : .ifNamedByID }

  /// Opens the file. Its name no longer matters afterwards.
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

/// What kind of file arrives.
enum InboundKind: Sendable {
  case diff
  case changeset
  case encrypted

  /// The kind of a file with these first bytes; nil for other files.
  init?(beginning: some Collection<UInt8>) {
    if beginning.starts(with: "age-encr".utf8) || beginning.starts(with: "-----BEG".utf8) {
      self = .encrypted
    } else if let first = beginning.first, first == UInt8(ascii: "T") || first == UInt8(ascii: "P") {
      self = .changeset
    } else if beginning.starts(with: DiffFile.firstBytes) {
      self = .diff
    } else {
      return nil
    }
  }
}

/// A source of files to apply, check or show.
package enum InboundSource: Sendable {
  /// A file, or an inbound folder.
  case path(String)
  /// Bytes that came without a file.
  case spooled(SpooledInput)

  /// Files and folders. A folder that is still empty may be missing: if a path's parent folder exists and its name is
  /// not that of a file to apply, it counts as an empty folder.
  static func paths(_ paths: [String]) -> [InboundSource] {
    paths.filter { !isUnusedFolder($0) }.map { .path($0) }
  }

  private static func isUnusedFolder(_ path: String) -> Bool {
    let parent = FileSystem.folder(of: path)
    let name = FileSystem.name(of: path)
    guard case .nothing = FileSystem.kind(of: path), case .folder = FileSystem.kind(of: parent), !name.contains(".")
    else { return false }
    let names = (try? FileSystem.names(in: parent)) ?? []
    return !names.contains { FileRemoval.plainName(of: $0) == name }
  }
}

/// Bytes that came without a name, such as standard input, and can be read more than once.
///
/// Bytes that are not from a file are stored: a few in memory, many in an unnamed file, of which nothing remains
/// however the process ends.
package final class SpooledInput: @unchecked Sendable {
  /// The name of the bytes, for people and for the ledger.
  package let name: String
  /// The number of bytes.
  let byteCount: Int64
  // Complete before it is shared, and only read from then on.
  private let bytes: any RandomAccessBytes

  /// Stores all bytes of an input. Of an unknown kind of file, only the first are stored, by which it is refused.
  ///
  /// - Parameters:
  ///   - input: The bytes.
  ///   - name: The name of the bytes.
  /// - Throws: `BuckiaError` when they cannot be read or kept.
  package init(_ input: any ByteInput, named name: String) throws {
    self.name = name
    let spool = TemporaryBuffer()
    try BuckiaError.wrapping {
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: streamChunkBytes, alignment: 16)
      defer { buffer.deallocate() }
      var count = try input.readFully(into: buffer)
      let isKnown = InboundKind(beginning: buffer.prefix(count)) != nil
      while count > 0 {
        try spool.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        count = isKnown ? try input.read(into: buffer) : 0
      }
    }
    bytes = spool
    byteCount = Int64(spool.count)
  }

  /// Creates an input from an open regular file.
  private init(opened file: PosixFile, named name: String) {
    self.name = name
    bytes = file
    byteCount = file.initialByteCount
  }

  /// Reads the standard input of the process to its end.
  ///
  /// - Throws: `BuckiaError` when it cannot be read or kept.
  package static func standardInput() throws -> SpooledInput {
    let name = "standard-input"
    let file = try BuckiaError.wrapping { try PosixFile.standardInput() }
    guard file.identity == nil else { return SpooledInput(opened: file, named: name) }
    return try SpooledInput(file, named: name)
  }

  /// The bytes from the first on; each call begins again.
  func opened() -> OpenedFile { OpenedFile(PositionedInput(bytes), byteCount: byteCount, name: name) }
}

/// The files that some paths stand for, in the order of applying.
struct InboundListing: Sendable {
  /// The files: those with an id by id, then the others in the given order.
  let items: [InboundItem]
  /// The answers to invitations, by id.
  let answers: [InboundItem]
  /// The number of other files in the folders.
  let ignored: Int
  /// The paths of those that are diff files or changesets under another name.
  let misnamed: [String]

  /// Lists the contents of folders, and files.
  ///
  /// - Parameters:
  ///   - keys: What opens encrypted files.
  ///   - limits: The limits for files in folders, except those with some ids; nil for none.
  /// - Throws: `BuckiaError` when a path does not exist, or a folder cannot be read to its end.
  init(
    _ sources: [InboundSource], openedWith keys: ReaderKeys,
    limits: (found: DiffFileLimits, allowed: Set<KSUID>)? = nil
  ) throws(BuckiaError) {
    var items: [InboundItem] = []
    var answers: [InboundItem] = []
    var ignored = 0
    var misnamed: [String] = []
    for source in sources {
      guard case .path(let path) = source else {
        if case .spooled(let input) = source {
          let item = InboundItem(input)
          if item.isAnswer { answers.append(item) } else { items.append(item) }
        }
        continue
      }
      switch FileSystem.kind(of: path) {
      case .file:
        let item = InboundItem(named: path)
        if item.isAnswer { answers.append(item) } else { items.append(item) }
      case .folder:
        for name in try FileSystem.names(in: path) {
          if let item = InboundItem(in: path, name: name) {
            items.append(item)
            continue
          }
          if let answer = InboundItem(answerIn: path, name: name) {
            answers.append(answer)
            continue
          }
          ignored += 1
          let other = FileSystem.path(of: name, in: path)
          if FileKind.isDiff(other) { misnamed.append(other) }
        }
      case .nothing: items += try Self.left(of: path)
      case .unknown(let reason):
        throw BuckiaError(.unreadable, "it cannot be examined: \(reason)", path: path)
      }
    }
    let named = items.filter { $0.id != nil }
      .sorted { first, second in
        guard let one = first.id, let other = second.id, one != other else { return first.path < second.path }
        return one < other
      }
    self.items = (named + items.filter { $0.id == nil }).map { item in
      var item = item
      item.keys = keys
      if let limits, item.isFromFolder, item.id.map({ !limits.allowed.contains($0) }) ?? true {
        item.limits = limits.found
      }
      return item
    }
    self.answers = answers.sorted { $0.path < $1.path }
    self.ignored = ignored
    self.misnamed = misnamed.sorted()
  }

  /// The folders that were listed, once each.
  var folders: Set<String> {
    Set(items.compactMap { if case .folder(let folder) = $0.origin { folder } else { nil } })
  }

  /// The files that an interrupted removal of a named file has left.
  private static func left(of path: String) throws(BuckiaError) -> [InboundItem] {
    let folder = FileSystem.folder(of: path)
    let name = FileSystem.name(of: path)
    if case .folder = FileSystem.kind(of: folder) {
      let left = try FileSystem.names(in: folder).filter { FileRemoval.plainName(of: $0) == name }
      if !left.isEmpty {
        return left.map { InboundItem(named: FileSystem.path(of: $0, in: folder), before: name) }
      }
    }
    throw BuckiaError(.noSuchFile, "there is no such file or folder", path: path)
  }
}
