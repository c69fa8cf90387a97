import SQLiteConnections
import SQLiteFiles

/// One moment of a database: a read transaction, and the pages that it sees.
///
/// SQLite does not tell which commit of the log a transaction sees. What the log's shared index says before and after the
/// transaction has begun is what it sees, if both are the same.
struct DatabaseSnapshot: ~Copyable {
  private let transaction: SQLiteTransaction
  private let file: SQLiteFileHandle?
  private let logFile: SQLiteFileHandle?
  private let mark: WriteAheadLog.EndMark?
  /// Why the pages cannot be had; nil when they can.
  let pagesRefusal: String?

  /// How often to try to begin between two commits of others.
  private static let attempts = 8

  /// Begins a read transaction.
  ///
  /// - Parameter connection: One that has read something already, and has no transaction open.
  static func begin(of connection: borrowing SQLiteConnection) throws -> DatabaseSnapshot {
    let file = SQLiteFileHandle(.database, of: connection)
    let isLogged = try connection.text("PRAGMA main.journal_mode") == "wal"
    guard let file, isLogged, let logFile = SQLiteFileHandle(.log, of: connection) else {
      return DatabaseSnapshot(
        transaction: try begin(on: connection), file: file, logFile: nil, mark: nil,
        pagesRefusal: file == nil ? "it is not in a file" : nil)
    }
    for _ in 1..<attempts {
      let before = file.logState()
      let transaction = try begin(on: connection)
      guard let before, before == file.logState() else {
        transaction.rollback()
        continue
      }
      let mark = WriteAheadLog.EndMark(
        frameCount: before.frameCount, salts: before.salts, checksum: before.checksum)
      return DatabaseSnapshot(
        transaction: transaction, file: file, logFile: before.frameCount > 0 ? logFile : nil, mark: mark,
        pagesRefusal: nil)
    }
    return DatabaseSnapshot(
      transaction: try begin(on: connection), file: nil, logFile: nil, mark: nil,
      pagesRefusal: "others write to it all the time")
  }

  private static func begin(on connection: borrowing SQLiteConnection) throws -> SQLiteTransaction {
    let transaction = try SQLiteTransaction(.deferred, on: connection)
    // A deferred transaction takes its lock with the first thing that it reads.
    _ = try connection.integer("SELECT count(*) FROM main.sqlite_schema")
    return transaction
  }

  /// The pages that the transaction sees.
  ///
  /// - Throws: `DatabaseFileError`, `SQLiteError`.
  func pages() throws -> DatabasePages? {
    guard pagesRefusal == nil, let file else { return nil }
    return try DatabasePages(HandleBytes(file), log: logFile.map(HandleBytes.init), upTo: mark)
  }

  /// Ends the transaction.
  consuming func end() { transaction.rollback() }
}

/// SQLite's own file handle as a source of bytes.
private final class HandleBytes: ByteSource {
  private let file: SQLiteFileHandle

  init(_ file: SQLiteFileHandle) { self.file = file }

  func byteCount() throws -> Int64 { try file.byteCount() }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws -> Int {
    try file.read(into: buffer, at: offset)
  }

  func duplicate() -> (any ByteSource)? { file.another().map(HandleBytes.init) }
}
