import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds the difference of two sources of rows: database files, connections that are open, or some of their rows and columns.
///
/// Each is read inside one read transaction, so a database in use by another process is seen at one moment.
/// Neither is changed.
///
/// ```swift
/// let difference = try DatabaseComparison.run(older: "yesterday.sqlite", newer: "today.sqlite")
/// for table in difference.tables { print(table.definition.name, table.inserted) }
/// ```
package enum DatabaseComparison {
  /// Compares two database files.
  ///
  /// - Parameters:
  ///   - older: The database to start from.
  ///   - newer: The database to arrive at.
  ///   - options: Which tables, and how.
  ///   - progress: Is told how far the comparison has come: before each table, and every few thousand rows. May throw to
  ///     stop.
  /// - Throws: `SQLiteError` when a file cannot be read; `ReplicationError` for a table that was asked for and is not there, a
  ///   rename that is none, and with `invalidSelection`; `ByteStreamError` when there is no room for the result;
  ///   whatever `progress` throws.
  package static func run(
    older: String, newer: String, options: DiffOptions = DiffOptions(),
    progress: @escaping (DiffProgress) throws -> Void = { _ in }
  ) throws -> DatabaseDifference {
    try run(from: RowSource(opening: older), to: RowSource(opening: newer), options: options, progress: progress)
  }

  /// Compares two sources.
  ///
  /// - Parameters:
  ///   - older: What to start from.
  ///   - newer: What to arrive at.
  ///   - options: Which tables, and how. Its selections are for tables of which a source has none of its own.
  ///   - progress: Is told how far the comparison has come, as with files.
  /// - Throws: As with files.
  package static func run(
    from older: RowSource, to newer: RowSource, options: DiffOptions = DiffOptions(),
    progress: @escaping (DiffProgress) throws -> Void = { _ in }
  ) throws -> DatabaseDifference {
    let progress = ProgressReporter(progress)
    var attempt = 1
    while true {
      let olderSnapshot = try DatabaseSnapshot(of: older)
      let newerSnapshot = try DatabaseSnapshot(of: newer)
      try requireTables(options, olderSnapshot, newerSnapshot)
      let pages = try pages(olderSnapshot, newerSnapshot, attempt, options, progress)
      var builder = try DifferenceBuilder(olderSnapshot, newerSnapshot, pages: pages, options: options, progress)
      try builder.compareTables()
      try builder.reportUntransferredObjects()
      try builder.addAuthorSchema()
      let isStale = try pages?.isStale() ?? false
      attempt = olderSnapshot.isRenewable && newerSnapshot.isRenewable ? attempt + 1 : attempts
      try newerSnapshot.end()
      try olderSnapshot.end()
      // The last attempt reads no pages, and rows are never stale.
      if !isStale { return builder.difference }
    }
  }

  /// How often to compare, when others restart a log whose pages are read.
  private static let attempts = 4

  private static func pages(
    _ older: DatabaseSnapshot, _ newer: DatabaseSnapshot, _ attempt: Int, _ options: DiffOptions,
    _ progress: ProgressReporter
  ) throws -> PagePair? {
    guard options.method ?? .pages == .pages else { return nil }
    return try PagePair(older, newer, refusedFor: attempt < attempts ? nil : SkipReason(.logRestarted), progress)
  }

  /// Makes sure that each table that was asked for is in one of the databases.
  private static func requireTables(
    _ options: DiffOptions, _ older: DatabaseSnapshot, _ newer: DatabaseSnapshot
  ) throws(ReplicationError) {
    let selected = Array(options.selections.keys) + older.source.selectedTables + newer.source.selectedTables
    for table in (options.tables ?? []) + selected.sorted(by: { $0.text < $1.text })
    where newer.schema.entry(named: table) == nil && older.schema.entry(named: table) == nil {
      throw ReplicationError(
        .noSuchTable, "neither \(older.source.name) nor \(newer.source.name) has a table \"\(table)\"",
        table: table.text)
    }
  }
}

