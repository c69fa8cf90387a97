import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas

/// A file for the receiver: opened and verified, or the reason why it could not be.
package struct IncomingFile {
  /// What opening the file came to.
  package enum Content {
    /// Its changes, verified.
    case verified(IncomingChanges)
    /// Changes that another thread still verifies. `finish` waits for the end, and throws the error.
    case arriving(IncomingChanges, finish: () throws -> Void)
    /// The file could not be opened, is damaged or not understood. `finish` waits for the end of a file that is still
    /// arriving, and throws its error.
    case failed(any Error, finish: () throws -> Void = {})
    /// The file has vanished: another process has applied and removed it.
    case vanished
  }

  /// The path, for the report.
  package let path: String
  /// Its name without its folder, for the ledger.
  package let name: String
  /// The id in the manifest, or without a manifest in the name.
  package let id: KSUID?
  /// The verified key of its sender in hex; empty when there is none.
  package let sender: String
  /// True if it could be read as far as its sender.
  package let isSenderKnown: Bool
  /// The identity of the read file; nil if it is not a file, or could not be opened.
  package let identity: FileIdentity?
  /// Its changes.
  package let content: Content
  /// The size of the changes, in bytes.
  package let byteCount: Int
  /// True if the sender's daily limit applies, because the file was not named by itself.
  package let isLimited: Bool
  /// The number of changes that the file states; 0 if unknown.
  package let changeCount: Int
  /// The size of manifest, definitions and annotations as text, in bytes. In memory they take several times as much.
  package let documentBytes: Int
  /// SHA-256 of the file. Waits for the end of a file that is still arriving.
  package let digest: () throws -> [UInt8]
  /// Warnings about the file itself, known once it has been verified.
  package let warnings: () throws -> [Warning]
  /// Stops verifying it, when it is not wanted any more.
  package let abandon: () -> Void

  /// Describes a file.
  package init(
    path: String, name: String, id: KSUID?, sender: String, isSenderKnown: Bool = true, identity: FileIdentity? = nil,
    content: Content, byteCount: Int, isLimited: Bool = false, changeCount: Int = 0, documentBytes: Int = 0,
    digest: @escaping () throws -> [UInt8],
    warnings: @escaping () throws -> [Warning] = { [] }, abandon: @escaping () -> Void = {}
  ) {
    self.path = path
    self.name = name
    self.id = id
    self.sender = sender
    self.isSenderKnown = isSenderKnown
    self.identity = identity
    self.content = content
    self.byteCount = byteCount
    self.isLimited = isLimited
    self.changeCount = changeCount
    self.documentBytes = documentBytes
    self.digest = digest
    self.warnings = warnings
    self.abandon = abandon
  }
}

extension IncomingFile {
  /// The sender as the record of a refused file has it.
  var recordedSender: String { isSenderKnown ? sender : LedgerEntries.unknownSender }

  /// The changes; nil if the file could not be opened.
  var changes: IncomingChanges? {
    switch content {
    case .verified(let changes), .arriving(let changes, _): changes
    case .failed, .vanished: nil
    }
  }

  /// The same file, of which it has turned out that it cannot be applied.
  func failing(with error: any Error) -> IncomingFile {
    IncomingFile(
      path: path, name: name, id: id, sender: sender, isSenderKnown: isSenderKnown, identity: identity,
      content: .failed(error), byteCount: byteCount, isLimited: isLimited, changeCount: changeCount,
      documentBytes: documentBytes, digest: digest, warnings: warnings, abandon: abandon)
  }
}

/// A source of files for the receiver, which is notified of their outcomes.
package protocol IncomingFileSource: AnyObject {
  /// The number of files.
  var count: Int { get }
  /// Begins to open some files. A file that was handed out before may be opened once more.
  ///
  /// - Parameters:
  ///   - range: The places of the files.
  ///   - streams: True if large files may be handed on while the rest of them is being verified.
  func files(_ range: Range<Int>, streams: Bool) -> any IncomingFileReader
  /// Called before the file at an index. May throw to stop; the files before it are done.
  func willReceive(_ index: Int) throws
  /// These files are done: their transaction has been committed. One that had to wait may be done once more.
  func didReceive(_ files: [ReceivedFile])
}

/// Opens files in order, ahead of the consumer.
package protocol IncomingFileReader: AnyObject {
  /// Waits until the next file is there, and leaves it. May throw to stop the work; the files before it are done.
  func wait() throws
  /// Returns the next file; nil if it is not ready, which never happens after ``wait()``.
  func next() -> IncomingFile?
  /// Stops opening files. Must be called, once.
  func stop()
}

/// The result for a file.
package struct ReceivedFile {
  /// Its place in the source.
  package let index: Int
  /// The identity of the read file; nil if it is not a file, or could not be opened.
  package let identity: FileIdentity?
  /// The outcome of the file.
  package let outcome: DiffOutcome
}

/// The files that wait for others of their stream, and later arrivals of the stream: a snapshot makes earlier files
/// needless, and a late diff under any name lets the files continue that build on it.
struct WaitingFiles {
  /// A stream of a sender.
  private typealias Stream = (sender: String, stream: [UInt8])

  /// By the place of the file in its source.
  private var waiting: [Int: (stream: Stream, sequence: Int64)] = [:]
  private var ready: Set<Int> = []

  /// Records the outcome of a file.
  ///
  /// - Parameters:
  ///   - index: The place of the file in its source.
  ///   - outcome: The outcome.
  ///   - changes: The changes; nil if the file could not be opened.
  mutating func note(_ index: Int, _ outcome: DiffOutcome, of changes: IncomingChanges?) {
    guard let changes, let place = changes.place else { return }
    let stream: Stream = (changes.key.sender, place.stream)
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

  /// Removes and returns the files that no longer have to wait, as runs of neighbours.
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

/// The files that cannot be read for now. What their senders sent after them waits, since it may build on them.
struct UnreadFiles {
  /// The first file whose sender could not be read. It may be from any sender.
  private var ofAnyone: String?
  private var bySender: [String: String] = [:]

  /// Records a file that cannot be read for now.
  mutating func note(_ file: IncomingFile) {
    if !file.isSenderKnown {
      ofAnyone = ofAnyone ?? file.name
    } else if bySender[file.sender] == nil {
      bySender[file.sender] = file.name
    }
  }

  /// The file that a later one has to wait for, by its name; nil if it may be applied.
  func name(before file: IncomingFile) -> String? { ofAnyone ?? bySender[file.sender] }
}
