import SQLiteConnections

extension DatabaseManager {
  /// Copies the rows of the database in one transaction to another file, also while others use it.
  ///
  /// The next difference is made from such a snapshot; see <doc:Sending>. All its rows count as sent. It is complete
  /// under its name or does not exist, replaces an earlier one atomically, needs no other file, and is readable by its
  /// owner alone if the database is.
  ///
  /// ```swift
  /// let report = try database.processInboundChanges(["inbound"])
  /// try database.snapshot(to: "shared.sqlite")
  /// ```
  ///
  /// - Parameters:
  ///   - path: The file. Only a snapshot or an empty file is replaced, and not one that is in use.
  ///   - replacing: True if an earlier snapshot is replaced: changes since then that were not sent are in none of the next differences.
  /// - Returns: The snapshot.
  /// - Throws: `BuckiaError`: `notReplaceable` when the path is something else than an earlier snapshot; `alreadyExists`;
  ///   `busy` when the copy that is there is in use, or the database is locked; `damaged-database` when it is damaged; `misuse` for a borrowed database inside a
  ///   transaction of the app; what SQLite says when the copy cannot be written. An earlier copy then stays as it is.
  @discardableResult
  public func snapshot(to path: String, replacing: Bool = true) throws -> SnapshotReport {
    try withReader { connection in
      if !replacing, try SnapshotMark(replacedAt: path) != nil {
        throw BuckiaError(
          .alreadyExists,
          "it is a snapshot already, and changes since then that were not sent would be in none of your next diffs",
          path: path)
      }
      try requireOwnTransaction(or: "a snapshot cannot be made", on: connection)
      if !isBorrowed { try connection.requireContent() }
      try connection.requireUndamagedPages(polling: poll)
      return try Self.snapshot(of: connection, to: path, polling: poll)
    }
  }

  /// The same through a connection.
  ///
  /// - Parameters:
  ///   - unsent: The unsent edits, which are left out of the copy.
  ///   - edits: The unsent edits with the versions that others have sent.
  static func snapshot(
    of connection: borrowing SQLiteConnection, without unsent: UnsentChanges? = nil, beside edits: UnsentEdits? = nil,
    to path: String, polling poll: @escaping () throws -> Void = {}
  ) throws -> SnapshotReport {
    let target = DatabaseFileTarget(path, for: "snapshot")
    let isReplacement = try target.requireReplaceable(by: connection.path)
    let previous = try SnapshotMark(replacedAt: path)
    let temporary = try target.makeTemporaryFile(like: connection.path)
    try connection.copyState(to: temporary.path, polling: poll)
    do {
      let copy = try SQLiteConnection(opening: temporary.path, as: .readWrite, with: connection.library)
      // A copy of a database with a write-ahead log would get one of its own whenever it is read.
      try copy.execute("PRAGMA journal_mode = DELETE")
      try makeSnapshot(of: copy, replacing: previous, without: unsent, beside: edits)
    }
    try target.publish(temporary)
    return SnapshotReport(
      path: path, bytes: FileSystem.byteCount(of: PosixFile.target(ofLink: path)), isReplacement: isReplacement,
      unsentChanges: unsent?.count)
  }

  /// Creates a copy a snapshot: removes Buckia's tables, which describe the database and not its rows.
  ///
  /// - Parameters:
  ///   - copy: The copy, in a file or in memory. It is to be thrown away when this throws.
  ///   - previous: The mark of the snapshot that it replaces.
  ///   - unsent: The unsent edits, which are left out of the snapshot.
  ///   - edits: The unsent edits with the versions that others have sent.
  static func makeSnapshot(
    of copy: borrowing SQLiteConnection, replacing previous: SnapshotMark?, without unsent: UnsentChanges?,
    beside edits: UnsentEdits? = nil
  ) throws {
    try copy.execute("PRAGMA foreign_keys = OFF")
    let mark = try SnapshotMark(of: copy, replacing: previous)
    try removeOwnTables(from: copy)
    try unsent?.remove(from: copy)
    if let edits {
      let fired = try copy.triggersEnabled
      if fired { try copy.enableTriggers(false) }
      try edits.writeShared(to: copy)
      if fired { try copy.enableTriggers(true) }
    }
    try SentChanges.begin(in: copy)
    try mark.write(to: copy)
  }

