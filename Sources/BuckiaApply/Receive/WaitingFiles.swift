import BuckiaLedger

/// The files that wait for others of their stream, and what has come of the stream behind them: a snapshot makes the files before it
/// needless, and a diff that comes late under any name lets those go on that build on it.
struct WaitingFiles {
  /// A stream of somebody.
  private struct Stream: Hashable {
    let sender: String
    let stream: [UInt8]
  }

  /// By the place of the file in its source.
  private var waiting: [Int: (stream: Stream, sequence: Int64)] = [:]
  private var ready: Set<Int> = []

  /// Takes what became of a file.
  ///
  /// - Parameters:
  ///   - index: The place of the file in its source.
  ///   - outcome: What became of it.
  ///   - changes: Its changes; nil where it could not be opened.
  mutating func note(_ index: Int, _ outcome: DiffOutcome, of changes: IncomingChanges?) {
    guard let changes, let place = changes.place else { return }
    let stream = Stream(sender: changes.key.sender, stream: place.stream)
    switch outcome.state {
    case .waiting where [.missingPredecessor, .forkedStream, .forgottenDeletions].contains(outcome.code):
      waiting[index] = (stream, place.sequence)
    // Whose key was replaced: a snapshot that is signed with the new one settles it.
    case .rejected where outcome.code == .endedKey: waiting[index] = (stream, place.sequence)
    case .applied, .held:
      guard !waiting.isEmpty else { return }
      for (index, file) in waiting {
        let isReached = file.stream == stream && (place.isSnapshot || place.sequence < file.sequence)
        if isReached || file.stream.stream == place.replaces { ready.insert(index) }
      }
    default: return
    }
  }

  /// Takes the files that do not have to wait any more, as runs of neighbours; empty where there are none.
  mutating func takeReady() -> [Range<Int>] {
    var runs: [Range<Int>] = []
    for index in ready.sorted() {
      waiting[index] = nil
      if let last = runs.last, last.upperBound == index {
        runs[runs.endIndex - 1] = last.lowerBound..<(index + 1)
      } else {
        runs.append(index..<(index + 1))
      }
    }
    ready = []
    return runs
  }
}
