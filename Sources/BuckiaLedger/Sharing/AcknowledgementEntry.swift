import SQLiteConnections

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
  /// Who has applied it: the verified key; empty for unsigned diffs.
  package let sender: String
  /// Their replica.
  package let replica: [UInt8]
  /// The number up to which they have applied everything.
  package let through: Int64

  /// Notes how far a replica has come. What was acknowledged once stays so.
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

  /// Notes that a key has replaced another: what this one has acknowledged, that one has.
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

  /// Forgets what a replica has acknowledged that has ended.
  ///
  /// - Throws: `SQLiteError`.
  package static func removeAll(
    by sender: String, _ replica: [UInt8], on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "DELETE FROM main.buckia_acknowledgement WHERE sender = ?1 AND replica = ?2", sender, replica)
  }

  /// Forgets who has acknowledged a share.
  ///
  /// - Throws: `SQLiteError`.
  package static func removeAll(of share: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_acknowledgement WHERE share = ?1", share)
  }

  /// Who has acknowledged a share, and how far.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(of share: Int64, on connection: borrowing SQLiteConnection) throws -> [AcknowledgementEntry] {
    let query = try connection.prepare(
      "SELECT sender, replica, through FROM main.buckia_acknowledgement WHERE share = ?1 ORDER BY 1, 2")
    try query.bind(share, at: 0)
    var found: [AcknowledgementEntry] = []
    while try query.step() {
      found.append(
        AcknowledgementEntry(
          share: share, sender: query.text(at: 0) ?? "", replica: query.blob(at: 1), through: query.integer(at: 2)))
    }
    return found
  }
}
