import BuckiaFormat
import BuckiaBytes

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
      let left = try FileSystem.names(in: folder).filter { RemovalName.plainName(of: $0) == name }
      if !left.isEmpty {
        return left.map { InboundItem(left: FileSystem.path(of: $0, in: folder), of: name) }
      }
    }
    throw BuckiaError(.noSuchFile, "there is no such file or folder", path: path)
  }
}
