import BuckiaKSUID
import SQLiteConnections
import SQLiteSchemas

/// What a diff file is known by: the verified key of its sender, its id, and the digest of its manifest.
public struct LedgerKey: Hashable, Sendable {
  /// The verified key of the sender in hex, or empty for unsigned files.
  public let sender: String
  /// The id; nil for a raw changeset that has none.
  public let id: KSUID?
  /// SHA-256 of the manifest, or of a raw changeset's bytes.
  public let digest: [UInt8]
  /// Whether this is a raw changeset: then only the digest counts.
  public let isRaw: Bool

  /// Makes a key.
  public init(sender: String, id: KSUID?, digest: [UInt8], isRaw: Bool) {
    self.sender = sender
    self.id = id
    self.digest = digest
    self.isRaw = isRaw
  }
}

/// The ledger: tables in the user's own database that record every diff file and what became of it.
///
/// Its rows commit together with the rows they speak of, which is what makes applying exactly-once. The tables are
/// described in `Schemas/ledger.md`. All calls work inside whatever transaction is open.
public enum Ledger {
  /// The version of the tables that this code reads and writes.
  static let format: Int64 = 1

  private static let definition = """
    CREATE TABLE buckia_settings(
      name TEXT PRIMARY KEY NOT NULL,
      value
    ) WITHOUT ROWID;
    CREATE TABLE buckia_ledger(
      entry INTEGER PRIMARY KEY,
      diff TEXT,
      sender TEXT NOT NULL,
      digest BLOB NOT NULL,
      raw INTEGER NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('applied', 'held', 'waiting')),
      inserted INTEGER NOT NULL DEFAULT 0,
      updated INTEGER NOT NULL DEFAULT 0,
      deleted INTEGER NOT NULL DEFAULT 0,
      conflicts INTEGER NOT NULL DEFAULT 0,
      omitted INTEGER NOT NULL DEFAULT 0,
      reason TEXT,
      file TEXT NOT NULL,
      recorded_at INTEGER NOT NULL,
      UNIQUE (diff, sender, digest)
    );
    CREATE UNIQUE INDEX buckia_ledger_raw ON buckia_ledger(digest) WHERE raw;
    CREATE TABLE buckia_refused(
      digest BLOB PRIMARY KEY NOT NULL,
      diff TEXT,
      sender TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('quarantined', 'rejected')),
      reason TEXT NOT NULL,
      file TEXT NOT NULL,
      first_at INTEGER NOT NULL,
      last_at INTEGER NOT NULL,
      times INTEGER NOT NULL DEFAULT 1
    ) WITHOUT ROWID;
    CREATE TABLE buckia_layout(
      layout INTEGER PRIMARY KEY,
      table_name TEXT NOT NULL
    );
    CREATE TABLE buckia_layout_column(
      layout INTEGER NOT NULL,
      position INTEGER NOT NULL,
      name TEXT NOT NULL,
      is_key INTEGER NOT NULL,
      PRIMARY KEY (layout, position)
    ) WITHOUT ROWID;
    CREATE TABLE buckia_conflict(
      conflict INTEGER PRIMARY KEY,
      entry INTEGER NOT NULL,
      layout INTEGER NOT NULL,
      kind TEXT NOT NULL,
      outcome TEXT NOT NULL,
      base BLOB,
      local BLOB,
      incoming BLOB,
      reason TEXT
    );
    \(HeldParts.definition)
    CREATE TABLE buckia_rename(
      table_name TEXT NOT NULL,
      old_name TEXT NOT NULL,
      new_name TEXT NOT NULL,
      PRIMARY KEY (table_name, old_name, new_name)
    ) WITHOUT ROWID;
    """

  /// Whether the database has the ledger tables.
  ///
  /// - Throws: `SQLiteError`; `EngineError` with `newerLedger` for tables this version does not know.
  public static func exists(on connection: borrowing SQLiteConnection) throws -> Bool {
    guard
      try connection.cachedInteger(
        "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = 'buckia_settings'") != nil
    else { return false }
    let found = try connection.cachedInteger("SELECT value FROM main.buckia_settings WHERE name = 'format'") ?? 0
    guard found == format else {
      throw EngineError(
        .newerLedger,
        "\(connection.path): the ledger tables have format \(found), this version of Buckia knows \(format); use a newer one"
      )
    }
    return true
  }

