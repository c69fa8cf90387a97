import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The tables that say who knows of a deletion: `buckia_told` has those that shares have told of, `buckia_heard` those that streams of
/// others have, and `buckia_stream_acknowledgement` how much of a share the author of a stream had applied when they made its last diff.
///
/// A deletion is kept in the clock of its table until everybody knows of it: see `Schemas/applying.md`.
package enum DeletionNotices {
  static let definition = """
    CREATE TABLE main.buckia_told(
      clock INTEGER NOT NULL,
      key BLOB NOT NULL,
      share INTEGER NOT NULL,
      diff TEXT NOT NULL,
      sequence INTEGER NOT NULL,
      PRIMARY KEY (clock, key, share)
    ) WITHOUT ROWID;
    CREATE INDEX main.buckia_told_sequence ON buckia_told(share, sequence);
    CREATE TABLE main.buckia_heard(
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

  // MARK: Told

  /// Notes that a diff of a share tells of a deletion.
  ///
  /// - Parameters:
  ///   - key: The row's key, as in `buckia_held_change`.
  ///   - diff: The diff that has deleted the row first.
  ///   - sequence: The number of the diff that tells of it, in the share's stream.
  /// - Throws: `SQLiteError`.
  package static func noteTold(
    _ key: [UInt8], in clock: Int64, deletedBy diff: KSUID, to share: Int64, at sequence: Int64,
    on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "REPLACE INTO main.buckia_told VALUES (?1, ?2, ?3, ?4, ?5)", clock, key, share, diff.description, sequence
    )
  }

  /// Forgets what a share has told of and not everybody has applied: a snapshot takes the place of these diffs, and does not say what
  /// was deleted.
  ///
  /// - Parameter sequence: The number up to which everybody has applied the share.
  /// - Throws: `SQLiteError`.
  package static func forgetTold(
    to share: Int64, beyond sequence: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(cached: "DELETE FROM main.buckia_told WHERE share = ?1 AND sequence > ?2", share, sequence)
  }

  /// Begins a share again, in another stream: nothing is known of what its recipients have of that.
  ///
  /// - Throws: `SQLiteError`.
  package static func restart(_ share: Int64, on connection: borrowing SQLiteConnection) throws {
    try forgetTold(to: share, beyond: 0, on: connection)
    // Whoever knew of everything that is forgotten does so still. Its first diff is a snapshot, which tells of no deletion.
    try connection.run(
      cached: """
        UPDATE main.buckia_stream_acknowledgement AS k SET through = through >= coalesce(
          (SELECT max(f.through) FROM main.buckia_forgotten AS f WHERE f.share = k.share), 1)
        WHERE share = ?1
        """, share)
    try connection.run(cached: "UPDATE main.buckia_forgotten SET through = 1 WHERE share = ?1", share)
  }

  // MARK: Heard

  /// Notes that a stream tells of a deletion.
  ///
  /// - Parameters:
  ///   - key: The row's key, as in `buckia_held_change`.
  ///   - diff: The diff that has deleted the row first.
  /// - Throws: `SQLiteError`.
  package static func noteHeard(
    _ key: [UInt8], in clock: Int64, deletedBy diff: KSUID, from sender: String, _ stream: [UInt8],
    on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "REPLACE INTO main.buckia_heard VALUES (?1, ?2, ?3, ?4, ?5)", clock, key, sender, stream, diff.description
    )
  }

  // MARK: Acknowledged

  /// Notes how much of a share the author of a stream has applied, as its last diff says.
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

  /// How much of a share the author of a stream has applied, as its last diff says; 0 for nothing.
  ///
  /// - Throws: `SQLiteError`.
  package static func acknowledged(
    _ share: Int64, in stream: [UInt8], from sender: String, on connection: borrowing SQLiteConnection
  ) throws -> Int64 {
    try connection.cachedInteger(
      "SELECT through FROM main.buckia_stream_acknowledgement WHERE sender = ?1 AND stream = ?2 AND share = ?3", sender,
      stream, share) ?? 0
  }

  /// How much of a share a replica has applied, by what all of its streams say; 0 for nothing.
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

  /// Gives the deletions that some diffs of a share tell of: their clocks, and the keys of the rows.
  ///
  /// - Parameter sequences: The numbers of the diffs.
  /// - Throws: `SQLiteError`; what `body` throws.
  package static func forEachTold(
    in sequences: ClosedRange<Int64>, of share: Int64, on connection: borrowing SQLiteConnection,
    _ body: (Int64, [UInt8]) throws -> Void
  ) throws {
    try connection.forEachRow(
      of: "SELECT clock, key FROM main.buckia_told WHERE share = ?1 AND sequence BETWEEN ?2 AND ?3",
      binding: [share, sequences.lowerBound, sequences.upperBound]
    ) { row in
      try body(row.integer(at: 0), row.blob(at: 1))
    }
  }

  /// The keys of rows of whose deletion somebody was told, or has told, in their order.
  ///
  /// - Parameters:
  ///   - key: The key behind which they begin; nil for the first.
  ///   - limit: How many there are at most.
  /// - Throws: `SQLiteError`.
  package static func keys(
    in clock: Int64, behind key: [UInt8]?, limit: Int, on connection: borrowing SQLiteConnection
  ) throws -> [[UInt8]] {
    // No key is empty.
    try connection.rows(
      ofCached: """
        SELECT key FROM main.buckia_told WHERE clock = ?1 AND key > ?2
        UNION SELECT key FROM main.buckia_heard WHERE clock = ?1 AND key > ?2 ORDER BY key LIMIT ?3
        """, clock, key ?? [], Int64(limit)
    ) { $0.blob(at: 0) }
  }

  // MARK: Clocks

  /// Forgets what is known of the deletions of a clock that is dropped.
  static func drop(_ clock: Int64, on connection: borrowing SQLiteConnection) throws {
    for table in ["buckia_told", "buckia_heard", "buckia_forgotten"] {
      try connection.run(cached: "DELETE FROM main.\(table) WHERE clock = ?1", clock)
    }
  }
}

extension RowClocks {
  /// The diff that has deleted a row, as its clock has it; nil where it has no deletion.
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
      SELECT s.diff FROM main.buckia_clock_\(clock) AS c JOIN main.buckia_stamp AS s ON s.stamp = c.stamps
      WHERE \(condition) AND typeof(c.stamps) = 'integer' AND s.operation = 'delete'
      """)
    defer {
      query.statement.reset()
      query.statement.clearBindings()
    }
    for (index, value) in values.enumerated() { try query.statement.bind(value ?? .null, at: index) }
    return try query.statement.step() ? query.statement.text(at: 0).flatMap { KSUID($0) } : nil
  }

  /// Forgets the deletion of a row.
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

