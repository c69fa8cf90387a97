import SQLiteConnections
import SQLiteSchemas

/// The table `buckia_aside`: rows of which the stream of a share says something else than its shadow, because the shadow has followed
/// what the receivers themselves have said, or what they were not told.
package struct AsideRows {
  static let definition = """
    CREATE TABLE main.buckia_aside(
      share INTEGER NOT NULL,
      table_name TEXT NOT NULL COLLATE NOCASE,
      key BLOB NOT NULL,
      hash INTEGER,
      PRIMARY KEY (share, table_name, key)
    ) WITHOUT ROWID;
    """

  /// What the stream says of a row.
  package enum Row: Equatable, Sendable {
    /// It does not have it.
    case absent
    /// It has it, with this hash.
    case present(UInt64)

    /// The hash; nil where the stream does not have the row.
    package var hash: UInt64? { if case .present(let hash) = self { hash } else { nil } }

    /// A row with this hash; absent for nil.
    package init(_ hash: UInt64?) { self = hash.map { .present($0) } ?? .absent }
  }

  private let share: Int64
  private let table: TableName

  /// Those of a share and a table.
  package init(of share: Int64, _ table: TableName) {
    self.share = share
    self.table = table
  }

  /// What the stream says of a row; nil where that is what the shadow has.
  ///
  /// - Parameter key: The values of its key, in the format of changesets.
  /// - Throws: `SQLiteError`.
  package func row(_ key: [UInt8], on connection: borrowing SQLiteConnection) throws -> Row? {
    let query = try connection.cached(
      "SELECT hash FROM main.buckia_aside WHERE share = ?1 AND table_name = ?2 AND key = ?3")
    defer { query.statement.reset() }
    try query.statement.bind(share, at: 0)
    try query.statement.bind(table.text, at: 1)
    try query.statement.bind(key, at: 2)
    guard try query.statement.step() else { return nil }
    return query.statement.isNull(at: 0) ? .absent : .present(UInt64(bitPattern: query.statement.integer(at: 0)))
  }

  /// Notes what the stream says of a row; nil: what the shadow has.
  ///
  /// - Throws: `SQLiteError`.
  package func note(_ row: Row?, _ key: [UInt8], on connection: borrowing SQLiteConnection) throws {
    guard let row else {
      try connection.run(
        cached: "DELETE FROM main.buckia_aside WHERE share = ?1 AND table_name = ?2 AND key = ?3", share, table.text,
        key)
      return
    }
    try connection.run(
      cached: "INSERT OR REPLACE INTO main.buckia_aside VALUES (?1, ?2, ?3, ?4)", share, table.text, key,
      row.hash.map { Int64(bitPattern: $0) })
  }

  /// All rows.
  ///
  /// - Throws: `SQLiteError`.
  package func all(on connection: borrowing SQLiteConnection) throws -> [[UInt8]: Row] {
    let query = try connection.prepare("SELECT key, hash FROM main.buckia_aside WHERE share = ?1 AND table_name = ?2")
    try query.bind(share, at: 0)
    try query.bind(table.text, at: 1)
    var found: [[UInt8]: Row] = [:]
    while try query.step() {
      found[query.blob(at: 0)] = query.isNull(at: 1) ? .absent : .present(UInt64(bitPattern: query.integer(at: 1)))
    }
    return found
  }

  /// Forgets all rows of a share.
  ///
  /// - Throws: `SQLiteError`.
  package static func removeAll(of share: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_aside WHERE share = ?1", share)
  }
}
