import BuckiaKSUID
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds the difference of two database files.
///
/// Both are read inside one read transaction each, so a database in use by another process is seen at one moment.
/// Neither is changed.
///
/// ```swift
/// let difference = try DatabaseComparison.run(older: "yesterday.sqlite", newer: "today.sqlite")
/// for table in difference.tables { print(table.definition.name, table.inserted) }
/// ```
public enum DatabaseComparison {
  /// Compares two database files.
  ///
  /// - Parameters:
  ///   - older: The database to start from.
  ///   - newer: The database to arrive at.
  ///   - options: Which tables, and how.
  ///   - progress: Is told the name of each table before it is compared. May throw to stop.
  /// - Throws: `SQLiteError` when a file cannot be read, `EngineError` for a table that was asked for and is not there,
  ///   `ChangesetSpool.Failure` when there is no room for the result.
  public static func run(
    older: String, newer: String, options: DiffOptions = DiffOptions(),
    progress: (String) throws -> Void = { _ in }
  ) throws -> DatabaseDifference {
    let olderConnection = try SnapshotReader.open(older)
    let newerConnection = try SnapshotReader.open(newer)
    let olderTransaction = try SQLiteTransaction(.deferred, on: olderConnection)
    let newerTransaction = try SQLiteTransaction(.deferred, on: newerConnection)
    let olderSchema = try SchemaReader(olderConnection)
    let newerSchema = try SchemaReader(newerConnection)

    var run = ComparisonRun(options: options, olderPath: older, newerPath: newer)
    for table in options.tables ?? [] where newerSchema.entry(named: table) == nil {
      guard olderSchema.entry(named: table) == nil else { continue }
      throw EngineError(
        .noSuchTable, "neither \(older) nor \(newer) has a table \"\(table)\"", table: table.text)
    }
    try run.compareTables(olderConnection, olderSchema, newerConnection, newerSchema, progress: progress)
    try run.nameWhatStays(olderConnection, olderSchema, newerConnection, newerSchema)
    let newestID = try [Ledger.newestID(on: olderConnection), Ledger.newestID(on: newerConnection)].compactMap { $0 }
      .max()
    newerTransaction.rollback()
    olderTransaction.rollback()
    return DatabaseDifference(
      changeset: run.changeset, tables: run.tables, skipped: run.skipped, newestID: newestID)
  }
}
