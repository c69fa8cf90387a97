import BuckiaBytes
import SQLiteConnections

/// The table `buckia_ledger`: a row for each diff file that was applied, is held or waits.
package enum LedgerEntries {
  static let definition = """
    CREATE TABLE main.buckia_ledger(
      entry INTEGER PRIMARY KEY,
      diff TEXT,
      sender TEXT NOT NULL,
      digest BLOB NOT NULL,
      raw INTEGER NOT NULL,
      state TEXT NOT NULL,
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
    CREATE UNIQUE INDEX main.buckia_ledger_raw ON buckia_ledger(digest) WHERE raw;
    """

  /// The greatest id that was applied here; nil without a ledger.
  package static func newestID(on connection: borrowing SQLiteConnection) throws -> KSUID? {
    guard try Ledger.exists(on: connection) else { return nil }
    let query = "SELECT max(diff) FROM main.buckia_ledger WHERE state IN ('applied', 'held')"
    return try connection.text(query).flatMap { KSUID($0) }
  }

  /// When the newest entry was written, in milliseconds since 1970; nil where there is none.
  package static func newestTime(on connection: borrowing SQLiteConnection) throws -> Int64? {
    guard try Ledger.exists(on: connection) else { return nil }
    return try connection.cachedInteger("SELECT recorded_at FROM main.buckia_ledger ORDER BY entry DESC LIMIT 1")
  }

  /// What the ledger knows of a diff file.
  package enum Standing: Equatable, Sendable {
    /// Nothing: it was never seen, or it was refused and may be tried again.
    case unknown
    /// This very file is in the ledger.
    case recorded(DiffState)
    /// Another file with the same sender and id is in the ledger.
    case equivocation
  }

  /// Looks a diff file up.
  package static func standing(of key: LedgerKey, on connection: borrowing SQLiteConnection) throws -> Standing {
    let query: PreparedStatement
    if key.isRaw {
      query = try connection.cached("SELECT state, 1 FROM main.buckia_ledger WHERE raw AND digest = ?1")
      try query.statement.bind(key.digest, at: 0)
    } else {
      // A manifest is known by its digest, whoever has signed it or not.
      query = try connection.cached(
        """
        SELECT state, digest = ?1 FROM main.buckia_ledger
        WHERE diff = ?2 AND NOT raw AND (sender = ?3 OR digest = ?1) ORDER BY 2 DESC
        """)
      try query.statement.bind(key.digest, at: 0)
      try query.statement.bind(key.id?.description ?? "", at: 1)
      try query.statement.bind(key.sender, at: 2)
    }
    defer { query.statement.reset() }
    guard try query.statement.step() else { return .unknown }
    guard query.statement.integer(at: 1) != 0 else { return .equivocation }
    return .recorded(DiffState(rawValue: query.statement.text(at: 0) ?? "") ?? .applied)
  }

  /// The number that the next entry gets, as long as the transaction holds the write lock.
  ///
  /// - Throws: `SQLiteError` when the ledger cannot be read.
  package static func nextNumber(on connection: borrowing SQLiteConnection) throws -> Int64 {
    let last = try connection.cachedInteger("SELECT max(entry) FROM main.buckia_ledger") ?? 0
    if last < .max { return max(last, 0) + 1 }
    // The greatest number is taken. Anybody can have written it, so the numbers before it are not used up.
    let free = """
      SELECT entry + 1 FROM main.buckia_ledger AS e
      WHERE entry BETWEEN 0 AND 9223372036854775806
        AND NOT EXISTS (SELECT 1 FROM main.buckia_ledger AS n WHERE n.entry = e.entry + 1)
      ORDER BY entry DESC LIMIT 1
      """
    return try connection.integer(free) ?? 1
  }

  /// Writes an entry, in the place of a waiting one of the same file.
  ///
  /// - Parameters:
  ///   - key: The identity of the file.
  ///   - state: What became of it.
  ///   - place: The diff's place in a stream; nil for none.
  ///   - number: The entry's number; nil for the next one.
  ///   - file: The file's name, without its folder.
  ///   - counts: What was done.
  ///   - reason: Why it is held or waits.
  ///   - time: When, in milliseconds since 1970.
  ///   - connection: The database, with a transaction open.
  package static func record(
    _ key: LedgerKey, placed place: StreamPlace? = nil, state: DiffState, number: Int64? = nil, file: String,
    counts: ApplyCounts = ApplyCounts(),
    reason: String? = nil, at time: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    let id = key.id?.description
    try removeWaiting(key, isPlaced: place != nil, on: connection)
    try connection.run(
      cached: """
        INSERT INTO main.buckia_ledger(
          entry, diff, sender, digest, raw, state, file, reason, recorded_at, inserted, updated, deleted, conflicts, omitted)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
        """, number, id, key.sender, key.digest, Int64(key.isRaw ? 1 : 0), state.rawValue, file, reason, time,
      Int64(counts.inserted), Int64(counts.updated), Int64(counts.deleted), Int64(counts.conflicts),
      Int64(counts.omitted))
    if let place { try StreamEntries.record(place, of: key.sender, on: connection) }
  }

  /// Removes the entry of a file that has waited, and its place in a stream.
  ///
  /// - Parameter isPlaced: Whether it has one.
  package static func removeWaiting(
    _ key: LedgerKey, isPlaced: Bool, on connection: borrowing SQLiteConnection
  ) throws {
    if isPlaced { try StreamEntries.removeWaiting(key, on: connection) }
    // What identifies the file decides, as in `standing`: a raw changeset can have waited under another name.
    if key.isRaw {
      try connection.run(
        cached: "DELETE FROM main.buckia_ledger WHERE raw AND digest = ?1 AND state = 'waiting'", key.digest)
    } else {
      try connection.run(
        cached: """
          DELETE FROM main.buckia_ledger WHERE diff = ?1 AND digest = ?2 AND NOT raw AND state = 'waiting'
          """, key.id?.description, key.digest)
    }
  }

  /// Adds to an entry what was done when more of its diff could be applied.
  package static func add(_ counts: ApplyCounts, to number: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: """
        UPDATE main.buckia_ledger SET inserted = inserted + ?2, updated = updated + ?3, deleted = deleted + ?4,
          conflicts = conflicts + ?5, omitted = omitted + ?6
        WHERE entry = ?1
        """, number, Int64(counts.inserted), Int64(counts.updated), Int64(counts.deleted), Int64(counts.conflicts),
      Int64(counts.omitted))
  }

  /// Removes an entry that nothing refers to.
  package static func remove(_ key: LedgerKey, on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "DELETE FROM main.buckia_ledger WHERE digest = ?1 AND sender = ?2 AND diff IS ?3", key.digest, key.sender,
      key.id?.description)
  }

  /// Who has sent a diff that was applied here, and when it was, in milliseconds since 1970; nil where none with this id was.
  package static func applied(
    _ id: KSUID, on connection: borrowing SQLiteConnection
  ) throws -> (sender: String, time: Int64)? {
    let query = try connection.cached(
      "SELECT sender, recorded_at FROM main.buckia_ledger WHERE diff = ?1 AND state IN ('applied', 'held') LIMIT 1")
    defer { query.statement.reset() }
    try query.statement.bind(id.description, at: 0)
    guard try query.statement.step() else { return nil }
    return (query.statement.text(at: 0) ?? "", query.statement.integer(at: 1))
  }

  /// What the ledger has for a sender where the database itself has made the changes.
  package static let ownSender = "own"

  /// What the record of a refused file has for a sender where the file could not be read that far.
  package static let unknownSender = "unknown"

  /// The verified key in what the ledger has for a sender; nil where it has none.
  package static func verifiedKey(of sender: String) -> String? {
    ["", ownSender, unknownSender, LedgerKey.mergeSender].contains(sender) ? nil : sender
  }

  /// A sender for people: "unsigned", "unknown", "key …", "this database" or "a merge".
  package static func shown(sender: String) -> String {
    switch sender {
    case "": "unsigned"
    case ownSender: "this database"
    case LedgerKey.mergeSender: "a merge"
    case unknownSender: unknownSender
    default: "key \(sender)"
    }
  }
}
