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
    let plain = FileRemoval.plainName(of: name) ?? name
    guard let id = DiffFileName.acceptanceID(plain) else { return nil }
    self.init(path: FileSystem.path(of: name, in: folder), name: plain, origin: .folder(folder), answer: id)
  }

  /// True if it is the answer to an invitation, by its first bytes. One that cannot be read is none: whoever reads it says why.
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

  /// Takes a file that was found in a folder; nil for names that are not ours.
  init?(in folder: String, name: String) {
    let plain = FileRemoval.plainName(of: name) ?? name
    guard Self.known(plain) != nil else { return nil }
    self.init(path: FileSystem.path(of: name, in: folder), name: plain, origin: .folder(folder))
  }

  /// Takes a file that was named by itself: any name will do, and then its first bytes tell what it is.
  ///
  /// - Parameter name: What it was called before an interrupted removal has left it there; nil for what it is called now.
  init(named path: String, before name: String? = nil) {
    self.init(path: path, name: name ?? FileSystem.name(of: path), origin: .path)
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

  /// True if it was found in a folder.
  var isFromFolder: Bool { if case .folder = origin { true } else { false } }

  /// How many bytes the file has; 0 when it is gone.
  var byteCount: Int64 { spooled?.byteCount ?? FileSystem.byteCount(of: path) }

  /// True if the name has to be the id of the manifest.
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

/// What kind of file arrives.
enum InboundKind: Sendable {
  case diff
  case changeset
  case encrypted

  /// What a file with these first bytes is; nil when it is none of ours.
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

/// What is to be applied, checked or looked into.
package enum InboundSource: Sendable {
  /// A file, or an inbound folder.
  case path(String)
  /// Bytes that came without a file.
  case spooled(SpooledInput)

  /// Files and folders. A folder that nothing has been put into yet may be missing: where a path's parent folder is there and
  /// its name is none of a file to be applied, it counts as an empty folder.
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
/// Where they are no file, they are kept: few in memory, many in a file without a name. Whatever ends the process, nothing stays
/// behind.
package final class SpooledInput: @unchecked Sendable {
  /// What the bytes are called, for people and for the ledger.
  package let name: String
  /// How many bytes there are.
  let byteCount: Int64
  // Complete before anybody else sees it, and only read from then on.
  private let bytes: any RandomAccessBytes

  /// Takes all bytes of an input; of one that begins as no file of ours does, only the first, by which it is refused.
  ///
  /// - Parameters:
  ///   - input: The bytes.
  ///   - name: What they are called.
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

  /// Takes a regular file that is open already.
  private init(opened file: PosixFile, named name: String) {
    self.name = name
    bytes = file
    byteCount = file.initialByteCount
  }

  /// Takes the standard input of the process, up to its end.
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

/// Everything that some paths stand for, in the order in which it is applied.
struct InboundListing: Sendable {
  /// The files: those with an id by id, then the others as they were named.
  let items: [InboundItem]
  /// The answers to invitations, by id.
  let answers: [InboundItem]
  /// How many other files the folders hold.
  let ignored: Int
  /// Those of them that are diff files or changesets under another name, by path.
  let misnamed: [String]

  /// Lists folders whole and takes files as they are.
  ///
  /// - Parameters:
  ///   - keys: What opens encrypted files.
  ///   - limits: How much files that are found in folders may ask for, but for those with some ids; nil for as much as any.
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

  /// What an interrupted removal has left of a file that was named by itself.
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