/// The table `buckia_forgotten`: up to where deletions of rows are not known any more, because everybody was told of them.
///
/// Whoever sends changes has to have got that far: what they have made before may bring a row that was deleted.
package enum ForgottenDeletions {
  static let definition = """
    CREATE TABLE main.buckia_forgotten(
      clock INTEGER NOT NULL,
      share INTEGER NOT NULL,
      through INTEGER NOT NULL,
      diff TEXT NOT NULL,
      PRIMARY KEY (clock, share)
    ) WITHOUT ROWID;
    """

  /// True if the ledger has this table, and anything is in it.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    guard try Ledger.exists(on: connection) else { return false }
    return try connection.cachedInteger("SELECT 1 FROM main.buckia_forgotten LIMIT 1") != nil
  }

  /// Notes that a deletion is forgotten.
  ///
  /// - Parameters:
  ///   - diff: The diff that has deleted the row first.
  ///   - told: The numbers of the diffs that have told of it, by share.
  /// - Throws: `SQLiteError`.
  package static func note(
    _ diff: KSUID, in clock: Int64, toldAt told: [Int64: Int64], on connection: borrowing SQLiteConnection
  ) throws {
    // The share 0 stands for all that is forgotten.
    for (share, sequence) in told.merging([0: 0], uniquingKeysWith: { first, _ in first }) {
      try connection.run(
        cached: """
          INSERT INTO main.buckia_forgotten VALUES (?1, ?2, ?3, ?4)
          ON CONFLICT DO UPDATE SET through = max(through, excluded.through), diff = max(diff, excluded.diff)
          """, clock, share, sequence, diff.description)
    }
  }

  /// The greatest diff whose deletions are forgotten; nil where none is.
  ///
  /// - Throws: `SQLiteError`.
  package static func newest(in clock: Int64, on connection: borrowing SQLiteConnection) throws -> KSUID? {
    try connection.first(ofCached: "SELECT diff FROM main.buckia_forgotten WHERE clock = ?1 AND share = 0", clock) {
      row in
      row.text(at: 0).flatMap { KSUID($0) }
    } ?? nil
  }

  /// The greatest diff whose deletions in any of some tables are forgotten; nil where none is.
  ///
  /// - Throws: `SQLiteError`.
  package static func newest(in tables: [TableName], on connection: borrowing SQLiteConnection) throws -> KSUID? {
    var newest: KSUID?
    for clock in try clocks(of: tables, on: connection) {
      if let found = try self.newest(in: clock, on: connection) { newest = max(newest ?? found, found) }
    }
    return newest
  }

  /// A share that whoever sends changes of some tables must have applied.
  package typealias Requirement = (share: Int64, stream: [UInt8], incarnation: [UInt8], through: Int64)

  /// What a sender must have applied before their changes of some tables are taken: of those shares that they have acknowledged once.
  ///
  /// - Parameters:
  ///   - sender: The verified key; empty for unsigned diffs, whose senders are told apart by their replicas.
  ///   - replica: Their replica; nil where the diff does not say.
  ///   - tables: The tables.
  /// - Throws: `SQLiteError`.
  package static func requirements(
    of sender: String, _ replica: [UInt8]?, in tables: [TableName], on connection: borrowing SQLiteConnection
  ) throws -> [Requirement] {
    var found: [Requirement] = []
    for clock in try clocks(of: tables, on: connection) {
      try connection.forEachRow(
        ofCached: """
          SELECT f.share, s.stream, s.incarnation, f.through FROM main.buckia_forgotten AS f
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
      cached: "SELECT 1 FROM main.buckia_stamp WHERE clock = ?1 AND diff = ?2 AND operation = 'insert' LIMIT 1", clock,
      diff.description)
  }
}