  /// The same for the first snapshot at a place.
  package static func makeSnapshot(
    of copy: borrowing SQLiteConnection, without unsent: UnsentChanges?, beside edits: UnsentEdits? = nil
  ) throws {
    try makeSnapshot(of: copy, replacing: nil, without: unsent, beside: edits)
  }

  private static func removeOwnTables(from connection: borrowing SQLiteConnection) throws {
    let query = "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name LIKE 'buckia\\_%' ESCAPE '\\'"
    for name in try connection.rows(of: query, row: { $0.text(at: 0) ?? "" }) {
      try connection.execute("DROP TABLE main.\(SQLText.identifier(name))")
    }
  }
}

extension DatabaseManager {
  /// Requires that a snapshot can be made after files have been applied.
  ///
  /// - Throws: As ``snapshot(to:replacing:)``.
  /// - Returns: A version that changes when another connection writes to the database.
  func snapshotVersion(on connection: borrowing SQLiteConnection, for path: String) throws -> Int64? {
    _ = try DatabaseFileTarget(path, for: "snapshot").requireReplaceable(by: connection.path)
    _ = try SnapshotMark(replacedAt: path)
    try requireOwnTransaction(or: "a snapshot cannot be made", on: connection)
    try connection.requireUndamagedPages(polling: poll)
    return try connection.integer("PRAGMA data_version")
  }
}

extension ApplyReport {
  /// Copies the database, all files being done.
  ///
  /// - Parameters:
  ///   - path: The path of the copy.
  ///   - connection: The database.
  ///   - unsent: The unsent edits, which are left out of the copy.
  ///   - edits: The unsent edits with the versions that others have sent.
  ///   - version: What ``DatabaseManager/snapshotVersion(on:)`` was before the first file.
  mutating func keep(
    _ path: String, of connection: borrowing SQLiteConnection, without unsent: UnsentChanges? = nil,
    beside edits: UnsentEdits? = nil, since version: Int64?
  ) throws {
    do {
      // One state for the look and the copy.
      let transaction = try SQLiteTransaction(.deferred, on: connection)
      _ = try connection.integer("SELECT count(*) FROM main.sqlite_schema")
      wasWrittenMeanwhile = try connection.integer("PRAGMA data_version") != version
      snapshot = try DatabaseManager.snapshot(of: connection, without: unsent, beside: edits, to: path)
      transaction.rollback()
    } catch {
      throw ApplyInterruption(report: self, cause: BuckiaError.wrapped(error))
    }
  }
}

extension ApplyInterruption {
  /// Copies the database after an error, with the files that are done. If that fails, too, `cause` has the first error,
  /// and the report has no snapshot.
  mutating func keep(
    _ path: String, of connection: borrowing SQLiteConnection, without unsent: UnsentChanges?,
    beside edits: UnsentEdits? = nil, since version: Int64?
  ) {
    var kept = report
    do {
      try kept.keep(path, of: connection, without: unsent, beside: edits, since: version)
      report = kept
    } catch {
      report.snapshot = nil
    }
  }
}

/// The mark of a snapshot, in its table `buckia_snapshot`.
struct SnapshotMark {
  /// Tells it apart from other snapshots of the same database. The ones that replace it have the same id.
  var id: String
  /// The newest entry of the ledger that the database had when the snapshot was made; 0 for none.
  var through: Int64

  /// The mark of a new snapshot.
  ///
  /// - Parameters:
  ///   - copy: The copy of the database, with its ledger.
  ///   - previous: The mark of the snapshot that it replaces; nil for none.
  init(of copy: borrowing SQLiteConnection, replacing previous: SnapshotMark?) throws {
    id = previous?.id ?? String(UInt64.random(in: .min ... .max), radix: 16)
    through =
      try Ledger.exists(on: copy) ? copy.integer("SELECT max(entry) FROM main.buckia_ledger") ?? 0 : 0
  }

  /// Reads the mark of a snapshot; nil for databases without one.
  init?(in snapshot: borrowing SQLiteConnection) throws {
    let table = "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'buckia_snapshot'"
    guard try snapshot.integer(table) != nil else { return nil }
    let query = try snapshot.prepare("SELECT id, through FROM main.buckia_snapshot")
    guard try query.step(), let id = query.text(at: 0) else { return nil }
    self.id = id
    through = query.integer(at: 1)
  }

