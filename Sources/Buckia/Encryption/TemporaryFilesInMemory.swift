import SQLiteSchemas
import SQLiteConnections

/// Keeps what SQLite would write into files of its own off the disk while encrypted files are made or applied: sorts, TEMP tables, and
/// the pages that savepoints bring back.
///
/// Such files have names that others can open as long as they exist, and their bytes stay on the disk when they are gone. In memory they
/// grow with the rows: some 25 bytes for each that is found by its content. The sorts that rebuild indexes stay within the memory
/// limit: larger ones are not begun.
enum TemporaryFilesInMemory {
  /// Runs `body` while SQLite writes no temporary files.
  ///
  /// - Throws: `BuckiaError` with `cannotEncrypt` when SQLite cannot be told not to; nothing has been done then. `SQLiteError`; what `body`
  ///   throws.
  static func whileRequired<Result>(
    on connection: borrowing SQLiteConnection, _ body: () throws -> Result
  ) throws -> Result {
    if let result = try connection.withTemporaryFilesInMemory(body) { return result }
    throw BuckiaError(
      .cannotEncrypt,
      "SQLite would write parts of what is encrypted into temporary files, in clear, and cannot be told not to while this connection has "
        + "TEMP tables or triggers, or a transaction open; set PRAGMA temp_store = MEMORY when the connection is opened, or use another one",
      path: connection.path)
  }
}
