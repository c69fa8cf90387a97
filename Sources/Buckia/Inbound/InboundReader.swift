import BuckiaDiffFiles
import Dispatch

/// A file that has been opened and checked, or why it could not be.
final class OpenedItem {
  /// What came of opening it.
  enum Content {
    case diff(Box<DiffFile>)
    /// A large file, of which the changes are still being checked.
    case arriving(StreamedDiffFile)
    case changeset(Box<RawChangeset>)
    /// Nobody has looked into it: it is encrypted.
    case encrypted
    case failure(any Error)
  }

  /// A box, because what cannot be copied cannot be in a collection.
  final class Box<Value: ~Copyable> {
    let value: Value
    init(_ value: consuming Value) { self.value = value }
  }

  let item: InboundItem
  let content: Content

  private init(_ item: InboundItem, _ content: Content) {
    self.item = item
    self.content = content
  }

  private static func nameRule(_ item: InboundItem) -> DiffFile.NameRule {
    item.isFromFolder ? .mustMatch : .ifNamedByID
  }

  /// Opens and checks a file.
  ///
  /// - Parameter cache: What is kept of the files before it.
  init(_ item: InboundItem, cache: OpeningCache) {
    self.item = item
    do throws(DiffFileError) {
      switch item.kind {
      case .encrypted: content = .encrypted
      case .diff:
        content = .diff(Box(try DiffFile.verified(at: item.path, name: Self.nameRule(item), cache: cache)))
      case .changeset: content = .changeset(Box(try RawChangeset.verified(at: item.path)))
      }
    } catch {
      content = .failure(error)
    }
  }

  /// Opens and checks a file, and hands it on once: a large one as soon as its changes begin to arrive.
  static func open(_ item: InboundItem, cache: OpeningCache, _ handOn: @escaping (OpenedItem) -> Void) {
    guard item.kind == .diff else { return handOn(OpenedItem(item, cache: cache)) }
    do throws(DiffFileError) {
      let file = try DiffFile.verified(at: item.path, name: nameRule(item), cache: cache) { arriving in
        handOn(OpenedItem(item, .arriving(arriving)))
      }
      if let file { handOn(OpenedItem(item, .diff(Box(file)))) }
    } catch {
      handOn(OpenedItem(item, .failure(error)))
    }
  }

  /// How many bytes of changes it holds in memory or, on their way, is to get.
  var byteCount: Int {
    switch content {
    case .diff(let box): box.value.changeset.count
    case .arriving(let diff): diff.changeset.expected
    case .changeset(let box): box.value.changeset.count
    case .encrypted, .failure: 0
    }
  }

  /// Says that nobody wants it any more.
  func abandon() {
    if case .arriving(let diff) = content { diff.feed.abandon() }
  }
}

/// Opens files in a thread of its own, some steps ahead of the one that applies them.
///
/// Opening, checking and decompressing takes about as long as applying a small file. Only so much is opened ahead that
/// the memory of it stays small, whatever the files hold.
final class InboundReader: @unchecked Sendable {
  /// How many places there are for files that wait.
  private static let places = 512
  /// How many bytes of changes take up one place.
  private static let bytesPerPlace = 8 << 10

  private let items: [InboundItem]
  private let first: Int
  /// The lock guards `opened` and `isStopped`; everything else is set before the thread begins. An opened file is handed
  /// from one thread to the other, and neither touches it in the other's time.
  private let lock = DispatchSemaphore(value: 1)
  private var opened: [OpenedItem] = []
  private var isStopped = false
  /// Counts the places that are free, and the files that wait.
  private let free = DispatchSemaphore(value: places)
  private let waiting = DispatchSemaphore(value: 0)
  private let isDone = DispatchSemaphore(value: 0)

  /// Begins to open files.
  ///
  /// - Parameters:
  ///   - items: All files.
  ///   - first: Where to begin.
  init(_ items: [InboundItem], from first: Int) {
    self.items = items
    self.first = first
    // The semaphores are back at their first values before they go: libdispatch takes anything else for a mistake.
    DispatchQueue(label: "buckia.inbound").async { self.openAll() }
  }

  private func openAll() {
    defer { isDone.signal() }
    let cache = OpeningCache()
    for item in items[first...] {
      var goesOn = true
      OpenedItem.open(item, cache: cache) { goesOn = self.handOn($0) }
      guard goesOn else { return }
    }
  }

  /// Lets an opened file wait for the other thread.
  ///
  /// - Returns: false when the other thread wants no more.
  private func handOn(_ next: OpenedItem) -> Bool {
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

  private static func cost(of item: OpenedItem) -> Int { min(places, 1 + item.byteCount / bytesPerPlace) }

  /// The next file; must be asked for no more often than there are files.
  func next() -> OpenedItem {
    waiting.wait()
    lock.wait()
    let item = opened.removeFirst()
    lock.signal()
    for _ in 0..<Self.cost(of: item) { free.signal() }
    return item
  }

  /// Stops opening and waits until the thread is done. To be called in any case, once.
  func stop() {
    lock.wait()
    isStopped = true
    let left = opened
    opened = []
    lock.signal()
    for item in left {
      item.abandon()
      waiting.wait()
      for _ in 0..<Self.cost(of: item) { free.signal() }
    }
    isDone.wait()
  }
}
