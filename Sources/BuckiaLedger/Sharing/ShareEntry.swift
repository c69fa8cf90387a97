import BuckiaBytes
import SQLiteConnections

/// A row of the table `buckia_share`: a stream of diffs that this database sends, for one scope and audience.
package struct ShareEntry: Equatable, Sendable {
  static let definition = """
    CREATE TABLE main.buckia_share(
      share INTEGER PRIMARY KEY,
      stream BLOB NOT NULL UNIQUE,
      incarnation BLOB NOT NULL,
      name TEXT,
      scope TEXT NOT NULL,
      audience TEXT NOT NULL,
      sequence INTEGER NOT NULL,
      diff TEXT,
      digest BLOB,
      signer TEXT
    );
    """

  /// The number of the share; 0 before it is written.
  package private(set) var number: Int64 = 0
  /// The stream: 16 random bytes.
  package var stream: [UInt8]
  /// The incarnation of the replica whose stream it is.
  package var incarnation: [UInt8]
  /// The name of the scope; nil for one that is known by its content.
  package let name: String?
  /// The scope as a document.
  package var scope: String
  /// Whom it is for, as a document.
  package var audience: String
  /// The number of the last diff in the stream; 0 for none.
  package var sequence: Int64 = 0
  /// The last diff: its id and the digest of its manifest.
  package var last: (id: KSUID, digest: [UInt8])?
  /// The key that has signed it, in hex; empty for an unsigned one. nil where nothing was sent, or an earlier version has sent it.
  package var signer: String?

  /// A share of which nothing has been sent.
  package init(stream: [UInt8], incarnation: [UInt8], name: String?, scope: String, audience: String) {
    self.stream = stream
    self.incarnation = incarnation
    self.name = name
    self.scope = scope
    self.audience = audience
  }

  package static func == (first: ShareEntry, second: ShareEntry) -> Bool {
    first.number == second.number && first.stream == second.stream && first.incarnation == second.incarnation
      && first.name == second.name && first.scope == second.scope && first.audience == second.audience
      && first.sequence == second.sequence && first.last?.id == second.last?.id
      && first.last?.digest == second.last?.digest && first.signer == second.signer
  }

  // MARK: Reading

  /// All shares of a database, the first one made first.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func all(on connection: borrowing SQLiteConnection) throws -> [ShareEntry] {
    guard try Ledger.exists(on: connection) else { return [] }
    let columns = "share, stream, incarnation, name, scope, audience, sequence, diff, digest, signer"
    var found: [ShareEntry] = []
    try connection.forEachRow(of: "SELECT \(columns) FROM main.buckia_share ORDER BY share") { row in
      var entry = ShareEntry(
        stream: row.blob(at: 1), incarnation: row.blob(at: 2), name: row.isNull(at: 3) ? nil : row.text(at: 3),
        scope: row.text(at: 4) ?? "", audience: row.text(at: 5) ?? "")
      entry.number = row.integer(at: 0)
      entry.sequence = row.integer(at: 6)
      if let id = KSUID(row.text(at: 7) ?? "") { entry.last = (id, row.blob(at: 8)) }
      if !row.isNull(at: 9) { entry.signer = row.text(at: 9) }
      found.append(entry)
    }
    return found
  }

  // MARK: Writing

  /// Writes the share: as a new one, or over the one that it was read from.
  ///
  /// - Throws: `SQLiteError`.
  package mutating func write(on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: """
        INSERT INTO main.buckia_share VALUES (nullif(?1, 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
        ON CONFLICT (share) DO UPDATE SET stream = excluded.stream, incarnation = excluded.incarnation,
          scope = excluded.scope, audience = excluded.audience, sequence = excluded.sequence, diff = excluded.diff, digest = excluded.digest,
          signer = excluded.signer
        """, number, stream, incarnation, name, scope, audience, sequence, last?.id.description, last?.digest,
      signer)
    if number == 0 { number = try connection.cachedInteger("SELECT last_insert_rowid()") ?? 0 }
  }
}
