import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds the difference of two sources of rows: database files, connections that are open, or some of their rows and columns.
///
/// Each is read inside one read transaction, also while another process uses it. Neither is changed.
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
  ///   - progress: Called with the progress of the comparison before each table, and every few thousand rows. May throw
  ///     to stop it.
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
  ///   - older: The older source.
  ///   - newer: The newer source.
  ///   - options: Which tables, and how. Its selections are for tables of which a source has none of its own.
  ///   - progress: Called with the progress, as for files.
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

  /// The most attempts, if other connections restart the log whose pages are read.
  private static let attempts = 4

  private static func pages(
    _ older: DatabaseSnapshot, _ newer: DatabaseSnapshot, _ attempt: Int, _ options: DiffOptions,
    _ progress: ProgressReporter
  ) throws -> PagePair? {
    guard options.method ?? .pages == .pages else { return nil }
    return try PagePair(older, newer, refusedFor: attempt < attempts ? nil : SkipReason(.logRestarted), progress)
  }

  /// Requires that each requested table is in one of the databases.
  private static func requireTables(
    _ options: DiffOptions, _ older: DatabaseSnapshot, _ newer: DatabaseSnapshot
  ) throws(ReplicationError) {
    let renamed = options.renames.map(\.table)
    let selected = renamed + options.selections.keys + older.source.selectedTables + newer.source.selectedTables
    for table in (options.tables ?? []) + selected.sorted(by: { $0.text < $1.text })
    where newer.schema.entry(named: table) == nil && older.schema.entry(named: table) == nil {
      throw ReplicationError(
        .noSuchTable, "neither \(older.source.name) nor \(newer.source.name) has a table \"\(table)\"",
        table: table.text)
    }
  }
}
