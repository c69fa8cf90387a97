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
  /// The name of the scope; nil for one that its content identifies.
  package let name: String?
  /// The scope as a document.
  package var scope: String
  /// Whom it is for, as a document.
  package var audience: String
  /// The number of the last diff in the stream; 0 for none.
  package var sequence: Int64 = 0
  /// The last diff: its id and the digest of its manifest.
  package var last: (id: KSUID, digest: [UInt8])?
  /// The key that has signed the last diff, in hexadecimal digits; empty for an unsigned one, nil before the first
  /// diff.
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

/// The table `buckia_recipient`: the keys with which the recipients of a share sign, as far as they are known.
///
/// Only a recipient can acknowledge a share, or ask for its rows again.
package enum RecipientKey {
  static let definition = """
    CREATE TABLE main.buckia_recipient(
      share INTEGER NOT NULL,
      key TEXT NOT NULL,
      PRIMARY KEY (share, key)
    ) WITHOUT ROWID;
    """

  /// The key of a recipient whose signing key is unknown: a bare age recipient, or a name without a card.
  package static let unknown = ""

  /// The keys of a share's recipients in hexadecimal digits, with ``unknown`` if any is unknown.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func all(of share: Int64, on connection: borrowing SQLiteConnection) throws -> Set<String> {
    guard try Ledger.exists(on: connection) else { return [] }
    return Set(
      try connection.rows(ofCached: "SELECT key FROM main.buckia_recipient WHERE share = ?1", share) {
        $0.text(at: 0) ?? ""
      })
  }

  /// The known keys of the recipients of all shares besides the only recipient of one, in hexadecimal digits, at most
  /// ``limit``. The recipients of the share come first.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(
    besidesOnlyRecipientOf share: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [String] {
    try connection.rows(
      of: """
        SELECT key FROM main.buckia_recipient
        WHERE key <> '' AND (share <> ?1 OR (SELECT count(*) > 1 FROM main.buckia_recipient WHERE share = ?1))
        GROUP BY key ORDER BY max(share = ?1) DESC LIMIT \(limit)
        """, share
    ) { $0.text(at: 0) ?? "" }
  }

  /// The most recipients that are named.
  package static let limit = 256

  /// Replaces the keys of a share's recipients.
  ///
  /// - Throws: `SQLiteError`.
  package static func set(_ keys: Set<String>, of share: Int64, on connection: borrowing SQLiteConnection) throws {
    guard try all(of: share, on: connection) != keys else { return }
    try connection.run(cached: "DELETE FROM main.buckia_recipient WHERE share = ?1", share)
    for key in keys.sorted() {
      try connection.run(cached: "INSERT INTO main.buckia_recipient VALUES (?1, ?2)", share, key)
    }
  }
}

/// A row of the table `buckia_acknowledgement`: how far a replica has applied a stream of this database.
package struct AcknowledgementEntry: Equatable, Sendable {
  static let definition = """
    CREATE TABLE main.buckia_acknowledgement(
      share INTEGER NOT NULL,
      sender TEXT NOT NULL,
      replica BLOB NOT NULL,
      through INTEGER NOT NULL,
      PRIMARY KEY (share, sender, replica)
    ) WITHOUT ROWID;
    """

  /// The share.
  package let share: Int64
  /// The verified key of the acknowledging sender; empty for unsigned diffs.
  package let sender: String
  /// Their replica.
  package let replica: [UInt8]
  /// The number up to which they have applied everything.
  package let through: Int64

  /// Records an acknowledgement. It never decreases.
  ///
  /// - Throws: `SQLiteError`.
  package static func note(
    _ through: Int64, of share: Int64, by sender: String, _ replica: [UInt8], on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: """
        INSERT INTO main.buckia_acknowledgement VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT DO UPDATE SET through = max(through, excluded.through)
        """, share, sender, replica, through)
  }

  /// Transfers the acknowledgements of a replaced key.
  ///
  /// - Throws: `SQLiteError`.
  package static func handOver(
    from former: String, to sender: String, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: """
        INSERT INTO main.buckia_acknowledgement
        SELECT share, ?2, replica, through FROM main.buckia_acknowledgement WHERE sender = ?1
        ON CONFLICT DO UPDATE SET through = max(through, excluded.through)
        """, former, sender)
    try connection.run(cached: "DELETE FROM main.buckia_acknowledgement WHERE sender = ?1", former)
  }

  /// Deletes the acknowledgements of an ended replica.
  ///
  /// - Throws: `SQLiteError`.
  package static func removeAll(
    by sender: String, _ replica: [UInt8], on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "DELETE FROM main.buckia_acknowledgement WHERE sender = ?1 AND replica = ?2", sender, replica)
  }

  /// Deletes the acknowledgements of a share.
  ///
  /// - Throws: `SQLiteError`.
  package static func removeAll(of share: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_acknowledgement WHERE share = ?1", share)
  }

  /// The acknowledgements of a share.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(of share: Int64, on connection: borrowing SQLiteConnection) throws -> [AcknowledgementEntry] {
    try connection.rows(
      of: "SELECT sender, replica, through FROM main.buckia_acknowledgement WHERE share = ?1 ORDER BY 1, 2", share
    ) { row in
      AcknowledgementEntry(
        share: share, sender: row.text(at: 0) ?? "", replica: row.blob(at: 1), through: row.integer(at: 2))
    }
  }
}
