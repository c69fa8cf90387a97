import SQLiteConnections
import SQLiteSchemas

/// A row of the table `buckia_request`: rows of a share that a receiver has asked for, because it has others than were sent.
package struct ResendRequest: Equatable, Sendable {
  static let definition = """
    CREATE TABLE main.buckia_request(
      share INTEGER NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      buckets BLOB,
      PRIMARY KEY (share, table_name)
    ) WITHOUT ROWID;
    """

  /// The table.
  package let table: TableName
  /// The buckets of the rows; nil for all.
  package let buckets: Set<UInt8>?

  /// Asks for rows.
  package init(_ table: TableName, _ buckets: Set<UInt8>?) {
    self.table = table
    self.buckets = buckets
  }

  /// Notes a request, beside those that are noted.
  ///
  /// - Throws: `SQLiteError`.
  package static func note(
    _ table: TableName, _ buckets: Set<UInt8>?, of share: Int64, on connection: borrowing SQLiteConnection
  ) throws {
    var wanted = buckets
    if let known = try all(of: share, on: connection).first(where: { $0.table == table }) {
      wanted = known.buckets.flatMap { known in buckets.map { known.union($0) } }
    }
    try connection.run(
      cached: "INSERT OR REPLACE INTO main.buckia_request VALUES (?1, ?2, ?3)", share, table.text,
      wanted.map { $0.sorted() })
  }

  /// What the receivers of a share have asked for.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(of share: Int64, on connection: borrowing SQLiteConnection) throws -> [ResendRequest] {
    let query = try connection.prepare(
      "SELECT table_name, buckets FROM main.buckia_request WHERE share = ?1 ORDER BY table_name")
    try query.bind(share, at: 0)
    var found: [ResendRequest] = []
    while try query.step() {
      found.append(
        ResendRequest(TableName(query.text(at: 0) ?? ""), query.isNull(at: 1) ? nil : Set(query.blob(at: 1))))
    }
    return found
  }

  /// Forgets what the receivers of a share have asked for.
  ///
  /// - Throws: `SQLiteError`.
  package static func clear(for share: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_request WHERE share = ?1", share)
  }
}
