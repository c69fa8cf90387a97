import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The tables that record which replicas know of a deletion: `buckia_sent_deletion` has the deletions that shares have sent,
/// `buckia_received_deletion` those that received streams contain, and `buckia_stream_acknowledgement` how much of a share the
/// author of a stream had applied when making the stream's last diff.
///
/// The clock of a table keeps a deletion until all replicas know of it: see `Schemas/applying.md`.
package enum TombstoneAcknowledgements {
  static let definition = """
    CREATE TABLE main.buckia_sent_deletion(
      clock INTEGER NOT NULL,
      key BLOB NOT NULL,
      share INTEGER NOT NULL,
      diff TEXT NOT NULL,
      sequence INTEGER NOT NULL,
      hash INTEGER,
      PRIMARY KEY (clock, key, share)
    ) WITHOUT ROWID;
    CREATE INDEX main.buckia_sent_deletion_sequence ON buckia_sent_deletion(share, sequence);
    CREATE TABLE main.buckia_received_deletion(
      clock INTEGER NOT NULL,
      key BLOB NOT NULL,
      sender TEXT NOT NULL,
      stream BLOB NOT NULL,
      diff TEXT NOT NULL,
      PRIMARY KEY (clock, key, sender, stream)
    ) WITHOUT ROWID;
    CREATE TABLE main.buckia_stream_acknowledgement(
      sender TEXT NOT NULL,
      stream BLOB NOT NULL,
      share INTEGER NOT NULL,
      through INTEGER NOT NULL,
      PRIMARY KEY (sender, stream, share)
    ) WITHOUT ROWID;
    """

  // MARK: Sent deletions

  /// Records that a diff of a share contains a deletion.
  ///
  /// - Parameters:
  ///   - key: The row's key, as in `buckia_held_change`.
  ///   - diff: The diff that has deleted the row first.
  ///   - sequence: The number of the diff in the share's stream.
  ///   - hash: The hash of the deleted row; nil if only its key is known.
  /// - Throws: `SQLiteError`.
  package static func noteSent(
    _ key: [UInt8], in clock: Int64, deletedBy diff: KSUID, to share: Int64, at sequence: Int64, hash: UInt64?,
    on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "REPLACE INTO main.buckia_sent_deletion VALUES (?1, ?2, ?3, ?4, ?5, ?6)", clock, key, share,
      diff.description, sequence, hash.map { Int64(bitPattern: $0) })
  }

  /// A diff that has deleted a row, if only the later diffs of a share contain the deletion.
  ///
  /// - Parameters:
  ///   - key: The row's key, as in `buckia_held_change`; nil for any row.
  ///   - sequence: The number of the last diff that does not count.
  ///   - hash: The hash of the deleted row; nil for any.
  /// - Returns: nil for none.
  /// - Throws: `SQLiteError`.
  package static func sentDeletion(
    _ key: [UInt8]? = nil, in clock: Int64, to share: Int64, beyond sequence: Int64, hash: UInt64? = nil,
    on connection: borrowing SQLiteConnection
  ) throws -> KSUID? {
    try connection.first(
      ofCached: """
        SELECT diff FROM main.buckia_sent_deletion
        WHERE clock = ?1 AND share = ?2 AND sequence > ?3 AND (?4 IS NULL OR key = ?4) AND (?5 IS NULL OR hash = ?5)
        LIMIT 1
        """, clock, share, sequence, key, hash.map { Int64(bitPattern: $0) }
    ) { KSUID($0.text(at: 0) ?? "") } ?? nil
  }

  /// Deletes the deletions of a share that not all recipients have applied: a snapshot replaces these diffs, and
  /// contains no deletions.
  ///
  /// - Parameter sequence: The number up to which everybody has applied the share.
  /// - Throws: `SQLiteError`.
  package static func forgetSent(
    to share: Int64, beyond sequence: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "DELETE FROM main.buckia_sent_deletion WHERE share = ?1 AND sequence > ?2", share, sequence)
  }

  /// Begins another stream of a share. It is unknown what its recipients have of that.
  ///
  /// - Throws: `SQLiteError`.
  package static func restart(_ share: Int64, on connection: borrowing SQLiteConnection) throws {
    try forgetSent(to: share, beyond: 0, on: connection)
    // A replica that knew of all forgotten deletions still does. The first diff is a snapshot, which contains no
    // deletions.
    try connection.run(
      cached: """
        UPDATE main.buckia_stream_acknowledgement AS k SET through = through >= coalesce(
          (SELECT max(f.through) FROM main.buckia_collected_tombstone AS f WHERE f.share = k.share), 1)
        WHERE share = ?1
        """, share)
    try connection.run(cached: "UPDATE main.buckia_collected_tombstone SET through = 1 WHERE share = ?1", share)
  }

  // MARK: Received deletions

  /// Records that a stream contains a deletion.
  ///
  /// - Parameters:
  ///   - key: The row's key, as in `buckia_held_change`.
  ///   - diff: The diff that has deleted the row first.
  /// - Throws: `SQLiteError`.
  package static func noteReceived(
    _ key: [UInt8], in clock: Int64, deletedBy diff: KSUID, from sender: String, _ stream: [UInt8],
    on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "REPLACE INTO main.buckia_received_deletion VALUES (?1, ?2, ?3, ?4, ?5)", clock, key, sender, stream,
      diff.description
    )
  }

  /// True if a stream of a replica contains the deletion of a row.
  ///
  /// - Parameter key: The row's key, as in `buckia_held_change`.
  /// - Throws: `SQLiteError`.
  package static func hasReceived(
    _ key: [UInt8], in clock: Int64, from replica: [UInt8], on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    try connection.hasRow(
      cached: """
        SELECT 1 FROM main.buckia_received_deletion AS h JOIN main.buckia_stream_author AS a ON a.sender = h.sender AND a.stream = h.stream
        WHERE h.clock = ?1 AND h.key = ?2 AND a.replica = ?3
        """, clock, key, replica)
  }

  // MARK: Acknowledged

  /// Records the acknowledgement of a share in the last diff of a stream.
  ///
  /// - Throws: `SQLiteError`.
  package static func noteAcknowledgement(
    _ through: Int64, of share: Int64, in stream: [UInt8], from sender: String,
    on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: """
        INSERT INTO main.buckia_stream_acknowledgement VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT DO UPDATE SET through = max(through, excluded.through)
        """, sender, stream, share, through)
  }

  /// The acknowledgement of a share in the last diff of a stream; 0 for none.
  ///
  /// - Throws: `SQLiteError`.
  package static func acknowledged(
    _ share: Int64, in stream: [UInt8], from sender: String, on connection: borrowing SQLiteConnection
  ) throws -> Int64 {
    try connection.cachedInteger(
      "SELECT through FROM main.buckia_stream_acknowledgement WHERE sender = ?1 AND stream = ?2 AND share = ?3", sender,
      stream, share) ?? 0
  }

  /// The acknowledgement of a share by all streams of a replica; 0 for none.
  ///
  /// - Throws: `SQLiteError`.
  package static func acknowledged(
    _ share: Int64, by sender: String, _ replica: [UInt8], on connection: borrowing SQLiteConnection
  ) throws -> Int64 {
    try connection.cachedInteger(
      """
      SELECT max(k.through) FROM main.buckia_stream_acknowledgement AS k
      JOIN main.buckia_stream_author AS a ON a.sender = k.sender AND a.stream = k.stream
      WHERE k.sender = ?1 AND a.replica = ?2 AND k.share = ?3
      """, sender, replica, share) ?? 0
  }

  // MARK: Deletions

  /// Calls `body` with the deletions in some diffs of a share: their clocks, and the keys of the rows.
  ///
  /// - Parameter sequences: The numbers of the diffs.
  /// - Throws: `SQLiteError`; what `body` throws.
  package static func forEachSent(
    in sequences: ClosedRange<Int64>, of share: Int64, on connection: borrowing SQLiteConnection,
    _ body: (Int64, [UInt8]) throws -> Void
  ) throws {
    try connection.forEachRow(
      of: "SELECT clock, key FROM main.buckia_sent_deletion WHERE share = ?1 AND sequence BETWEEN ?2 AND ?3",
      binding: [share, sequences.lowerBound, sequences.upperBound]
    ) { row in
      try body(row.integer(at: 0), row.blob(at: 1))
    }
  }

  /// The keys of deleted rows in any share or stream, in their order.
  ///
  /// - Parameters:
  ///   - key: The key after which they begin; nil for the first.
  ///   - limit: The most keys.
  /// - Throws: `SQLiteError`.
  package static func keys(
    in clock: Int64, behind key: [UInt8]?, limit: Int, on connection: borrowing SQLiteConnection
  ) throws -> [[UInt8]] {
    // No key is empty.
    try connection.rows(
      ofCached: """
        SELECT key FROM main.buckia_sent_deletion WHERE clock = ?1 AND key > ?2
        UNION SELECT key FROM main.buckia_received_deletion WHERE clock = ?1 AND key > ?2 ORDER BY key LIMIT ?3
        """, clock, key ?? [], Int64(limit)
    ) { $0.blob(at: 0) }
  }

  // MARK: Clocks

  /// Deletes the records of a dropped clock.
  static func drop(_ clock: Int64, on connection: borrowing SQLiteConnection) throws {
    for table in ["buckia_sent_deletion", "buckia_received_deletion", "buckia_collected_tombstone"] {
      try connection.run(cached: "DELETE FROM main.\(table) WHERE clock = ?1", clock)
    }
  }
}