  /// Makes the ledger tables where they are missing.
  ///
  /// - Returns: Whether they were made just now.
  public static func create(on connection: borrowing SQLiteConnection) throws -> Bool {
    if try exists(on: connection) { return false }
    try connection.execute(definition)
    try connection.execute(
      "INSERT INTO main.buckia_settings(name, value) VALUES ('format', \(format)), ('trust', 'any')")
    return true
  }

  /// Who is believed in this database.
  public static func trust(on connection: borrowing SQLiteConnection) throws -> TrustMode {
    let text = try connection.text("SELECT value FROM main.buckia_settings WHERE name = 'trust'") ?? ""
    return TrustMode(rawValue: text) ?? .known
  }

  /// Sets who is believed in this database.
  public static func setTrust(_ trust: TrustMode, on connection: borrowing SQLiteConnection) throws {
    let statement = try connection.prepare("UPDATE main.buckia_settings SET value = ? WHERE name = 'trust'")
    try statement.bind(trust.rawValue, at: 0)
    try statement.run()
  }

  /// The greatest id that was applied here; nil without a ledger.
  public static func newestID(on connection: borrowing SQLiteConnection) throws -> KSUID? {
    guard try exists(on: connection) else { return nil }
    let query = "SELECT max(diff) FROM main.buckia_ledger WHERE state IN ('applied', 'held')"
    return try connection.text(query).flatMap { KSUID($0) }
  }

  /// How a diff file stands with the ledger.
  public enum Standing: Equatable, Sendable {
    /// Not seen, or seen and refused: it may be tried.
    case unknown
    /// This very file is in the ledger.
    case recorded(DiffState)
    /// Another file with the same sender and id is in the ledger.
    case equivocation
  }

  /// Looks a diff file up.
  public static func standing(of key: LedgerKey, on connection: borrowing SQLiteConnection) throws -> Standing {
    let query: SQLiteCachedStatement
    if key.isRaw {
      query = try connection.cached("SELECT state, 1 FROM main.buckia_ledger WHERE raw AND digest = ?1")
      try query.statement.bind(key.digest, at: 0)
    } else {
      query = try connection.cached(
        "SELECT state, digest = ?1 FROM main.buckia_ledger WHERE diff = ?2 AND sender = ?3 AND NOT raw ORDER BY 2 DESC")
      try query.statement.bind(key.digest, at: 0)
      try query.statement.bind(key.id?.description ?? "", at: 1)
      try query.statement.bind(key.sender, at: 2)
    }
    defer { query.statement.reset() }
    guard try query.statement.step() else { return .unknown }
    guard query.statement.integer(at: 1) != 0 else { return .equivocation }
    return .recorded(DiffState(rawValue: query.statement.text(at: 0) ?? "") ?? .applied)
  }

  /// The number that the next entry gets; good while the transaction holds the write lock.
  static func nextEntry(on connection: borrowing SQLiteConnection) throws -> Int64 {
    try (connection.cachedInteger("SELECT max(entry) FROM main.buckia_ledger") ?? 0) + 1
  }

  /// Writes an entry. A waiting entry of the same file is taken over.
  ///
  /// - Parameters:
  ///   - key: What the file is known by.
  ///   - state: What became of it.
  ///   - entry: The entry's number; nil for the next one.
  ///   - file: The file's name, without its folder.
  ///   - counts: What was done.
  ///   - reason: Why it waits.
  ///   - time: When, in milliseconds since 1970.
  ///   - connection: The database, with a transaction open.
  public static func record(
    _ key: LedgerKey, state: DiffState, entry: Int64? = nil, file: String, counts: ApplyCounts = ApplyCounts(),
    reason: String? = nil, at time: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    let id = key.id?.description
    let old = try connection.cached(
      "DELETE FROM main.buckia_ledger WHERE diff IS ?1 AND sender = ?2 AND digest = ?3 AND state = 'waiting'")
    try old.statement.bind(optional: id, at: 0)
    try old.statement.bind(key.sender, at: 1)
    try old.statement.bind(key.digest, at: 2)
    try old.statement.run()
    let insert = try connection.cached(
      """
      INSERT INTO main.buckia_ledger(
        entry, diff, sender, digest, raw, state, file, reason, recorded_at, inserted, updated, deleted, conflicts, omitted)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
      """)
    if let entry { try insert.statement.bind(entry, at: 0) } else { try insert.statement.bindNull(at: 0) }
    try insert.statement.bind(optional: id, at: 1)
    try insert.statement.bind(key.sender, at: 2)
    try insert.statement.bind(key.digest, at: 3)
    try insert.statement.bind(Int64(key.isRaw ? 1 : 0), at: 4)
    try insert.statement.bind(state.rawValue, at: 5)
    try insert.statement.bind(file, at: 6)
    try insert.statement.bind(optional: reason, at: 7)
    try insert.statement.bind(time, at: 8)
    let numbers = [counts.inserted, counts.updated, counts.deleted, counts.conflicts, counts.omitted]
    for (index, number) in numbers.enumerated() { try insert.statement.bind(Int64(number), at: 9 + index) }
    try insert.statement.run()
  }

