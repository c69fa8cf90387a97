/// The files of some folders and paths for the receiver: opened ahead in one thread, and removed in another when they
/// are done.
final class InboundFiles: IncomingFileSource {
  /// The outcomes of the files so far.
  private(set) var outcomes: [DiffOutcome] = []
  /// The indexes of the outcomes, by the places of the files.
  private var places: [Int: Int] = [:]

  private let items: [InboundItem]
  /// Says which files are removed when they are done; to be set before the first is.
  var removal = InboundRemoval.none
  /// Returns false for a sender whose files are refused. Set it before the first file is opened.
  var takes: (String) -> Bool = { _ in true }
  /// True if large files are handed on while the rest of them is being verified.
  private let streams: Bool
  private let handler: ApplyProgressHandler?
  private var progress = ApplyProgress()
  /// The size of all files before each file; empty if progress is not reported.
  private var bytesBefore: [Int64] = []
  /// The file that is being applied: its place, and how many changes it has.
  private var present = (place: 0, changes: 0)
  private let remover = FileRemover()
  /// The files that were verified ahead of applying; nil if each is verified when it is needed.
  private var verified: VerifiedFiles?

  /// - Parameters:
  ///   - items: The files in the order in which they are applied.
  ///   - streams: True if large files are handed on while the rest of them is being verified.
  ///   - progress: A progress handler; nil for none, and then sizes are not read.
  init(
    _ items: [InboundItem], streams: Bool, progress handler: ApplyProgressHandler?
  ) {
    self.items = items
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

  /// Begins after other outcomes.
  func begin(after outcomes: [DiffOutcome]) { self.outcomes = outcomes }

  /// Reports the number of applied changes of the present file.
  func didApply(rows: Int) throws {
    guard let handler else { return }
    progress.activity = .applying
    progress.rows = max(progress.rows, rows)
    if present.changes > 0, bytesBefore.indices.contains(present.place) {
      let before = bytesBefore[present.place]
      let end = present.place + 1 < bytesBefore.count ? bytesBefore[present.place + 1] : progress.byteCount
      let done = Double(end - before) * min(1, Double(progress.rows) / Double(present.changes))
      progress.bytes = max(progress.bytes, before + Int64(done))
    }
    try handler(progress)
  }

  var count: Int { items.count }

  /// Verifies all files, before the write lock is taken for all of them.
  ///
  /// - Parameter byteLimit: The most bytes of memory for them. Files that do not fit are read again.
  /// - Throws: What the progress handler throws to stop the work.
  func verifyAll(keeping byteLimit: Int) throws {
    let kept = VerifiedFiles(keeping: byteLimit)
    let reader = open(items.indices, streams: false)
    defer { reader.stop() }
    for item in items {
      progress.path = item.path
      try reader.wait()
      kept.add(reader.next())
    }
    verified = kept
  }

  func files(_ range: Range<Int>, streams: Bool) -> any IncomingFileReader {
    let reader: any IncomingFileReader =
      verified.map { VerifiedFileReader($0, range) { self.open($0, streams: false) } }
      ?? open(range, streams: streams && self.streams)
    guard handler != nil else { return reader }
    return WatchedReader(reader) { self.present.changes = $0.changeCount }
  }

  private func open(_ range: Range<Int>, streams: Bool) -> InboundReader {
    InboundReader(items[range], streams: streams, takes: takes) { try self.handler?(self.progress) }
  }

  func willReceive(_ index: Int) throws {
    guard let handler else { return }
    // The receiver asks for the file next: it waits until it is verified.
    progress.activity = verified == nil ? .verifying : .applying
    progress.path = items[index].path
    progress.rows = 0
    present = (index, 0)
    // A waiting file comes again, after later ones are done.
    progress.files = max(progress.files, index)
    progress.bytes = max(progress.bytes, bytesBefore[index])
    try handler(progress)
  }

  func didReceive(_ files: [ReceivedFile]) {
    var done: [(place: Int, removal: FileRemoval)] = []
    for file in files {
      let item = items[file.index]
      if removal.removes(item, file.outcome.state), let identity = file.identity {
        done.append(
          (places[file.index] ?? outcomes.count, FileRemoval(path: item.path, name: item.name, identity: identity)))
      }
      if let place = places[file.index] {
        outcomes[place] = file.outcome
      } else {
        places[file.index] = outcomes.count
        outcomes.append(file.outcome)
      }
    }
    remover.remove(done)
  }

  /// Waits until all finished files have been removed, and records which were and which were not.
  func finishRemoving() {
    for (place, result) in remover.finish() {
      let path = outcomes[place].path
      switch result {
      case .removed: outcomes[place].isRemoved = true
      case .replaced: outcomes[place].warnings.append(Warning(.replacedMeanwhile, path))
      case .failed(let reason): outcomes[place].warnings.append(Warning(.notRemoved, path, reason))
      }
    }
  }
}

/// Passes files on, and reports each.
private final class WatchedReader: IncomingFileReader {
  private let reader: any IncomingFileReader
  private let tell: (IncomingFile) -> Void

