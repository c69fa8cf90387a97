import SQLiteConnections

/// Which replica a database says it is, and in which of its incarnations: two settings of 16 random bytes each.
///
/// A copy of the database file says the same, and so does a backup that is restored. What is known outside of the database tells these
/// apart.
package struct ReplicaIdentity: Hashable, Sendable {
  /// How many bytes each of the two has.
  package static let byteCount = 16

  /// The copy of the database.
  package let replica: [UInt8]
  /// The unbroken life of that copy.
  package let incarnation: [UInt8]

  /// Takes the ids.
  package init(replica: [UInt8], incarnation: [UInt8]) {
    self.replica = replica
    self.incarnation = incarnation
  }

  /// What the ledger of a database says; nil where it has none, or does not say yet.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func read(on connection: borrowing SQLiteConnection) throws -> ReplicaIdentity? {
    guard try Ledger.exists(on: connection) else { return nil }
    guard let replica = try id("replica", on: connection), let incarnation = try id("incarnation", on: connection)
    else { return nil }
    return ReplicaIdentity(replica: replica, incarnation: incarnation)
  }

  private static func id(_ name: String, on connection: borrowing SQLiteConnection) throws -> [UInt8]? {
    var bytes: [UInt8]?
    let query = "SELECT value FROM main.buckia_settings WHERE name = ?1 AND typeof(value) = 'blob'"
    try connection.forEachRow(ofCached: query, binding: [name]) { bytes = $0.blob(at: 0) }
    return bytes?.count == byteCount ? bytes : nil
  }

  /// The file that the replica was last known to be; nil where the ledger does not say.
  ///
  /// - Throws: `SQLiteError`.
  package static func file(on connection: borrowing SQLiteConnection) throws -> String? {
    try connection.text("SELECT value FROM main.buckia_settings WHERE name = 'replica_file'")
  }

  /// Keeps which file the replica is.
  ///
  /// - Throws: `SQLiteError`.
  package static func setFile(_ file: String, on connection: borrowing SQLiteConnection) throws {
    try LedgerSettings.set("replica_file", to: file, on: connection)
  }

  /// Makes the ledger of a database say so.
  ///
  /// - Throws: `SQLiteError`.
  package func write(on connection: borrowing SQLiteConnection) throws {
    try LedgerSettings.set("replica", to: replica, on: connection)
    try LedgerSettings.set("incarnation", to: incarnation, on: connection)
  }
}
