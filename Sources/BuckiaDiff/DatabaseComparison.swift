import BuckiaKSUID
import BuckiaLedger
import BuckiaSchemaPlans
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
    try olderConnection.readThroughUnknownCollations()
    try newerConnection.readThroughUnknownCollations()
    for _ in 1..<attempts {
      let found = try run(
        olderConnection, newerConnection, ComparisonRun(options: options, olderPath: older, newerPath: newer),
        progress: progress)
      if let found { return found }
    }
    // Somebody begins the log anew again and again, and pages are read from under our hands. Rows never are.
    var run = ComparisonRun(options: options, olderPath: older, newerPath: newer)
    run.pages = PagePair(refusedFor: "others begin the log of one of the databases anew all the time")
    guard let found = try self.run(olderConnection, newerConnection, run, progress: progress) else {
      throw SQLiteError(code: 5, message: "others write to it all the time", path: newer)
    }
    return found
  }

  /// How often a log may be begun anew under us.
  private static let attempts = 4

  /// Compares once.
  ///
  /// - Returns: nil when a log was begun anew meanwhile.
  private static func run(
    _ olderConnection: borrowing SQLiteConnection, _ newerConnection: borrowing SQLiteConnection,
    _ begun: ComparisonRun, progress: (String) throws -> Void
  ) throws -> DatabaseDifference? {
    var run = begun
    let olderSnapshot = try DatabaseSnapshot.begin(of: olderConnection)
    let newerSnapshot = try DatabaseSnapshot.begin(of: newerConnection)
    let olderSchema = try SchemaReader(olderConnection)
    let newerSchema = try SchemaReader(newerConnection)

    for table in run.options.tables ?? [] where newerSchema.entry(named: table) == nil {
      guard olderSchema.entry(named: table) == nil else { continue }
      throw EngineError(
        .noSuchTable, "neither \(run.olderPath) nor \(run.newerPath) has a table \"\(table)\"", table: table.text)
    }
    if run.pages == nil, run.options.method ?? .pages == .pages {
      run.pages = try PagePair(olderSnapshot, newerSnapshot)
    }
    try run.compareTables(olderConnection, olderSchema, newerConnection, newerSchema, progress: progress)
    try run.nameWhatStays(olderConnection, olderSchema, newerConnection, newerSchema)
    let newestID = try [LedgerEntries.newestID(on: olderConnection), LedgerEntries.newestID(on: newerConnection)]
      .compactMap { $0 }
      .max()
    let isStale = try run.pages?.isStale() ?? false
    newerSnapshot.end()
    olderSnapshot.end()
    if isStale { return nil }
    return DatabaseDifference(
      changeset: run.changeset, tables: run.tables, skipped: run.skipped, fallbacks: run.fallbacks, newestID: newestID)
  }
}