extension RowClocks {
  /// The diff that has deleted a row, by its clock; nil if the row is not deleted.
  ///
  /// - Parameter key: The row's key, as in `buckia_held_change`.
  /// - Throws: `SQLiteError`, `ChangesetError`.
  package static func deletion(
    of key: [UInt8], in clock: Int64, on connection: borrowing SQLiteConnection
  ) throws -> KSUID? {
    let values = try ChangesetValue.record(key)
    let condition = values.indices.map { "c.k\($0) = ?\($0 + 1)" }.joined(separator: " AND ")
    let query = try connection.cached(
      """
      SELECT s.diff FROM main.buckia_clock_\(clock) AS c JOIN main.buckia_row_version AS s ON s.row_version = c.row_versions
      WHERE \(condition) AND typeof(c.row_versions) = 'integer' AND s.operation = 'delete'
      """)
    defer {
      query.statement.reset()
      query.statement.clearBindings()
    }
    for (index, value) in values.enumerated() { try query.statement.bind(value ?? .null, at: index) }
    return try query.statement.step() ? query.statement.text(at: 0).flatMap { KSUID($0) } : nil
  }

  /// Deletes the records of a row's deletion.
  ///
  /// - Parameter key: The row's key, as in `buckia_held_change`.
  /// - Throws: `SQLiteError`, `ChangesetError`.
  package static func forgetDeletion(
    of key: [UInt8], in clock: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    let values = try ChangesetValue.record(key)
    let condition = values.indices.map { "k\($0) = ?\($0 + 1)" }.joined(separator: " AND ")
    let statement = try connection.cached("DELETE FROM main.buckia_clock_\(clock) WHERE \(condition)")
    defer { statement.statement.clearBindings() }
    for (index, value) in values.enumerated() { try statement.statement.bind(value ?? .null, at: index) }
    try statement.statement.run()
  }
}

