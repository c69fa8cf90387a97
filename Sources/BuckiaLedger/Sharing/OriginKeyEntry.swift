import SQLiteConnections
import SQLiteSchemas

/// A row of the table `buckia_origin_key`: another replica's key of a row that has another key here, or that was relayed
/// by a third replica.
///
/// The table is sparse: a row with the same key at the replica that sent it has no entry.
package struct OriginKeyEntry: Hashable, Sendable {
  static let definition = """
    CREATE TABLE main.buckia_origin_key(
      table_name TEXT NOT NULL COLLATE NOCASE,
      replica BLOB NOT NULL,
      key INTEGER NOT NULL,
      local INTEGER NOT NULL,
      claimant TEXT,
      version INTEGER,
      PRIMARY KEY (table_name, replica, key)
    ) WITHOUT ROWID;
    CREATE INDEX main.buckia_origin_key_local ON buckia_origin_key(table_name, local);
    CREATE TABLE main.buckia_stream_author(
      sender TEXT NOT NULL,
      stream BLOB NOT NULL,
      replica BLOB NOT NULL,
      PRIMARY KEY (sender, stream)
    ) WITHOUT ROWID;
    CREATE INDEX main.buckia_stream_author_replica ON buckia_stream_author(replica);
    """

  /// The table.
  package let table: TableName
  /// The replica: 16 bytes.
  package let replica: [UInt8]
  /// The row's key there.
  package let key: Int64
  /// The row's key here.
  package let local: Int64
  /// The key of the claiming sender in hexadecimal digits, if that is not the replica itself; ``deleted`` if the row
  /// has been deleted since, here or by the replica. In both cases the replica's key may belong to another row.
  package let claimant: String?
  /// The hash of the version of the row that the claimant has taken from the replica; nil where the replica itself says so.
  package let version: UInt64?

  /// The claimant of a deleted row.
  package static let deleted = "deleted"

  /// Says what a replica calls a row.
  package init(
    table: TableName, replica: [UInt8], key: Int64, local: Int64, claimant: String? = nil, version: UInt64? = nil
  ) {
    self.table = table
    self.replica = replica
    self.key = key
    self.local = local
    self.claimant = claimant
    self.version = version
  }

  // MARK: Looking

  /// True if any row of a table has an entry.
  ///
  /// - Throws: `SQLiteError`.
  package static func exist(of table: TableName, on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.hasRow(cached: "SELECT 1 FROM main.buckia_origin_key WHERE table_name = ?1 LIMIT 1", table.text)
  }

  /// The tables of which a replica calls rows otherwise.
  ///
  /// - Throws: `SQLiteError`.
  package static func tables(of replica: [UInt8], on connection: borrowing SQLiteConnection) throws -> Set<TableName> {
    Set(
      try connection.rows(of: "SELECT DISTINCT table_name FROM main.buckia_origin_key WHERE replica = ?1", replica) {
        TableName($0.text(at: 0) ?? "")
      })
  }

  /// The entry for a replica's key; nil for none.
  ///
  /// - Throws: `SQLiteError`.
  package static func find(
    _ key: Int64, at replica: [UInt8], in table: TableName, on connection: borrowing SQLiteConnection
  ) throws -> OriginKeyEntry? {
    try connection.first(
      ofCached: """
        SELECT local, claimant, version FROM main.buckia_origin_key WHERE table_name = ?1 AND replica = ?2 AND key = ?3
        """, table.text, replica, key
    ) { row in
      OriginKeyEntry(
        table: table, replica: replica, key: key, local: row.integer(at: 0), claimant: row.text(at: 1),
        version: row.storageClass(at: 2) == .null ? nil : UInt64(bitPattern: row.integer(at: 2)))
    }
  }

  /// What replicas call a row that they have, as far as there are entries.
  ///
  /// - Parameter isGone: True to find also the names of rows that have been deleted, behind all others.
  /// - Throws: `SQLiteError`.
  package static func all(
    of local: Int64, in table: TableName, isGone: Bool = false, on connection: borrowing SQLiteConnection
  ) throws -> [OriginKeyEntry] {
    try connection.rows(
      ofCached: """
        SELECT replica, key, claimant, version FROM main.buckia_origin_key INDEXED BY buckia_origin_key_local
        WHERE table_name = ?1 AND local = ?2 AND (?3 OR claimant IS NOT '\(deleted)')
        ORDER BY claimant IS '\(deleted)', replica, key
        """, table.text, local, Int64(isGone ? 1 : 0)
    ) { row in
      OriginKeyEntry(
        table: table, replica: row.blob(at: 0), key: row.integer(at: 1), local: local, claimant: row.text(at: 2),
        version: row.storageClass(at: 3) == .null ? nil : UInt64(bitPattern: row.integer(at: 3)))
    }
  }

  /// The keys here of the rows that the authors of streams name by a key, as far as they differ from it.
  ///
  /// - Throws: `SQLiteError`.
  package static func locals(
    called key: Int64, in table: TableName, on connection: borrowing SQLiteConnection
  ) throws -> [Int64] {
    try connection.rows(
      ofCached: """
        SELECT DISTINCT local FROM main.buckia_origin_key WHERE table_name = ?1 AND key = ?2 AND local <> ?2
          AND replica IN (SELECT replica FROM main.buckia_stream_author) AND claimant IS NOT '\(deleted)' ORDER BY local
        """, table.text, key
    ) { $0.integer(at: 0) }
  }

  /// The greatest key here below a limit that an entry of a table names; nil for none.
  ///
  /// - Throws: `SQLiteError`.
  package static func greatest(
    below limit: Int64, in table: TableName, on connection: borrowing SQLiteConnection
  ) throws -> Int64? {
    try connection.cachedInteger(
      "SELECT local FROM main.buckia_origin_key WHERE table_name = ?1 AND local < ?2 ORDER BY local DESC LIMIT 1",
      table.text, limit)
  }

  // MARK: Writing

  /// Writes the entry, in the place of one for the same name.
  ///
  /// - Throws: `SQLiteError`.
  package func write(on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "INSERT OR REPLACE INTO main.buckia_origin_key VALUES (?1, ?2, ?3, ?4, ?5, ?6)", table.text, replica, key,
      local, claimant, version.map { Int64(bitPattern: $0) })
  }

  /// Records that a row was deleted here: replicas that do not know of that may relay it, and its replica may reuse its
  /// key.
  ///
  /// - Throws: `SQLiteError`.
  package static func markDeleted(
    _ local: Int64, of table: TableName, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "UPDATE main.buckia_origin_key SET claimant = ?3 WHERE table_name = ?1 AND local = ?2", table.text, local,
      deleted)
  }

  // MARK: Authors

  /// Records the replica of a stream.
  ///
  /// - Throws: `SQLiteError`.
  package static func note(
    author replica: [UInt8], of stream: [UInt8], from sender: String, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "INSERT OR REPLACE INTO main.buckia_stream_author VALUES (?1, ?2, ?3)", sender, stream, replica)
  }

  /// Deletes the record of a stream's replica.
  ///
  /// - Throws: `SQLiteError`.
  package static func forget(_ stream: [UInt8], from sender: String, on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: "DELETE FROM main.buckia_stream_author WHERE sender = ?1 AND stream = ?2", sender, stream)
  }

  /// The replica of a stream; nil if unknown.
  ///
  /// - Throws: `SQLiteError`.
  package static func author(
    of stream: [UInt8], from sender: String, on connection: borrowing SQLiteConnection
  ) throws -> [UInt8]? {
    try connection.first(
      ofCached: "SELECT replica FROM main.buckia_stream_author WHERE sender = ?1 AND stream = ?2", sender, stream
    ) { $0.blob(at: 0) }
  }

  /// True if a stream of a replica was received.
  ///
  /// - Throws: `SQLiteError`.
  package static func hasStream(of replica: [UInt8], on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.hasRow(cached: "SELECT 1 FROM main.buckia_stream_author WHERE replica = ?1", replica)
  }

  /// The received streams, except replaced ones, each with its replica.
  ///
  /// - Throws: `SQLiteError`.
  package static func streams(
    on connection: borrowing SQLiteConnection
  ) throws -> [(sender: String, stream: [UInt8], replica: [UInt8])] {
    guard try Ledger.exists(on: connection) else { return [] }
    return try connection.rows(
      of: """
        SELECT DISTINCT a.sender, a.stream, a.replica FROM main.buckia_stream_author AS a
        JOIN main.buckia_stream AS s ON s.sender = a.sender AND s.stream = a.stream
        WHERE NOT EXISTS (SELECT 1 FROM main.buckia_stream AS r WHERE r.replaces = a.stream)
        """
    ) { row in
      (row.text(at: 0) ?? "", row.blob(at: 1), row.blob(at: 2))
    }
  }
}
