import BuckiaApply
import BuckiaBytes

/// Files that have been opened and verified before any of them is applied, for whoever then keeps the write lock until the last:
/// nobody else has to wait for files to be read.
///
/// They are kept as far as there is room. What is refused takes none. A file for which there is no room is opened once more when
/// its turn comes.
final class VerifiedFiles {
  /// The most files that are kept in temporary files, each with a descriptor of its own.
  private static let spoolLimit = 64

  private var files: [IncomingFile?] = []
  private var room: Int
  private var spools = 0

  /// - Parameter byteLimit: How many bytes of memory the files may take.
  init(keeping byteLimit: Int) { room = byteLimit }

  /// Adds the next file; nil for one that is to be opened when its turn comes.
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

  /// The file at a place; nil where it has not been kept.
  subscript(index: Int) -> IncomingFile? { files[index] }

  /// The places that follow one, as far as none of their files has been kept.
  func unkept(from index: Int, in range: Range<Int>) -> Range<Int> {
    index..<(files[index..<range.upperBound].firstIndex { $0 != nil } ?? range.upperBound)
  }
}

/// Hands on files that have been verified before, and opens those once more that have not been kept.
final class VerifiedFileReader: IncomingFileReader {
  private let files: VerifiedFiles
  private var rest: Range<Int>
  private let open: (Range<Int>) -> any IncomingFileReader
  private var opened: (reader: any IncomingFileReader, end: Int)?

  /// - Parameters:
  ///   - files: The files.
  ///   - range: The places of those that are handed on.
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

  /// What reads the next file; nil where that has been kept.
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
