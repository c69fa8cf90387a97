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

  /// The time of the newest entry, in milliseconds since 1970; nil for none.
  package static func newestTime(on connection: borrowing SQLiteConnection) throws -> Int64? {
    guard try Ledger.exists(on: connection) else { return nil }
    return try connection.cachedInteger("SELECT recorded_at FROM main.buckia_ledger ORDER BY entry DESC LIMIT 1")
  }

  /// The standing of a diff file in the ledger.
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
      // The digest identifies a manifest, whatever its signature.
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
    // The greatest number is taken. Any program can have written it, and smaller numbers are still free.
    let free = """
      SELECT entry + 1 FROM main.buckia_ledger AS e
      WHERE entry BETWEEN 0 AND 9223372036854775806
        AND NOT EXISTS (SELECT 1 FROM main.buckia_ledger AS n WHERE n.entry = e.entry + 1)
      ORDER BY entry DESC LIMIT 1
      """
    return try connection.integer(free) ?? 1
  }

  /// The numbers of the entries after another one that have changed rows.
  ///
  /// - Throws: `SQLiteError` when the ledger cannot be read.
  package static func numbers(after number: Int64, on connection: borrowing SQLiteConnection) throws -> [Int64] {
    try connection.rows(
      of: "SELECT entry FROM main.buckia_ledger WHERE entry > ?1 AND inserted + updated + deleted > 0 ORDER BY entry",
      number
    ) { $0.integer(at: 0) }
  }

  /// Writes an entry, in the place of a waiting one of the same file.
  ///
  /// - Parameters:
  ///   - key: The identity of the file.
  ///   - state: The state.
  ///   - place: The diff's place in a stream; nil for none.
  ///   - number: The entry's number; nil for the next one.
  ///   - file: The file's name, without its folder.
  ///   - counts: The counts.
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
  /// - Parameter isPlaced: True if it has one.
  package static func removeWaiting(
    _ key: LedgerKey, isPlaced: Bool, on connection: borrowing SQLiteConnection
  ) throws {
    if isPlaced { try StreamEntries.removeWaiting(key, on: connection) }
    // The identity of the file decides, as in `standing`: a raw changeset can have waited under another name.
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

  /// Adds the counts of a held part to the entry of its diff.
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

  /// The sender of an applied diff, and the time in milliseconds since 1970; nil if no diff with this id was applied.
  package static func applied(
    _ id: KSUID, on connection: borrowing SQLiteConnection
  ) throws -> (sender: String, time: Int64)? {
    try connection.first(
      ofCached:
        "SELECT sender, recorded_at FROM main.buckia_ledger WHERE diff = ?1 AND state IN ('applied', 'held') LIMIT 1",
      id.description
    ) { row in
      (row.text(at: 0) ?? "", row.integer(at: 1))
    }
  }

  /// The ledger's sender for changes of the database itself.
  package static let ownSender = "own"

  /// The ledger's sender for a refused file that could not be read as far as its signature.
  package static let unknownSender = "unknown"

  /// The verified key in the ledger's form of a sender; nil for none.
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

/// The identity of a diff file: the verified key of its sender, its id, and the digest of its manifest.
package struct LedgerKey: Hashable, Sendable {
  /// The verified key of the sender in hex, or empty for unsigned files.
  package let sender: String
  /// The id; nil for a raw changeset that has none.
  package let id: KSUID?
  /// SHA-256 of the manifest, or of a raw changeset's bytes.
  package let digest: [UInt8]
  /// True if this is a raw changeset: then the digest alone identifies it.
  package let isRaw: Bool

  /// The ledger's sender for a merge of database files, whose changes have none.
  package static let mergeSender = "merge"

  /// The key of a merge of database files. Every merge is distinct, even with the same changes as another.
  ///
  /// - Parameter nonce: 32 random bytes.
  package init(mergeWith nonce: [UInt8]) {
    self.init(sender: LedgerKey.mergeSender, id: nil, digest: nonce, isRaw: true)
  }

  /// Creates a key.
  package init(sender: String, id: KSUID?, digest: [UInt8], isRaw: Bool) {
    self.sender = sender
    self.id = id
    self.digest = digest
    self.isRaw = isRaw
  }
}

/// The counts of changed rows and of conflicts.
public struct ApplyCounts: Equatable, Sendable {
  /// Rows inserted.
  public var inserted = 0
  /// Rows updated.
  public var updated = 0
  /// Rows deleted.
  public var deleted = 0
  /// Conflicts met.
  public var conflicts = 0
  /// Conflicts that a rule has decided.
  public var decidedByRule = 0
  /// Changes not written because of a conflict.
  public var omitted = 0
  /// Changes without effect: the local row was equal already, or deleted.
  public var unchanged = 0

  /// Rows inserted, updated and deleted.
  package var written: Int { inserted + updated + deleted }

  /// Creates zero counts.
  public init() {}

  /// Creates the counts of changes that were all written, or are to be.
  package init(inserted: Int, updated: Int, deleted: Int) {
    self.inserted = inserted
    self.updated = updated
    self.deleted = deleted
  }

  /// Adds the counts of another part of the work.
  package static func += (sum: inout ApplyCounts, other: ApplyCounts) {
    sum.inserted += other.inserted
    sum.updated += other.updated
    sum.deleted += other.deleted
    sum.conflicts += other.conflicts
    sum.decidedByRule += other.decidedByRule
    sum.omitted += other.omitted
    sum.unchanged += other.unchanged
  }
}

/// The table `buckia_refused`: refused files. They occupy no id and block nothing, and their number is limited.
package enum RefusedFiles {
  static let definition = """
    CREATE TABLE main.buckia_refused(
      digest BLOB PRIMARY KEY NOT NULL,
      diff TEXT,
      sender TEXT NOT NULL,
      state TEXT NOT NULL,
      reason TEXT NOT NULL,
      file TEXT NOT NULL,
      first_at INTEGER NOT NULL,
      last_at INTEGER NOT NULL,
      times INTEGER NOT NULL DEFAULT 1
    ) WITHOUT ROWID;
    """

  /// The most refused files that are kept; the oldest go first.
  package static let limit = 1_000
  /// The longest reason that is kept, in characters.
  private static let reasonLimit = 1_000
  /// The longest file name that is kept, in characters.
  private static let nameLimit = 255

  /// Records a refused file, or that it was refused once more.
  ///
  /// - Parameters:
  ///   - digest: SHA-256 of the file's bytes.
  ///   - id: The claimed id, if it could be read.
  ///   - sender: The verified sender; empty for an unsigned file; ``LedgerEntries/unknownSender`` if it could not be
  ///     read.
  ///   - state: `quarantined` or `rejected`.
  ///   - reason: Why.
  ///   - file: The file's name without its folder.
  ///   - time: When, in milliseconds since 1970.
  package static func record(
    digest: [UInt8], id: KSUID?, sender: String, state: DiffState, reason: String, file: String, at time: Int64,
    on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: """
        INSERT INTO main.buckia_refused(digest, diff, sender, state, reason, file, first_at, last_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
        ON CONFLICT (digest) DO UPDATE SET
          state = excluded.state, reason = excluded.reason, file = excluded.file, last_at = excluded.last_at,
          times = times + 1
        """, digest, id?.description, sender, state.rawValue,
      String(reason.prefix(reasonLimit)), String(file.prefix(nameLimit)), time)
    try connection.execute(
      """
      DELETE FROM main.buckia_refused WHERE digest IN (
        SELECT digest FROM main.buckia_refused ORDER BY last_at DESC, digest LIMIT -1 OFFSET \(limit))
      """)
  }

  /// True if a file with this id was refused that came from this sender, as far as it could be read.
  package static func contain(
    _ id: KSUID, of sender: String, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    try connection.hasRow(
      cached: "SELECT 1 FROM main.buckia_refused WHERE diff = ?1 AND sender IN (?2, ?3) LIMIT 1", id.description,
      sender, LedgerEntries.unknownSender)
  }

  /// Deletes the record of a file that has been applied now, and those of the same diff that were rejected before: such as the part of it that was
  /// there while it was being copied.
  ///
  /// - Parameter key: The identity of the diff; nil where it has none.
  package static func remove(
    digest: [UInt8], of key: LedgerKey? = nil, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: """
        DELETE FROM main.buckia_refused WHERE digest = ?1
          OR diff = ?2 AND sender IN (?3, '\(LedgerEntries.unknownSender)') AND state = 'rejected'
        """, digest, key?.id?.description, key?.sender)
  }
}

/// The state of a diff file.
public enum DiffState: String, Sendable, CaseIterable, Codable {
  /// Its changes are in the database.
  case applied
  /// It was applied before; nothing happened now. Never in the ledger itself.
  case alreadyApplied = "already-applied"
  /// It cannot be applied yet: its predecessor is missing, or its id lies in the future.
  case waiting
  /// Parts of it wait for the application's own upgrade.
  case held
  /// The file does what its sender may not do.
  case quarantined
  /// It was refused, and nothing of it was applied.
  case rejected
}
