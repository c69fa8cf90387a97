import SQLiteConnections

/// The table `buckia_mapped_row`: rows whose keys, or the keys that they refer to, differ here from those in a received
/// stream, whose sums cover the sent rows.
///
/// The table is sparse: a row with the sent keys has no entry.
package struct MappedRows {
  static let definition = """
    CREATE TABLE main.buckia_mapped_row(
      provenance INTEGER NOT NULL,
      key BLOB NOT NULL,
      local BLOB NOT NULL,
      hash INTEGER,
      PRIMARY KEY (provenance, key)
    ) WITHOUT ROWID;
    CREATE INDEX main.buckia_mapped_row_local ON buckia_mapped_row(provenance, local);
    """

  /// The stream's version of a row.
  package struct Row: Equatable, Sendable {
    /// Its key here, in the format of changesets.
    package let local: [UInt8]
    /// The hash of the sent row; nil if the stream does not have the row, and the recorded row under this key is
    /// another one.
    package let hash: UInt64?

    /// Describes a row.
    package init(local: [UInt8], hash: UInt64?) {
      self.local = local
      self.hash = hash
    }
  }

  private let provenance: Int64

  /// The entries of a stream's table.
  ///
  /// - Parameter provenance: The number of the ``ProvenanceEntry``.
  package init(of provenance: Int64) { self.provenance = provenance }

  /// True if there are any.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.hasRow(cached: "SELECT 1 FROM main.buckia_mapped_row WHERE provenance = ?1 LIMIT 1", provenance)
  }

  /// The entry of a sent key; nil if the row has the sent keys here.
  ///
  /// - Parameter key: The sent key, in the format of changesets.
  /// - Throws: `SQLiteError`.
  package func row(_ key: [UInt8], on connection: borrowing SQLiteConnection) throws -> Row? {
    try connection.first(
      ofCached: "SELECT local, hash FROM main.buckia_mapped_row WHERE provenance = ?1 AND key = ?2", provenance, key
    ) { row in
      Row(local: row.blob(at: 0), hash: row.hash(at: 1))
    }
  }

  /// True if another key of the stream belongs to the row with a local key.
  ///
  /// - Parameters:
  ///   - local: The key here.
  ///   - key: The key of the stream that does not count.
  /// - Throws: `SQLiteError`.
  package func haveRow(
    withLocal local: [UInt8], otherThan key: [UInt8], on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    try connection.hasRow(
      cached:
        "SELECT 1 FROM main.buckia_mapped_row INDEXED BY buckia_mapped_row_local WHERE provenance = ?1 AND local = ?2 AND key <> ?3 LIMIT 1",
      provenance,
      local, key)
  }

  /// The hash of a sent row; nil if the row has the sent keys here.
  ///
  /// - Parameter local: Its key here, in the format of changesets.
  /// - Throws: `SQLiteError`.
  package func hash(ofLocal local: [UInt8], on connection: borrowing SQLiteConnection) throws -> UInt64? {
    try connection.first(
      ofCached:
        "SELECT hash FROM main.buckia_mapped_row INDEXED BY buckia_mapped_row_local WHERE provenance = ?1 AND local = ?2 AND hash IS NOT NULL LIMIT 1",
      provenance, local
    ) { UInt64(bitPattern: $0.integer(at: 0)) }
  }

  /// All of them, by the keys that the stream has.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package func all(on connection: borrowing SQLiteConnection) throws -> [[UInt8]: Row] {
    guard try exist(on: connection) else { return [:] }
    var found: [[UInt8]: Row] = [:]
    try connection.forEachRow(
      of: "SELECT key, local, hash FROM main.buckia_mapped_row WHERE provenance = ?1", binding: [provenance]
    ) { row in
      found[row.blob(at: 0)] = Row(local: row.blob(at: 1), hash: row.hash(at: 2))
    }
    return found
  }

  /// Records the stream's version of a row; nil for the recorded one.
  ///
  /// - Throws: `SQLiteError`.
  package func note(_ row: Row?, _ key: [UInt8], on connection: borrowing SQLiteConnection) throws {
    guard let row else {
      try connection.run(
        cached: "DELETE FROM main.buckia_mapped_row WHERE provenance = ?1 AND key = ?2", provenance, key)
      return
    }
    try connection.run(
      cached: "INSERT OR REPLACE INTO main.buckia_mapped_row VALUES (?1, ?2, ?3, ?4)", provenance, key, row.local,
      row.hash.map { Int64(bitPattern: $0) })
  }

  /// Deletes all entries.
  ///
  /// - Throws: `SQLiteError`.
  package func removeAll(on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_mapped_row WHERE provenance = ?1", provenance)
  }
}
