import BuckiaApply
import BuckiaDiffFiles
import BuckiaLedger

/// The files of some folders and paths on their way to the receiver: opened ahead in a thread of their own, and removed in
/// another when they are done.
final class InboundFiles: IncomingFileSource {
  /// What became of the files so far.
  private(set) var outcomes: [DiffOutcome] = []

  private let items: [InboundItem]
  /// Says which files are removed when they are done; nil for none.
  private let removal: ApplyOptions?
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
  ///   - removal: Says which files are removed when they are done; nil for none.
  ///   - streams: Whether large files are handed on while the rest of them is being verified.
  ///   - progress: Is told how far the work has come; nil for none, and then no file is asked for its size.
  init(
    _ items: [InboundItem], removing removal: ApplyOptions?, streams: Bool,
    progress handler: ApplyProgressHandler?
  ) {
    self.items = items
    self.removal = removal
    self.streams = streams
    self.handler = handler
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
    progress.activity = .applying
    progress.rows = max(progress.rows, rows)
    try handler(progress)
  }

  var count: Int { items.count }

  func start(at index: Int) { reader = InboundReader(items, from: index, streams: streams) }

  func next() throws -> IncomingFile {
    guard let reader else { return try reopen(0) }
    return try reader.next { try handler?(progress) }
  }

  func stop() {
    reader?.stop()
    reader = nil
  }

  func reopen(_ index: Int) throws -> IncomingFile {
    try polling({ [handler, progress] in try handler?(progress) }) { isWanted in
      IncomingFile(items[index], cache: cache, isWanted: isWanted)
    }
  }

  func willReceive(_ index: Int) throws {
    guard let handler else { return }
    // The receiver asks for the file next: it waits until it is verified.
    progress.activity = .verifying
    progress.path = items[index].path
    progress.files = index
    progress.rows = 0
    progress.bytes = bytesBefore[index]
    try handler(progress)
  }

  func didReceive(_ received: [(index: Int, outcome: DiffOutcome)]) {
    var done: [(place: Int, path: String)] = []
    for (index, outcome) in received {
      if isToBeRemoved(items[index], outcome.state) { done.append((outcomes.count, items[index].path)) }
      outcomes.append(outcome)
    }
    remover.remove(done)
  }

  /// Waits until all files that are done have been removed, and notes which could not be.
  func finishRemoving() {
    for failed in remover.finish() { outcomes[failed.place].warnings.append(failed.remark) }
  }

  private func isToBeRemoved(_ item: InboundItem, _ state: DiffState) -> Bool {
    // What is held is in the database.
    let isDone = [.applied, .alreadyApplied, .held].contains(state)
    guard let removal, isDone else { return false }
    return item.isFromFolder ? !removal.keepsFiles : removal.removesNamedFiles
  }
}
