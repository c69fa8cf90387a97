import SQLiteChangesets
import SQLiteConnections
import SQLiteFiles
import SQLiteSchemas

/// A source of rows in one read transaction, with its schema, and its pages if they can be read.
package final class DatabaseSnapshot {
  let source: RowSource
  let schema: SchemaReader
  let pages: PageSource
  /// True if text is stored as UTF-16.
  let isUTF16: Bool
  /// Nil if the application's open transaction is used.
  private var transaction: SQLiteTransaction?

  /// The most attempts to begin between two commits of other connections.
  private static let attempts = 8

  /// True if another snapshot of the source may see a later state.
  let isRenewable: Bool

  /// Begins a read transaction, or takes the one that the application has open.
  init(of source: RowSource) throws {
    self.source = source
    isRenewable = !source.connection.isInTransaction
    var probe = try PageSourceProbe(source.connection)
    transaction = try Self.begin(on: source.connection)
    var pages = probe.source()
    for _ in 1..<Self.attempts where pages == nil && isRenewable {
      try transaction.take()?.commit()
      probe = try PageSourceProbe(source.connection)
      transaction = try Self.begin(on: source.connection)
      pages = probe.source()
    }
    self.pages = pages ?? .unavailable(.busy)
    schema = try SchemaReader(source.connection, standIns: source.standIns)
    isUTF16 = try source.connection.text("PRAGMA main.encoding") != "UTF-8"
  }

  /// - Returns: nil inside a transaction of the application.
  private static func begin(on connection: borrowing SQLiteConnection) throws -> SQLiteTransaction? {
    let transaction = connection.isInTransaction ? nil : try SQLiteTransaction(.deferred, on: connection)
    // A deferred transaction takes its lock with the first thing that it reads.
    _ = try connection.integer("SELECT count(*) FROM main.sqlite_schema")
    return transaction
  }

  /// Calls `body` with the pages of a database in one read transaction.
  ///
  /// - Parameter connection: A connection without an open transaction.
  /// - Returns: nil if the pages cannot be read beside the connection.
  /// - Throws: `SQLiteError`, `DatabaseFileError`, what `body` throws.
  package static func withPages<Result>(
    of connection: borrowing SQLiteConnection, _ body: (DatabasePages) throws -> Result
  ) throws -> Result? {
    let snapshot = try DatabaseSnapshot(of: RowSource(on: connection))
    guard let pages = try snapshot.pages.open(nil) else {
      try snapshot.end()
      return nil
    }
    let result = try body(pages)
    try snapshot.end()
    return result
  }

  /// Ends the transaction. A COMMIT, since an application may watch its connection for a ROLLBACK.
  func end() throws(SQLiteError) { try transaction.take()?.commit() }
}
