import SQLiteConnections

/// The table `buckia_untaken`: rows of which a stream of somebody else has last said something that was not taken here, because of a
/// conflict, with the version that was taken before.
///
/// The table is sparse: of a row without an entry, what the stream has said last was taken.
package struct UntakenRows {
  static let definition = """
    CREATE TABLE main.buckia_untaken(
      vouch INTEGER NOT NULL,
      key BLOB NOT NULL,
      hash INTEGER,
      PRIMARY KEY (vouch, key)
    ) WITHOUT ROWID;
    """

  /// The version of a row that was taken last.
  package enum Version: Equatable, Sendable {
    /// None was.
    case none
    /// The one with this hash.
    case hash(UInt64)
  }

  private let vouch: Int64

  /// Those of the rows that a stream has brought of a table.
  ///
  /// - Parameter vouch: The number of the ``VouchEntry``.
  package init(of vouch: Int64) { self.vouch = vouch }

  /// True if any stream has such rows.
  ///
  /// - Throws: `SQLiteError`.
  package static func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.cachedInteger("SELECT 1 FROM main.buckia_untaken LIMIT 1") != nil
  }

  /// True if there are any.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    let query = try connection.cached("SELECT 1 FROM main.buckia_untaken WHERE vouch = ?1 LIMIT 1")
    defer { query.statement.reset() }
    try query.statement.bind(vouch, at: 0)
    return try query.statement.step()
  }

  /// What was taken of a row last; nil where that is what the stream has said last.
  ///
  /// - Parameter key: The values of the row's key here, in the format of changesets.
  /// - Throws: `SQLiteError`.
  package func version(of key: [UInt8], on connection: borrowing SQLiteConnection) throws -> Version? {
    let query = try connection.cached("SELECT hash FROM main.buckia_untaken WHERE vouch = ?1 AND key = ?2")
    defer { query.statement.reset() }
    try query.statement.bind(vouch, at: 0)
    try query.statement.bind(key, at: 1)
    guard try query.statement.step() else { return nil }
    return query.statement.isNull(at: 0) ? Version.none : .hash(UInt64(bitPattern: query.statement.integer(at: 0)))
  }

  /// Notes what was taken of a row last; nil: what the stream has said last.
  ///
  /// - Throws: `SQLiteError`.
  package func note(_ version: Version?, of key: [UInt8], on connection: borrowing SQLiteConnection) throws {
    guard let version else {
      try connection.run(cached: "DELETE FROM main.buckia_untaken WHERE vouch = ?1 AND key = ?2", vouch, key)
      return
    }
    let hash: Int64? = if case .hash(let hash) = version { Int64(bitPattern: hash) } else { nil }
    try connection.run(cached: "INSERT OR REPLACE INTO main.buckia_untaken VALUES (?1, ?2, ?3)", vouch, key, hash)
  }

  /// Forgets all of them.
  ///
  /// - Throws: `SQLiteError`.
  package func removeAll(on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_untaken WHERE vouch = ?1", vouch)
  }
}
