import BuckiaApply
import BuckiaByteStreams
import BuckiaDiffFiles
import BuckiaLedger
import BuckiaSchemaPlans

/// The files of some folders and paths on their way to the receiver: opened ahead in a thread of their own, and removed in
/// another when they are done.
final class InboundFiles: IncomingFileSource {
  /// What became of the files so far.
  private(set) var outcomes: [DiffOutcome] = []

  private let items: [InboundItem]
  /// Says which files are removed when they are done.
  private let removal: InboundRemoval
  /// For each file which one was read last; files can be opened more than once.
  private var identities: [FileIdentity?]
  /// The place of the file that is handed out next.
  private var current = 0
  /// Whether large files are handed on while the rest of them is being verified.
  private let streams: Bool
  private let handler: ApplyProgressHandler?
  private var progress = ApplyProgress()
  /// For each file how many bytes all before it have; empty where progress is not told.
  private var bytesBefore: [Int64] = []
  private let remover = FileRemover()
  private var reader: InboundReader?
  private let cache = OpeningCache()

  /// - Parameters:
  ///   - items: The files in the order in which they are applied.
  ///   - removal: Says which files are removed when they are done.
  ///   - streams: Whether large files are handed on while the rest of them is being verified.
  ///   - progress: Is told how far the work has come; nil for none, and then no file is asked for its size.
  init(
    _ items: [InboundItem], removing removal: InboundRemoval, streams: Bool,
    progress handler: ApplyProgressHandler?
  ) {
    self.items = items
    self.removal = removal
    self.streams = streams
    self.handler = handler
    identities = [FileIdentity?](repeating: nil, count: items.count)
    progress.fileCount = items.count
    guard handler != nil else { return }
    bytesBefore.reserveCapacity(items.count)
    for item in items {
      bytesBefore.append(progress.byteCount)
      progress.byteCount += item.byteCount
    }
  }

  /// Takes the outcomes that come before those of the files.
  func begin(after outcomes: [DiffOutcome]) { self.outcomes = outcomes }

  /// So many changes of the present file have been applied.
  func didApply(rows: Int) throws {
    guard let handler else { return }
    progress.rows = max(progress.rows, rows)
    try handler(progress)
  }

  var count: Int { items.count }

  func start(at index: Int) { reader = InboundReader(items, from: index, streams: streams) }

  func next() throws -> IncomingFile {
    guard let reader else { return try reopen(current) }
    let file = try reader.next { try handler?(progress) }
    identities[current] = file.identity
    return file
  }

  func stop() {
    reader?.stop()
    reader = nil
  }

  func reopen(_ index: Int) throws -> IncomingFile {
    let file = try polling({ [handler, progress] in try handler?(progress) }) { isWanted in
      IncomingFile(items[index], cache: cache, isWanted: isWanted)
    }
    identities[index] = file.identity
    return file
  }

  func willReceive(_ index: Int) throws {
    current = index
    guard let handler else { return }
    progress.path = items[index].path
    progress.files = index
    progress.rows = 0
    progress.bytes = bytesBefore[index]
    try handler(progress)
  }

  func didReceive(_ received: [(index: Int, outcome: DiffOutcome)]) {
    var done: [(place: Int, removal: FileRemoval)] = []
    for (index, outcome) in received {
      let item = items[index]
      if removal.removes(item, outcome.state), let identity = identities[index] {
        done.append((outcomes.count, FileRemoval(path: item.path, name: item.name, identity: identity)))
      }
      outcomes.append(outcome)
    }
    remover.remove(done)
  }

  /// Waits until all files that are done have been seen to, and notes which are gone and which are not.
  func finishRemoving() {
    for (place, result) in remover.finish() {
      let path = outcomes[place].path
      switch result {
      case .removed: outcomes[place].isRemoved = true
      case .replaced: outcomes[place].warnings.append(Remark(.replacedMeanwhile, path))
      case .failed(let reason): outcomes[place].warnings.append(Remark(.notRemoved, path, reason))
      }
    }
  }
}
