import BuckiaSchemaPlans
import SQLiteConnections

/// A source of rows at one moment: a read transaction, the schema that it sees, and its pages where they can be read.
struct DatabaseSnapshot: ~Copyable {
  let source: RowSource
  let schema: SchemaReader
  let pages: PageSource
  /// Whether text is stored as UTF-16.
  let isUTF16: Bool
  /// Nil where the snapshot is that of a transaction which the application has open.
  private let transaction: SQLiteTransaction?

  /// How often to try to begin between two commits of others.
  private static let attempts = 8

  /// Whether another snapshot of the source may see a later state.
  var isRenewable: Bool { transaction != nil }

  /// Begins a read transaction, or takes the one that the application has open.
  static func begin(of source: RowSource) throws -> DatabaseSnapshot {
    let isOpen = source.connection.isInTransaction
    var probe = try PageSourceProbe(source.connection)
    var transaction = try begin(on: source.connection)
    var pages = probe.source()
    for _ in 1..<attempts where pages == nil && !isOpen {
      try transaction.take()?.commit()
      probe = try PageSourceProbe(source.connection)
      transaction = try begin(on: source.connection)
      pages = probe.source()
    }
    return DatabaseSnapshot(
      source: source, schema: try SchemaReader(source.connection), pages: pages ?? .unavailable(.busy),
      isUTF16: try source.connection.text("PRAGMA main.encoding") != "UTF-8", transaction: transaction)
  }

  /// - Returns: nil inside a transaction of the application.
  private static func begin(on connection: borrowing SQLiteConnection) throws -> SQLiteTransaction? {
    let transaction = connection.isInTransaction ? nil : try SQLiteTransaction(.deferred, on: connection)
    // A deferred transaction takes its lock with the first thing that it reads.
    _ = try connection.integer("SELECT count(*) FROM main.sqlite_schema")
    return transaction
  }

  /// Ends the transaction. A COMMIT, since an application may watch its connection for a ROLLBACK.
  consuming func end() throws(SQLiteError) {
    if let transaction { try transaction.commit() }
  }
}
