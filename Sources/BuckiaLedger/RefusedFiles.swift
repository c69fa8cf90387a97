import BuckiaBytes
import SQLiteConnections

/// The table `buckia_refused`: files that were refused. They occupy no id and block nothing, and only so many are kept.
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
  ///   - id: The id it claims, where it could be read that far.
  ///   - sender: The verified sender; empty for an unsigned file; ``LedgerEntries/unknownSender`` where it could not be read that far.
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

  /// Whether a file with this id was refused that came from this sender, as far as it could be read.
  package static func contain(
    _ id: KSUID, of sender: String, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    let query = try connection.cached(
      "SELECT 1 FROM main.buckia_refused WHERE diff = ?1 AND sender IN (?2, ?3) LIMIT 1")
    defer { query.statement.reset() }
    try query.statement.bind(id.description, at: 0)
    try query.statement.bind(sender, at: 1)
    try query.statement.bind(LedgerEntries.unknownSender, at: 2)
    return try query.statement.step()
  }

  /// Deletes the record of a file that has been applied now.
  package static func remove(digest: [UInt8], on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_refused WHERE digest = ?1", digest)
  }
}