/// The table `buckia_collected_tombstone`: the diffs up to which deletions are forgotten, because all replicas know of them.
///
/// A sender must have applied these diffs, because earlier changes may bring back a deleted row.
package enum ForgottenDeletions {
  static let definition = """
    CREATE TABLE main.buckia_collected_tombstone(
      clock INTEGER NOT NULL,
      share INTEGER NOT NULL,
      through INTEGER NOT NULL,
      diff TEXT NOT NULL,
      PRIMARY KEY (clock, share)
    ) WITHOUT ROWID;
    """

  /// True if the table exists and is not empty.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    guard try Ledger.exists(on: connection) else { return false }
    return try connection.cachedInteger("SELECT 1 FROM main.buckia_collected_tombstone LIMIT 1") != nil
  }

  /// Records that a deletion is forgotten.
  ///
  /// - Parameters:
  ///   - diff: The diff that has deleted the row first.
  ///   - sent: The numbers of the diffs with the deletion, by share.
  /// - Throws: `SQLiteError`.
  package static func note(
    _ diff: KSUID, in clock: Int64, sentAt sent: [Int64: Int64], on connection: borrowing SQLiteConnection
  ) throws {
    // The share 0 stands for all forgotten deletions.
    for (share, sequence) in sent.merging([0: 0], uniquingKeysWith: { first, _ in first }) {
      try connection.run(
        cached: """
          INSERT INTO main.buckia_collected_tombstone VALUES (?1, ?2, ?3, ?4)
          ON CONFLICT DO UPDATE SET through = max(through, excluded.through), diff = max(diff, excluded.diff)
          """, clock, share, sequence, diff.description)
    }
  }

  /// The greatest diff whose deletions are forgotten; nil for none.
  ///
  /// - Throws: `SQLiteError`.
  package static func newest(in clock: Int64, on connection: borrowing SQLiteConnection) throws -> KSUID? {
    try connection.first(
      ofCached: "SELECT diff FROM main.buckia_collected_tombstone WHERE clock = ?1 AND share = 0", clock
    ) {
      row in
      row.text(at: 0).flatMap { KSUID($0) }
    } ?? nil
  }

  /// The greatest diff whose deletions in any of some tables are forgotten; nil for none.
  ///
  /// - Throws: `SQLiteError`.
  package static func newest(in tables: [TableName], on connection: borrowing SQLiteConnection) throws -> KSUID? {
    var newest: KSUID?
    for clock in try clocks(of: tables, on: connection) {
      if let found = try self.newest(in: clock, on: connection) { newest = max(newest ?? found, found) }
    }
    return newest
  }

  /// A share that a sender of changes must have applied.
  package typealias Requirement = (share: Int64, stream: [UInt8], incarnation: [UInt8], through: Int64)

  /// The shares that a sender must have applied before their changes of some tables are accepted, among those that they
  /// have acknowledged once.
  ///
  /// - Parameters:
  ///   - sender: The verified key; empty for unsigned diffs, whose replicas distinguish their senders.
  ///   - replica: The sender's replica; nil if the diff names none.
  ///   - tables: The tables.
  /// - Throws: `SQLiteError`.
  package static func requirements(
    of sender: String, _ replica: [UInt8]?, in tables: [TableName], on connection: borrowing SQLiteConnection
  ) throws -> [Requirement] {
    var found: [Requirement] = []
    for clock in try clocks(of: tables, on: connection) {
      try connection.forEachRow(
        ofCached: """
          SELECT f.share, s.stream, s.incarnation, f.through FROM main.buckia_collected_tombstone AS f
          JOIN main.buckia_share AS s ON s.share = f.share
          WHERE f.clock = ?1 AND EXISTS (
            SELECT 1 FROM main.buckia_acknowledgement AS a WHERE a.share = f.share AND a.sender = ?2 AND (a.sender <> '' OR a.replica = ?3))
          """, binding: [clock, sender, replica]
      ) { row in
        found.append((row.integer(at: 0), row.blob(at: 1), row.blob(at: 2), row.integer(at: 3)))
      }
    }
    return found
  }

  private static func clocks(of tables: [TableName], on connection: borrowing SQLiteConnection) throws -> [Int64] {
    try tables.compactMap { table in
      try connection.integer("SELECT clock FROM main.buckia_clock WHERE table_name = ?1", binding: [table.text])
    }
  }

  /// True if a diff has inserted rows into a table here once.
  ///
  /// - Throws: `SQLiteError`.
  package static func hasInserted(
    _ diff: KSUID, in clock: Int64, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    try connection.hasRow(
      cached: "SELECT 1 FROM main.buckia_row_version WHERE clock = ?1 AND diff = ?2 AND operation = 'insert' LIMIT 1",
      clock,
      diff.description)
  }
}