/// A source of rows at one moment: a read transaction, the schema that it sees, and its pages where they can be read.
final class DatabaseSnapshot {
  let source: RowSource
  let schema: SchemaReader
  let pages: PageSource
  /// Whether text is stored as UTF-16.
  let isUTF16: Bool
  /// Nil where the snapshot is that of a transaction which the application has open.
  private var transaction: SQLiteTransaction?

  /// How often to try to begin between two commits of others.
  private static let attempts = 8

  /// Whether another snapshot of the source may see a later state.
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

  /// Ends the transaction. A COMMIT, since an application may watch its connection for a ROLLBACK.
  func end() throws(SQLiteError) { try transaction.take()?.commit() }
}

/// One side of a comparison: a database, or the rows and columns of it that are chosen.
package final class RowSource {
  /// The connection that the rows are read through.
  package let connection: SQLiteConnection
  /// The path at which another connection finds the same database; nil where only this one sees all of it.
  package let attachablePath: String?
  /// What the database is called in messages.
  package let name: String
  private let selections: [TableName: RowSelection]
  /// For the name of a table, that of the table which has its rows; nil where each has its own.
  let standIns: [TableName: TableName]?

  private init(
    _ connection: consuming SQLiteConnection, path: String?, name: String, _ selections: Selections,
    standIns: [TableName: TableName]? = nil
  ) {
    self.standIns = standIns
    self.connection = connection
    attachablePath = path
    self.name = name
    self.selections = selections
  }

  /// Which rows and columns of which tables take part; all of those that are not named.
  package typealias Selections = [TableName: RowSelection]

  /// Opens a database file for reading, and waits `busyTimeout` milliseconds for another connection's lock.
  ///
  /// - Throws: `SQLiteError` when it cannot be opened, is no database, is locked or must be recovered first.
  package convenience init(
    opening path: String, busyTimeout: Int32 = 10_000, selecting selections: Selections = [:]
  ) throws(SQLiteError) {
    let connection = try SQLiteConnection.reading(path, busyTimeout: busyTimeout)
    try connection.readThroughUnknownCollations()
    self.init(connection, path: path, name: path, selections)
  }

  /// Reads through a connection of the application, which must outlive the source.
  ///
  /// Where a transaction is open on it, the rows are those that this sees, changes that are not committed included. It stays
  /// open.
  package convenience init(on connection: borrowing SQLiteConnection, selecting selections: Selections = [:]) {
    let path = connection.path
    let name = path.isEmpty || path == ":memory:" ? "the open database" : path
    self.init(SQLiteConnection(sharing: connection), path: nil, name: name, selections)
  }

  /// Reads tables that stand in for others, through a connection of the application: those alone, under the names of the
  /// others.
  ///
  /// - Parameters:
  ///   - standIns: For the name of a table, that of the table of `main` which has its rows.
  ///   - name: What the source is called in messages.
  package convenience init(
    on connection: borrowing SQLiteConnection, standIns: [TableName: TableName], named name: String
  ) {
    self.init(SQLiteConnection(sharing: connection), path: nil, name: name, [:], standIns: standIns)
  }

  /// Whether this is a file that the source has opened by itself, and only reads.
  package var isFile: Bool { attachablePath != nil }

  /// A source without any table: compared with it, everything is an INSERT.
  package static func empty() throws(SQLiteError) -> RowSource {
    RowSource(try SQLiteConnection(opening: ":memory:", as: .create), path: nil, name: "an empty database", [:])
  }

  /// What is selected of a table: by this source, or else by the options of the comparison; nil for all of it.
  func selection(of table: TableName, _ options: DiffOptions) -> RowSelection? {
    selections[table] ?? options.selections[table]
  }

  /// The tables that something is selected of.
  var selectedTables: [TableName] { Array(selections.keys) }

  /// Makes sure that text can be ordered by its bytes as UTF-8.
  func requireByteCollation() throws(SQLiteError) {
    do throws(SQLiteError) {
      _ = try connection.prepare("SELECT '' < '' COLLATE \(SQLiteConnection.byteCollation)")
    } catch {
      // SQLite does not replace a collating sequence while any statement of the connection is running.
      try connection.registerByteCollation()
    }
  }
}
