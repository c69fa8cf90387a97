import SQLiteConnections
import SQLiteFiles

/// The pages of a database as a transaction sees them, read through the file handle that SQLite itself has open.
enum PageSource {
  /// The database file, and of its log the part up to a mark.
  case file(SQLiteFileHandle, log: SQLiteFileHandle?, WriteAheadLog.EndMark?)
  /// The pages cannot be had.
  case unavailable(Reason)

  /// Why pages cannot be had.
  enum Reason: String {
    case notInAFile = "it is not in a file"
    case busy = "others write to it all the time"
    case uncommittedChanges = "it has changes that are not committed"
    case earlierTransaction = "a transaction has begun on it before"
    case exclusiveLog = "its connection keeps the log's index to itself"
  }

  /// The pages that a write transaction sees which has not written anything: nobody else can commit, so it is what was committed
  /// last.
  init(ofNewWriteTransaction connection: borrowing SQLiteConnection) throws {
    guard let file = SQLiteFileHandle(.database, of: connection) else {
      self = .unavailable(.notInAFile)
      return
    }
    guard try connection.text("PRAGMA main.journal_mode") == "wal" else {
      self = .file(file, log: nil, nil)
      return
    }
    // Where the index of the log is not shared, a look at it would make a shared one.
    guard try connection.text("PRAGMA main.locking_mode") != "exclusive" else {
      self = .unavailable(.exclusiveLog)
      return
    }
    guard let log = SQLiteFileHandle(.log, of: connection), let state = file.logState() else {
      self = .unavailable(.busy)
      return
    }
    let mark = WriteAheadLog.EndMark(frameCount: state.frameCount, salts: state.salts, checksum: state.checksum)
    self = .file(file, log: state.frameCount > 0 ? log : nil, mark)
  }

  /// Reads the headers.
  ///
  /// - Parameter progress: Is told how many bytes are read; nil where nobody asks, and for pages that two threads read.
  /// - Returns: nil where the pages cannot be had.
  /// - Throws: `DatabaseFileError`, `SQLiteError`.
  func open(_ progress: ProgressReporter?) throws -> DatabasePages? {
    guard case .file(let file, let log, let mark) = self else { return nil }
    return try DatabasePages(HandleBytes(file, progress), log: log.map { HandleBytes($0, progress) }, upTo: mark)
  }
}

/// Finds out which pages a transaction sees that is about to begin.
///
/// SQLite does not tell which commit of the log a transaction sees. What the log's shared index says before and after the
/// transaction has begun is what it sees, if both are the same.
struct PageSourceProbe {
  private let file: SQLiteFileHandle?
  private let log: SQLiteFileHandle?
  private let isLogged: Bool
  private let before: SQLiteFileHandle.LogState?
  private let reason: PageSource.Reason?

  /// - Parameter connection: One that has read something already.
  init(_ connection: borrowing SQLiteConnection) throws {
    let state = connection.transactionState
    file = SQLiteFileHandle(.database, of: connection)
    isLogged = try file != nil && connection.text("PRAGMA main.journal_mode") == "wal"
    // Where the index of the log is not shared, a look at it would make a shared one.
    let isExclusive = try isLogged && connection.text("PRAGMA main.locking_mode") == "exclusive"
    log = isLogged ? SQLiteFileHandle(.log, of: connection) : nil
    reason =
      file == nil
      ? .notInAFile
      : state == .write
        ? .uncommittedChanges
        : !isLogged ? nil : isExclusive ? .exclusiveLog : state == .read ? .earlierTransaction : nil
    before = isLogged && reason == nil ? file?.logState() : nil
  }

  /// The pages of the transaction that has begun; nil when another connection has committed meanwhile.
  func source() -> PageSource? {
    if let reason { return .unavailable(reason) }
    guard let file else { return .unavailable(.notInAFile) }
    guard isLogged, let log else { return .file(file, log: nil, nil) }
    guard let before, before == file.logState() else { return nil }
    let mark = WriteAheadLog.EndMark(frameCount: before.frameCount, salts: before.salts, checksum: before.checksum)
    return .file(file, log: before.frameCount > 0 ? log : nil, mark)
  }
}

/// SQLite's own file handle as a source of bytes.
private final class HandleBytes: ByteSource {
  private let file: SQLiteFileHandle
  /// Nil in another thread than the caller's.
  private let progress: ProgressReporter?

  init(_ file: SQLiteFileHandle, _ progress: ProgressReporter?) {
    self.file = file
    self.progress = progress
  }

  func byteCount() throws -> Int64 { try file.byteCount() }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
    try progress?.add(bytes: buffer.count)
    return try file.read(into: buffer, at: offset)
  }

  func duplicate() -> (any ByteSource)? { file.another().map { HandleBytes($0, nil) } }
}