/// The table `buckia_tombstone`: deleted rows of tables without a clock that shares or received streams contain, with a
/// hash of the last version.
///
/// A replica that does not know of the deletion may still relay the row. An unchanged row stays deleted.
package enum Tombstones {
  static let definition = """
    CREATE TABLE main.buckia_tombstone(
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      hash INTEGER NOT NULL,
      diff TEXT NOT NULL,
      PRIMARY KEY (table_name, key)
    ) WITHOUT ROWID;
    """

  /// Records a deleted row.
  ///
  /// - Parameters:
  ///   - key: The values of its key, in the format of changesets.
  ///   - hash: The hash of the row, as streams have it.
  ///   - diff: The diff that tells of it; the first one counts.
  /// - Throws: `SQLiteError`.
  package static func note(
    _ key: [UInt8], of table: TableName, _ hash: UInt64, by diff: KSUID, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: """
        INSERT INTO main.buckia_tombstone VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT DO UPDATE SET hash = excluded.hash, diff = excluded.diff WHERE hash <> excluded.hash
        """, table.text, key, Int64(bitPattern: hash), diff.description)
  }

  /// The keys of the deleted rows of a table, and the diffs that have deleted them.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(
    of table: TableName, on connection: borrowing SQLiteConnection
  ) throws -> [(key: [UInt8], diff: KSUID)] {
    try connection.rows(of: "SELECT key, diff FROM main.buckia_tombstone WHERE table_name = ?1", table.text) {
      ($0.blob(at: 0), KSUID($0.text(at: 1) ?? "") ?? .minimum)
    }
  }

  /// True if deleted rows of a table are known.
  ///
  /// - Throws: `SQLiteError`.
  package static func exist(of table: TableName, on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.hasRow(cached: "SELECT 1 FROM main.buckia_tombstone WHERE table_name = ?1 LIMIT 1", table.text)
  }

  /// The hash of a deleted row; nil for none.
  ///
  /// - Throws: `SQLiteError`.
  package static func hash(
    of key: [UInt8], in table: TableName, on connection: borrowing SQLiteConnection
  ) throws -> UInt64? {
    try row(key, of: table, on: connection)?.hash
  }

  /// The hash of a deleted row, and the first diff with the deletion; nil where none is known by the key.
  ///
  /// - Throws: `SQLiteError`.
  package static func row(
    _ key: [UInt8], of table: TableName, on connection: borrowing SQLiteConnection
  ) throws -> (hash: UInt64, diff: KSUID)? {
    try connection.first(
      ofCached: "SELECT hash, diff FROM main.buckia_tombstone WHERE table_name = ?1 AND key = ?2", table.text, key
    ) { (UInt64(bitPattern: $0.integer(at: 0)), KSUID($0.text(at: 1) ?? "") ?? .minimum) }
  }

  /// The last key of a deleted row that sorts before another one; nil for none.
  ///
  /// - Throws: `SQLiteError`.
  package static func last(
    before key: [UInt8], of table: TableName, on connection: borrowing SQLiteConnection
  ) throws -> [UInt8]? {
    try connection.first(
      ofCached: """
        SELECT key FROM main.buckia_tombstone WHERE table_name = ?1 AND key < ?2 ORDER BY key DESC LIMIT 1
        """, table.text, key
    ) { $0.blob(at: 0) }
  }

  /// Deletes the record of a row that exists again.
  ///
  /// - Throws: `SQLiteError`.
  package static func remove(_ key: [UInt8], of table: TableName, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_tombstone WHERE table_name = ?1 AND key = ?2", table.text, key)
  }
}
