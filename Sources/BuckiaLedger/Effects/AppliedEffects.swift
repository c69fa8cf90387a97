import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The tables `buckia_effect` and `buckia_undo`: what applying a diff did to the rows here, and which diffs have been taken back.
///
/// What a diff did is not what its author did: conflicts, columns that only exist here and triggers make a difference. So it is
/// kept as changes of the local rows, from which those are made that take it back. Only so much is kept.
package enum AppliedEffects {
  static let definition = """
    CREATE TABLE main.buckia_effect(
      effect INTEGER PRIMARY KEY,
      first INTEGER NOT NULL,
      last INTEGER NOT NULL,
      size INTEGER NOT NULL,
      contents BLOB NOT NULL
    );
    CREATE INDEX main.buckia_effect_last ON buckia_effect(last, first);
    CREATE TABLE main.buckia_undo(
      entry INTEGER PRIMARY KEY,
      undone INTEGER NOT NULL,
      is_active INTEGER NOT NULL
    );
    CREATE INDEX main.buckia_undo_undone ON buckia_undo(undone);
    """

  /// How much is kept.
  package struct Retention: Sendable, Equatable {
    /// How many bytes of changes are kept of all diffs together, before they are compressed; the oldest go first. 0: nothing is
    /// kept.
    package var bytes: Int
    /// For how many days.
    package var days: Int

    /// Makes a retention.
    package init(bytes: Int, days: Int) {
      self.bytes = bytes
      self.days = days
    }

    /// 4 MiB, 30 days.
    package static let standard = Retention(bytes: 4 << 20, days: 30)

    /// How many bytes are kept while they are not too old.
    package var byteLimit: Int { days > 0 ? bytes : 0 }
  }

  /// What was done to the rows of one table: how its changes are laid out.
  package struct Table: Equatable, Sendable {
    /// The local table.
    package let name: String
    /// The columns of its changes, by their local names; the rowid first where the table is keyed by it.
    package let columns: [String]

    /// Names a table and its columns.
    package init(name: String, columns: [String]) {
      self.name = name
      self.columns = columns
    }
  }

  /// What one part of a diff did.
  package struct Part: Sendable {
    /// The tables.
    package let tables: [Table]
    /// The changes, as a changeset.
    package let changes: [UInt8]
  }

  // MARK: Keeping

  /// Keeps what diffs did. Blocks are kept in the order of what they tell.
  package static func record(_ block: EffectBlock, on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "INSERT INTO main.buckia_effect(first, last, size, contents) VALUES (?1, ?2, ?3, ?4)",
      block.entries.lowerBound, block.entries.upperBound, Int64(block.size), block.contents)
  }

  /// Forgets what is too old or too much.
  ///
  /// - Parameter time: The present time, in milliseconds since 1970.
  package static func prune(
    to retention: Retention, at time: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    let (age, isForEver) = Int64(clamping: retention.days).multipliedReportingOverflow(by: 86_400_000)
    if !isForEver {
      try connection.run(
        cached: """
          DELETE FROM main.buckia_effect WHERE effect <= (
            SELECT max(effect) FROM main.buckia_effect AS e JOIN main.buckia_ledger AS l ON l.entry = e.last
            WHERE l.recorded_at < ?1)
          """, time &- age)
    }
    // Without its beginning, the rest of a diff is of no use.
    try connection.run(
      cached: """
        WITH excess AS (
          SELECT effect, last FROM (
            SELECT effect, last, sum(size) OVER (ORDER BY effect DESC) AS kept FROM main.buckia_effect)
          WHERE kept > ?1 ORDER BY effect DESC LIMIT 1)
        DELETE FROM main.buckia_effect WHERE effect IN (
          SELECT e.effect FROM excess JOIN main.buckia_effect AS e
          WHERE e.effect <= excess.effect OR (e.first = excess.last AND e.last = excess.last))
        """, Int64(retention.bytes))
  }

  // MARK: Reading

  /// A diff that was applied, perhaps with what it did.
  package struct Entry: Sendable {
    /// Its ledger entry.
    package let number: Int64
    /// Its id, if rows are as its author has made them; nil where somebody here has decided what they are: by taking a diff back, or by
    /// answering a conflict with values of their own.
    package let diff: KSUID?
    /// Whether it has written any rows.
    package let hasWritten: Bool
  }

  /// The diffs that were applied since the oldest of which it is kept what they did, the oldest first.
  ///
  /// - Throws: `SQLiteError`.
  package static func entries(on connection: borrowing SQLiteConnection) throws -> [Entry] {
    guard try Ledger.exists(on: connection) else { return [] }
    var found: [Entry] = []
    try connection.forEachRow(
      of: """
        SELECT entry, diff, sender = ?1 OR entry IN (
            SELECT entry FROM main.buckia_conflict WHERE outcome = ?2), inserted + updated + deleted > 0
        FROM main.buckia_ledger
        WHERE state IN ('applied', 'held') AND entry >= (SELECT min(first) FROM main.buckia_effect) ORDER BY entry
        """, binding: [LedgerEntries.ownSender, ConflictOutcome.resolved.rawValue]
    ) { row in
      let isDecidedHere = row.integer(at: 2) != 0
      found.append(
        Entry(
          number: row.integer(at: 0), diff: isDecidedHere ? nil : KSUID(row.text(at: 1) ?? ""),
          hasWritten: row.integer(at: 3) != 0))
    }
    return found
  }

  // MARK: Taking back

  /// The ledger entry that has taken a diff back; nil when the diff stands.
  package static func undo(of entry: Int64, on connection: borrowing SQLiteConnection) throws -> Int64? {
    let query = try connection.cached("SELECT entry FROM main.buckia_undo WHERE undone = ?1 AND is_active")
    defer { query.statement.reset() }
    try query.statement.bind(entry, at: 0)
    return try query.statement.step() ? query.statement.integer(at: 0) : nil
  }

  /// The diff that an entry has taken back; nil for all entries that are no undo.
  package static func undone(by entry: Int64, on connection: borrowing SQLiteConnection) throws -> AppliedDiff? {
    let query = try connection.cached("SELECT undone FROM main.buckia_undo WHERE entry = ?1 AND is_active")
    defer { query.statement.reset() }
    try query.statement.bind(entry, at: 0)
    guard try query.statement.step() else { return nil }
    return AppliedDiff(entry: query.statement.integer(at: 0), id: nil, digest: "")
  }

  /// The entries before another one that have been taken back, the newest first; not the one that this itself takes back.
  package static func undone(before entry: Int64, on connection: borrowing SQLiteConnection) throws -> [Int64] {
    let query = try connection.cached(
      "SELECT undone FROM main.buckia_undo WHERE is_active AND undone < ?1 AND entry <> ?1 ORDER BY undone DESC")
    defer { query.statement.reset() }
    try query.statement.bind(entry, at: 0)
    var entries: [Int64] = []
    while try query.statement.step() { entries.append(query.statement.integer(at: 0)) }
    return entries
  }

  /// Notes that one entry takes another back. Where that one took back a third, the third stands again.
  package static func recordUndo(
    _ entry: Int64, of undone: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(cached: "UPDATE main.buckia_undo SET is_active = 0 WHERE entry = ?1", undone)
    try connection.run(cached: "INSERT INTO main.buckia_undo VALUES (?1, ?2, 1)", entry, undone)
  }
}
