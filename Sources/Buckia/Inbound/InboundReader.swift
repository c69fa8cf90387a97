import Dispatch

/// Opens files in a thread of its own, some steps ahead of the one that applies them.
///
/// Opening, checking and decompressing takes about as long as applying a small file. The number of files opened ahead
/// is limited, which keeps memory small whatever the files contain.
final class InboundReader: IncomingFileReader, @unchecked Sendable {
  /// The number of places for waiting files.
  private static let places = 512
  /// The number of bytes of changes that occupy one place.
  private static let bytesPerPlace = 8 << 10
  /// The size of an opened file in memory beside its changes and its documents, in bytes.
  private static let bytesPerFile = 4 << 10
  /// The size of a document in memory, as a multiple of its text.
  private static let documentFactor = 8
  /// How long the holder of the write lock waits for the next file, in milliseconds.
  private static let patience = 20

  private let items: ArraySlice<InboundItem>
  private let streams: Bool
  private let takes: (String) -> Bool
  private let poll: () throws -> Void
  /// The lock guards `opened` and `isStopped`; everything else is set before the thread begins, or belongs to the
  /// consumer of the files. An opened file passes from one thread to the other, and only one of them accesses it at a
  /// time.
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
  ///   - takes: Returns false for a sender whose files are refused; their changes are not unpacked.
  ///   - poll: Called now and then while a file is being waited for. May throw to stop.
  init(
    _ items: ArraySlice<InboundItem>, streams: Bool, takes: @escaping (String) -> Bool,
    poll: @escaping () throws -> Void
  ) {
    self.items = items
    self.streams = streams
    self.takes = takes
    self.poll = poll
    // The semaphores must have their first values when they are released, because libdispatch traps otherwise.
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

  /// About the size of an opened file in memory, in bytes.
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
