/// The files of an inbound folder in memory, on their way to the receiver.
final class DeliveredFiles: IncomingFileSource {
  /// Thrown to stop before a file.
  struct Stop: Error {}

  /// The files that are done: their transaction has been committed.
  private(set) var done: [(diff: SentDiff, outcome: DiffOutcome)] = []
  private let diffs: [SentDiff]
  /// Their positions in it, by their positions in the folder.
  private var places: [Int: Int] = [:]
  /// The places before which a transaction ends.
  private let boundaries: Set<Int>
  private let stop: Int?
  private let didCommit: () -> Void

  /// - Parameters:
  ///   - diffs: The files in the order in which they are applied.
  ///   - groups: The numbers of files that share a transaction, repeated; empty for as many as possible.
  ///   - stop: Before which file to stop; nil for none.
  ///   - didCommit: Called whenever a transaction has been committed.
  init(_ diffs: [SentDiff], groups: [Int], stoppingBefore stop: Int?, didCommit: @escaping () -> Void) {
    self.diffs = diffs
    self.stop = stop
    self.didCommit = didCommit
    var boundaries: Set<Int> = []
    var place = 0
    var group = 0
    while !groups.isEmpty, place < diffs.count {
      place += max(1, groups[group % groups.count])
      group += 1
      boundaries.insert(place)
    }
    self.boundaries = boundaries
  }

  var count: Int { diffs.count }

  func files(_ range: Range<Int>, streams: Bool) -> any IncomingFileReader {
    Reader(range.map { (diffs[$0].file, boundaries.contains($0)) })
  }

  func willReceive(_ index: Int) throws {
    if index == stop { throw Stop() }
  }

  func didReceive(_ files: [ReceivedFile]) {
    for file in files {
      if let place = places[file.index] {
        done[place].outcome = file.outcome
      } else {
        places[file.index] = done.count
        done.append((diffs[file.index], file.outcome))
      }
    }
    didCommit()
  }
}

/// Delivers files. The first of a group is not ready at once, which ends the previous transaction.
private final class Reader: IncomingFileReader {
  private let files: [(file: IncomingFile, beginsGroup: Bool)]
  private var place = 0
  private var hasWaited = false

  init(_ files: [(file: IncomingFile, beginsGroup: Bool)]) { self.files = files }

  func wait() { hasWaited = true }

  func next() -> IncomingFile? {
    guard files.indices.contains(place), hasWaited || !files[place].beginsGroup else { return nil }
    hasWaited = false
    place += 1
    return files[place - 1].file
  }

  func stop() {}
}

/// A sent diff: the file, opened and verified once for all receivers.
final class SentDiff {
  /// How steps call it.
  let number: Int
  let id: KSUID
  /// The replica that has sent it.
  let author: Int
  let file: IncomingFile
  let byteCount: Int

  init(_ number: Int, _ id: KSUID, by author: Int, bytes: [UInt8]) throws {
    self.number = number
    self.id = id
    self.author = author
    byteCount = bytes.count
    let input = try SpooledInput(PositionedInput(TemporaryBuffer(bytes)), named: DiffFileName.diff(id))
    file = IncomingFile(verifying: input)
  }
}

/// Ends a simulated process after a number of written rows. All later calls of it fail, too.
final class CrashPoint: RowEffectObserver {
  /// The process is dead.
  struct Crash: Error {}

  let wantsRows = false
  private var rowsLeft: Int

  init(afterRows rows: Int) { rowsLeft = rows }

  func didWrite(_ effect: RowEffect) throws {
    guard rowsLeft > 0 else { throw Crash() }
    rowsLeft -= 1
  }

  /// Rolled-back rows also count as written.
  var mark: Int { 0 }
  func rewind(to mark: Int) {}
}
