import BuckiaApply
import BuckiaDiffFiles
import BuckiaLedger

/// The files of some folders and paths on their way to the receiver: opened ahead in a thread of their own, and removed in
/// another when they are done.
final class InboundFiles: IncomingFileSource {
  /// What became of the files so far.
  private(set) var outcomes: [DiffOutcome]

  private let items: [InboundItem]
  private let options: ApplyOptions
  private let progress: (String, Int, Int) throws -> Void
  private let remover = FileRemover()
  private var reader: InboundReader?
  private let cache = OpeningCache()

  /// - Parameters:
  ///   - items: The files in the order in which they are applied.
  ///   - outcomes: Outcomes that come before theirs.
  ///   - options: Whether files that are done are removed.
  ///   - progress: Is told about each file before it is applied: its path, its number from 1, and how many there are.
  init(
    _ items: [InboundItem], after outcomes: [DiffOutcome], options: ApplyOptions,
    progress: @escaping (String, Int, Int) throws -> Void
  ) {
    self.items = items
    self.outcomes = outcomes
    self.options = options
    self.progress = progress
  }

  var count: Int { items.count }

  func start(at index: Int) { reader = InboundReader(items, from: index) }

  func next() -> IncomingFile {
    guard let reader else { return reopen(0) }
    return reader.next()
  }

  func stop() {
    reader?.stop()
    reader = nil
  }

  func reopen(_ index: Int) -> IncomingFile { IncomingFile(items[index], cache: cache) }

  func willReceive(_ index: Int) throws { try progress(items[index].path, index + 1, items.count) }

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
    for failed in remover.finish() { outcomes[failed.place].warnings.append(failed.message) }
  }

  private func isToBeRemoved(_ item: InboundItem, _ state: DiffState) -> Bool {
    // What is held is in the database.
    let isDone = [.applied, .alreadyApplied, .held].contains(state)
    return isDone && !options.isDryRun && (item.isFromFolder ? !options.keepsFiles : options.removesNamedFiles)
  }
}
