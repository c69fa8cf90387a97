import BuckiaApply
import BuckiaBytes
import BuckiaFormat
import Dispatch

/// Opens files in a thread of its own, some steps ahead of the one that applies them.
///
/// Opening, checking and decompressing takes about as long as applying a small file. Only so much is opened ahead that
/// the memory of it stays small, whatever the files hold.
final class InboundReader: IncomingFileReader, @unchecked Sendable {
  /// How many places there are for files that wait.
  private static let places = 512
  /// How many bytes of changes take up one place.
  private static let bytesPerPlace = 8 << 10
  /// How many bytes an opened file takes in memory beside its changes and its documents.
  private static let bytesPerFile = 4 << 10
  /// How many times its size as text a document takes in memory.
  private static let documentFactor = 8
  /// How long whoever holds the write lock waits for the next file, in milliseconds.
  private static let patience = 20

  private let items: ArraySlice<InboundItem>
  private let streams: Bool
  private let takes: (String) -> Bool
  private let poll: () throws -> Void
  /// The lock guards `opened` and `isStopped`; everything else is set before the thread begins, or belongs to whoever takes
  /// the files. An opened file is handed from one thread to the other, and neither touches it in the other's time.
  private let lock = DispatchSemaphore(value: 1)
  private var opened: [IncomingFile] = []
  private var isStopped = false
  /// Files that were opened before those in `opened`, the next one last.
  private var nextFiles: [IncomingFile] = []
  /// Counts the places that are free, and the files that wait.
  private let free = DispatchSemaphore(value: places)
  private let waiting = DispatchSemaphore(value: 0)
  private let isDone = DispatchSemaphore(value: 0)

  /// Begins to open files.
  ///
  /// - Parameters:
  ///   - items: The files.
  ///   - streams: True if large files are handed on while the rest of them is being verified.
  ///   - takes: Says whether anything is taken from a sender; if not, changes are not unpacked.
  ///   - poll: Is called now and then while a file is being waited for. May throw to stop.
  init(
    _ items: ArraySlice<InboundItem>, streams: Bool, takes: @escaping (String) -> Bool,
    poll: @escaping () throws -> Void
  ) {
    self.items = items
    self.streams = streams
    self.takes = takes
    self.poll = poll
    // The semaphores are back at their first values before they go: libdispatch takes anything else for a mistake.
    DispatchQueue(label: "buckia.inbound").async { self.openAll() }
  }

  private func openAll() {
    defer { isDone.signal() }
    let cache = OpeningCache()
    for item in items {
      var goesOn = true
      if streams {
        IncomingFile.open(item, cache: cache, isWanted: isWanted, takes: takes) { goesOn = self.handOn($0) }
      } else {
        goesOn = handOn(IncomingFile(item, cache: cache, isWanted: isWanted, takes: takes))
      }
      guard goesOn else { return }
    }
  }

  private func isWanted() -> Bool {
    lock.wait()
    defer { lock.signal() }
    return !isStopped
  }

  /// Lets an opened file wait for the other thread.
  ///
  /// - Returns: false when the other thread wants no more.
  private func handOn(_ next: IncomingFile) -> Bool {
    for _ in 0..<Self.cost(of: next) { free.wait() }
    lock.wait()
    let goesOn = !isStopped
    if goesOn { opened.append(next) }
    lock.signal()
    guard goesOn else {
      next.abandon()
      for _ in 0..<Self.cost(of: next) { free.signal() }
      return false
    }
    waiting.signal()
    return true
  }

  private static func cost(of file: IncomingFile) -> Int {
    min(places, 1 + (file.byteCount + documentFactor * file.documentBytes) / bytesPerPlace)
  }

  /// How many bytes of memory an opened file takes about.
  static func memory(of file: IncomingFile) -> Int {
    bytesPerFile + min(file.byteCount, TemporaryBuffer.usualMemoryLimit) + documentFactor * file.documentBytes
  }

  func wait() throws {
    try poll()
    while waiting.wait(timeout: .now() + .milliseconds(100)) == .timedOut { try poll() }
    waiting.signal()
  }

  func next() -> IncomingFile? {
    guard waiting.wait(timeout: .now() + .milliseconds(Self.patience)) == .success else { return nil }
    if nextFiles.isEmpty {
      lock.wait()
      swap(&nextFiles, &opened)
      lock.signal()
      nextFiles.reverse()
    }
    guard let item = nextFiles.popLast() else { return nil }
    for _ in 0..<Self.cost(of: item) { free.signal() }
    return item
  }

  /// Stops opening and waits until the thread is done.
  func stop() {
    lock.wait()
    isStopped = true
    let left = nextFiles + opened
    opened = []
    lock.signal()
    nextFiles = []
    for item in left {
      item.abandon()
      waiting.wait()
      for _ in 0..<Self.cost(of: item) { free.signal() }
    }
    isDone.wait()
  }
}