  /// Adds to an entry what was done when more of it could be applied.
  static func add(_ counts: ApplyCounts, to entry: Int64, on connection: borrowing SQLiteConnection) throws {
    let update = try connection.cached(
      """
      UPDATE main.buckia_ledger SET inserted = inserted + ?2, updated = updated + ?3, deleted = deleted + ?4,
        conflicts = conflicts + ?5, omitted = omitted + ?6
      WHERE entry = ?1
      """)
    try update.statement.bind(entry, at: 0)
    let numbers = [counts.inserted, counts.updated, counts.deleted, counts.conflicts, counts.omitted]
    for (index, number) in numbers.enumerated() { try update.statement.bind(Int64(number), at: 1 + index) }
    try update.statement.run()
  }

  /// Everything recorded, oldest first: the ledger and what was refused.
  public static func entries(on connection: borrowing SQLiteConnection) throws -> [LedgerEntry] {
    var entries: [LedgerEntry] = []
    let query = """
      SELECT diff, sender, state, recorded_at, inserted, updated, deleted, conflicts, omitted, reason, file,
             lower(hex(digest)) AS digest, entry
      FROM main.buckia_ledger
      UNION ALL
      SELECT diff, sender, state, last_at, 0, 0, 0, 0, 0, reason, file, lower(hex(digest)), 0
      FROM main.buckia_refused
      ORDER BY recorded_at, entry, digest
      """
    try connection.forEachRow(of: query) { row in
      entries.append(
        LedgerEntry(
          id: row.text(at: 0).flatMap { KSUID($0) }, sender: Self.shown(sender: row.text(at: 1) ?? ""),
          state: DiffState(rawValue: row.text(at: 2) ?? "") ?? .applied, recordedAt: row.integer(at: 3),
          inserted: Int(row.integer(at: 4)), updated: Int(row.integer(at: 5)), deleted: Int(row.integer(at: 6)),
          conflicts: Int(row.integer(at: 7)), omitted: Int(row.integer(at: 8)), reason: row.text(at: 9),
          file: row.text(at: 10) ?? "", digest: row.text(at: 11) ?? ""))
    }
    return entries
  }
}

extension Ledger {
  /// The renames of columns that applied diffs have declared.
  static func renames(on connection: borrowing SQLiteConnection) throws -> [ColumnRename] {
    guard try exists(on: connection) else { return [] }
    var renames: [ColumnRename] = []
    try connection.forEachRow(of: "SELECT table_name, old_name, new_name FROM main.buckia_rename") { row in
      renames.append(
        ColumnRename(
          table: TableName(row.text(at: 0) ?? ""), from: row.text(at: 1) ?? "", to: row.text(at: 2) ?? ""))
    }
    return renames
  }

  /// Writes down renames, by which columns of later diffs are found, too.
  static func add(_ renames: [ColumnRename], on connection: borrowing SQLiteConnection) throws {
    let insert = try connection.prepare("INSERT OR IGNORE INTO main.buckia_rename VALUES (?1, ?2, ?3)")
    for rename in renames {
      try insert.bind(rename.table.text, at: 0)
      try insert.bind(rename.oldName, at: 1)
      try insert.bind(rename.newName, at: 2)
      try insert.run()
    }
  }

  /// A sender for people: "unsigned", or "key …".
  public static func shown(sender: String) -> String { sender.isEmpty ? "unsigned" : "key \(sender)" }
}

extension SQLiteStatement {
  /// Binds text, or NULL.
  func bind(optional value: String?, at index: Int) throws(SQLiteError) {
    if let value { try bind(value, at: index) } else { try bindNull(at: index) }
  }

  /// Binds a blob, or NULL.
  func bind(optional value: [UInt8]?, at index: Int) throws(SQLiteError) {
    if let value { try bind(value, at: index) } else { try bindNull(at: index) }
  }
}
