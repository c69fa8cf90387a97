import BuckiaApply
import SQLiteConnections
import SQLiteSchemas

extension DatabaseManager {
  /// Copies the database as it is at one moment into a file of its own, also while others use it.
  ///
  /// Such a copy is what the next difference is made from; see <doc:Sending>. All that is in it counts as sent. It is complete
  /// under its name or not there at all, replaces an earlier one in one step, needs no file beside it, and may be read by its
  /// owner alone where that holds for the database.
  ///
  /// ```swift
  /// let report = try database.processInboundChanges(["inbound"])
  /// try database.snapshot(to: "shared.sqlite")
  /// ```
  ///
  /// - Parameter path: The file. Only a snapshot or an empty file is replaced, and not one that is in use.
  /// - Returns: What was made.
  /// - Throws: `BuckiaError`: `notReplaceable` when the path is something else than an earlier snapshot;
  ///   `busy` when the copy that is there is in use, or the database is locked; `misuse` for a borrowed database inside a
  ///   transaction of the app; what SQLite says when the copy cannot be written. An earlier copy then stays as it is.
  @discardableResult
  public func snapshot(to path: String) throws -> SnapshotReport {
    try withReader { connection in
      guard !isBorrowed || !connection.isInTransaction else {
        throw BuckiaError(
          .misuse, "a snapshot cannot be made inside a transaction of the app, which may still roll back")
      }
      if !isBorrowed { try connection.requireContent() }
      return try Self.snapshot(of: connection, to: path)
    }
  }

  /// The same through a connection.
  ///
  /// - Parameters:
  ///   - unsent: What the copy is made without.
  ///   - edits: Knows what others have sent, where it was not taken because of them.
  static func snapshot(
    of connection: borrowing SQLiteConnection, without unsent: UnsentChanges? = nil, beside edits: UnsentEdits? = nil,
    to path: String
  ) throws -> SnapshotReport {
    let target = DatabaseFileTarget(path, for: "snapshot")
    let isReplacement = try target.requireReplaceable(by: connection.path)
    let previous = try SnapshotMark(replacedAt: path)
    let temporary = try target.makeTemporaryFile(like: connection.path)
    try connection.copyState(to: temporary.path)
    do {
      let copy = try SQLiteConnection(opening: temporary.path, as: .readWrite, with: connection.library)
      // A copy of a database with a write-ahead log would get one of its own whenever it is read.
      try copy.execute("PRAGMA journal_mode = DELETE")
      try makeSnapshot(of: copy, replacing: previous, without: unsent, beside: edits)
    }
    try target.publish(temporary)
    return SnapshotReport(
      path: path, bytes: FileSystem.byteCount(of: path), isReplacement: isReplacement, unsentChanges: unsent?.count)
  }

  /// Makes a snapshot of a copy: without Buckia's tables of the database, which are about the database and not about its rows.
  ///
  /// - Parameters:
  ///   - copy: The copy, in a file or in memory. It is to be thrown away when this throws.
  ///   - previous: The mark of the snapshot that it replaces.
  ///   - unsent: What the snapshot is made without.
  ///   - edits: Knows what others have sent, where it was not taken because of them.
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
    var names: [String] = []
    let query = "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name LIKE 'buckia\\_%' ESCAPE '\\'"
    try connection.forEachRow(of: query) { names.append($0.text(at: 0) ?? "") }
    for name in names { try connection.execute("DROP TABLE main.\(SQLText.identifier(name))") }
  }
}

extension DatabaseManager {
  /// Makes sure that a snapshot can be made when files have been applied.
  ///
  /// - Returns: What changes when another connection writes to the database.
  func snapshotVersion(on connection: borrowing SQLiteConnection, for path: String) throws -> Int64? {
    _ = try DatabaseFileTarget(path, for: "snapshot").requireReplaceable(by: connection.path)
    _ = try SnapshotMark(replacedAt: path)
    guard !isBorrowed || !connection.isInTransaction else {
      throw BuckiaError(.misuse, "a snapshot cannot be made inside a transaction of the app, which may still roll back")
    }
    return try connection.integer("PRAGMA data_version")
  }
}

extension ApplyReport {
  /// Copies the database, all files being done.
  ///
  /// - Parameters:
  ///   - path: Where the copy goes.
  ///   - connection: The database.
  ///   - unsent: What the copy is made without.
  ///   - edits: Knows what others have sent, where it was not taken because of them.
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
  /// Copies the database with the files that are done. Where that fails, too, `cause` says what did first, and the report has
  /// no snapshot.
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