  /// Reads the mark of the snapshot at a path.
  init?(at path: String) throws {
    guard FileSystem.exists(path), FileKind(of: path) == .sqlite else { return nil }
    try self.init(in: .reading(path))
  }

  /// Reads the mark of the snapshot that a new one replaces; nil for a missing or empty file.
  ///
  /// - Throws: `BuckiaError` with `notReplaceable` for a database that is no snapshot.
  init?(replacedAt path: String) throws {
    let path = PosixFile.target(ofLink: path)
    if let mark = try SnapshotMark(at: path) {
      self = mark
      return
    }
    guard FileSystem.exists(path), FileKind(of: path) != .empty else { return nil }
    guard FileKind(of: path) == .sqlite else {
      throw BuckiaError(.notReplaceable, "it is no SQLite database, and a snapshot replaces nothing else", path: path)
    }
    throw BuckiaError(
      .notReplaceable,
      "it is a database that is no snapshot of Buckia's, which a snapshot does not replace; if it is the database as others "
        + "know it, make a snapshot of it, and name that", path: path)
  }

  /// Writes the mark.
  func write(to snapshot: borrowing SQLiteConnection) throws {
    try snapshot.execute(
      """
      CREATE TABLE IF NOT EXISTS main.buckia_snapshot(id TEXT NOT NULL, through INTEGER NOT NULL);
      DELETE FROM main.buckia_snapshot
      """)
    try snapshot.run(cached: "INSERT INTO main.buckia_snapshot VALUES (?1, ?2)", id, through)
  }
}

/// Completes a snapshot that was not updated because the process died after diffs had been applied. Without them,
/// received rows would count as edited here, and be sent again.
extension SnapshotMark {
  /// Adds missing diffs to the snapshot.
  ///
  /// - Parameters:
  ///   - path: The snapshot.
  ///   - mark: The mark of the snapshot; nil for none.
  ///   - database: The database.
  /// - Returns: A warning if the effects of the diffs are no longer recorded; the snapshot stays unchanged then.
  /// - Throws: `SQLiteError`, `LedgerError`.
  static func repair(
    _ path: String, marked mark: SnapshotMark?, of database: borrowing SQLiteConnection
  ) throws -> Warning? {
    guard var mark, let applied = try SnapshotRuns.entries(for: mark.id, on: database),
      applied.upperBound > mark.through
    else { return nil }
    let missing = max(applied.lowerBound, mark.through + 1)...applied.upperBound
    let diffs = try SnapshotRuns.diffs(among: missing, on: database)
    guard !diffs.isEmpty else { return nil }
    var effects = EffectReader()
    var parts: [AppliedEffects.Part] = []
    for diff in diffs {
      let found = try effects.parts(of: diff.entry, on: database)
      guard !found.isEmpty else { return Warning(.snapshotIncomplete, path, diff.file) }
      parts += found
    }
    let snapshot = try SQLiteConnection(opening: path, as: .readWrite)
    let transaction = try SQLiteTransaction(on: snapshot)
    do {
      let schema = try SchemaReader(snapshot)
      // Changes that were sent before these diffs arrived are relative to the present snapshot.
      try apply(SentChanges.read(from: snapshot), schema, to: snapshot)
      for part in parts {
        let definitions = try part.tables.map { try $0.definition(in: schema, for: "a diff") }
        try TemporaryBuffer(part.changes).applyPlainly(definitions, to: snapshot, conflicts: .takeIncoming)
      }
    } catch let error as any FileFault where error.refusal != nil {
      transaction.rollback()
      return Warning(.snapshotIncomplete, path, diffs[0].file)
    }
    try SentChanges.clear(in: snapshot)
    mark.through = applied.upperBound
    try mark.write(to: snapshot)
    try transaction.commit()
    return nil
  }

  private static func apply(
    _ changes: TemporaryBuffer, _ schema: SchemaReader, to snapshot: borrowing SQLiteConnection
  ) throws {
    guard !changes.isEmpty else { return }
    let summary = try ChangesetSummary.of(changes)
    let definitions = try summary.tables.map { table in
      guard let entry = schema.entry(named: TableName(table.table.name)) else {
        throw ReplicationError(.missingTable, "no table \"\(table.table.name)\"", table: table.table.name)
      }
      return try schema.definition(of: entry)
    }
    try changes.applyPlainly(definitions, summary, to: snapshot, conflicts: .takeIncoming)
  }
}