  init(_ reader: any IncomingFileReader, telling tell: @escaping (IncomingFile) -> Void) {
    self.reader = reader
    self.tell = tell
  }

  func wait() throws { try reader.wait() }
  func stop() { reader.stop() }

  func next() -> IncomingFile? {
    let file = reader.next()
    if let file { tell(file) }
    return file
  }
}

/// Files that are opened and verified before any of them is applied, because the write lock is then held until the
/// last, and no other writer has to wait for files to be read.
///
/// Files are kept as far as there is room. Refused files take none. A file without room is opened again when its turn
/// comes.
final class VerifiedFiles {
  /// The most files that are kept in temporary files, each with a descriptor of its own.
  private static let spoolLimit = 64

  private var files: [IncomingFile?] = []
  private var room: Int
  private var spools = 0

  /// - Parameter byteLimit: The most bytes of memory for the files.
  init(keeping byteLimit: Int) { room = byteLimit }

  /// Adds the next file; nil for one that is opened when its turn comes.
  func add(_ file: IncomingFile?) {
    guard let file else { return files.append(nil) }
    let isSpooled = file.byteCount > TemporaryBuffer.usualMemoryLimit
    let cost = InboundReader.memory(of: file)
    let fits = cost <= room && (!isSpooled || spools < Self.spoolLimit)
    files.append(fits ? file : nil)
    guard fits else { return }
    room -= cost
    if isSpooled { spools += 1 }
  }

  /// The file at a place; nil if it was not kept.
  subscript(index: Int) -> IncomingFile? { files[index] }

  /// The places that follow one, as far as none of their files has been kept.
  func unkept(from index: Int, in range: Range<Int>) -> Range<Int> {
    index..<(files[index..<range.upperBound].firstIndex { $0 != nil } ?? range.upperBound)
  }
}

/// Returns files that were verified before, and opens again those that were not kept.
final class VerifiedFileReader: IncomingFileReader {
  private let files: VerifiedFiles
  private var rest: Range<Int>
  private let open: (Range<Int>) -> any IncomingFileReader
  private var opened: (reader: any IncomingFileReader, end: Int)?

  /// - Parameters:
  ///   - files: The files.
  ///   - range: The places of the files to return.
  ///   - open: Begins to open some files once more.
  init(_ files: VerifiedFiles, _ range: Range<Int>, opening open: @escaping (Range<Int>) -> any IncomingFileReader) {
    self.files = files
    self.open = open
    rest = range
  }

  func wait() throws { try openedReader()?.wait() }

  func next() -> IncomingFile? {
    guard let index = rest.first else { return nil }
    guard let file = files[index] ?? openedReader()?.next() else { return nil }
    rest.removeFirst()
    if let opened, opened.end == rest.lowerBound { stop() }
    return file
  }

  /// The reader of the next file; nil if the file was kept.
  private func openedReader() -> (any IncomingFileReader)? {
    guard let index = rest.first, files[index] == nil else { return nil }
    if let opened { return opened.reader }
    let range = files.unkept(from: index, in: rest)
    let reader = open(range)
    opened = (reader, range.upperBound)
    return reader
  }

  func stop() {
    opened?.reader.stop()
    opened = nil
  }
}
