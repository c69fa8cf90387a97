import SQLiteConnections
import SQLiteSchemas

/// A row of the table `buckia_state`: the sums of the rows that a stream has of a table, at its sender or at a receiver.
package struct StateEntry: Equatable, Sendable {
  static let definition = """
    CREATE TABLE main.buckia_state(
      state INTEGER PRIMARY KEY,
      share INTEGER,
      sender TEXT,
      stream BLOB NOT NULL,
      replica BLOB,
      table_name TEXT NOT NULL COLLATE NOCASE,
      columns TEXT NOT NULL,
      row_count INTEGER NOT NULL,
      sums BLOB NOT NULL,
      difference BLOB,
      is_requested INTEGER NOT NULL DEFAULT 0
    );
    CREATE UNIQUE INDEX main.buckia_state_share ON buckia_state(share, table_name) WHERE share IS NOT NULL;
    CREATE UNIQUE INDEX main.buckia_state_sender ON buckia_state(sender, stream, table_name) WHERE sender IS NOT NULL;
    """

  /// Whose stream it is.
  package enum Owner: Equatable, Sendable {
    /// That of a share of this database.
    case share(Int64)
    /// A received stream: the verified key of its sender, empty for unsigned diffs.
    case sender(String)
  }

  /// Its number; 0 before it is written.
  package private(set) var number: Int64 = 0
  /// Whose stream it is.
  package let owner: Owner
  /// The stream.
  package let stream: [UInt8]
  /// The replica of the stream; nil if its diffs name none, and for an own stream.
  package var replica: [UInt8]?
  /// The table.
  package let table: TableName
  /// The columns that the stream has of it, as a document.
  package var columns: String
  /// The number of rows.
  package var rowCount: Int64 = 0
  /// The sums, encoded.
  package var sums: [UInt8] = []
  /// The buckets that are known to differ at the sender: empty if it is unknown which, nil if both agree.
  package var difference: [UInt8]?
  /// True if the sender has been asked for them.
  package var isRequested = false

  /// A state without rows.
  package init(of owner: Owner, stream: [UInt8], table: TableName, columns: String) {
    self.owner = owner
    self.stream = stream
    self.table = table
    self.columns = columns
  }

  private static let columnNames =
    "state, share, sender, stream, replica, table_name, columns, row_count, sums, difference, is_requested"

  private init(_ row: borrowing SQLiteStatement) {
    number = row.integer(at: 0)
    owner = row.isNull(at: 1) ? .sender(row.text(at: 2) ?? "") : .share(row.integer(at: 1))
    stream = row.blob(at: 3)
    replica = row.isNull(at: 4) ? nil : row.blob(at: 4)
    table = TableName(row.text(at: 5) ?? "")
    columns = row.text(at: 6) ?? ""
    rowCount = row.integer(at: 7)
    sums = row.blob(at: 8)
    difference = row.isNull(at: 9) ? nil : row.blob(at: 9)
    isRequested = row.integer(at: 10) != 0
  }

  /// All of them.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func all(on connection: borrowing SQLiteConnection) throws -> [StateEntry] {
    guard try Ledger.exists(on: connection) else { return [] }
    return try connection.rows(of: "SELECT \(columnNames) FROM main.buckia_state ORDER BY state") { StateEntry($0) }
  }

  /// The states of one owner's stream.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(
    of owner: Owner, stream: [UInt8], on connection: borrowing SQLiteConnection
  ) throws -> [StateEntry] {
    let (column, value): (String, any SQLiteBindable) =
      switch owner {
      case .share(let number): ("share", number)
      case .sender(let key): ("sender", key)
      }
    let query = "SELECT \(columnNames) FROM main.buckia_state WHERE \(column) = ?1 AND stream = ?2 ORDER BY state"
    return try connection.rows(ofCached: query, value, stream) { StateEntry($0) }
  }

  /// Writes the state: as a new one, or over the one that it was read from.
  ///
  /// - Throws: `SQLiteError`.
  package mutating func write(on connection: borrowing SQLiteConnection) throws {
    var share: Int64?
    var sender: String?
    switch owner {
    case .share(let number): share = number
    case .sender(let key): sender = key
    }
    try connection.run(
      cached: """
        INSERT INTO main.buckia_state VALUES (nullif(?1, 0), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
        ON CONFLICT (state) DO UPDATE SET replica = excluded.replica, columns = excluded.columns,
          row_count = excluded.row_count, sums = excluded.sums, difference = excluded.difference,
          is_requested = excluded.is_requested
        """, number, share, sender, stream, replica, table.text, columns, rowCount, sums, difference,
      Int64(isRequested ? 1 : 0))
    if number == 0 { number = try connection.cachedInteger("SELECT last_insert_rowid()") ?? 0 }
  }

  /// Deletes the state.
  ///
  /// - Throws: `SQLiteError`.
  package func remove(on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_state WHERE state = ?1", number)
  }

  /// Deletes the states of a received stream for a table; nil for all tables.
  ///
  /// - Throws: `SQLiteError`.
  package static func remove(
    _ stream: [UInt8], from sender: String, _ table: TableName?, on connection: borrowing SQLiteConnection
  ) throws {
    try connection.run(
      cached: "DELETE FROM main.buckia_state WHERE sender = ?1 AND stream = ?2 AND (?3 IS NULL OR table_name = ?3)",
      sender, stream, table?.text)
  }

  /// Deletes all states of a share.
  ///
  /// - Throws: `SQLiteError`.
  package static func removeAll(of share: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_state WHERE share = ?1", share)
  }
}

/// A row of the table `buckia_request`: rows of a share that a receiver has requested, because its rows differ from the
/// sent ones.
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

  /// Adds a request.
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

  /// The requests of a share's receivers.
  ///
  /// - Throws: `SQLiteError`.
  package static func all(of share: Int64, on connection: borrowing SQLiteConnection) throws -> [ResendRequest] {
    try connection.rows(
      of: "SELECT table_name, buckets FROM main.buckia_request WHERE share = ?1 ORDER BY table_name", share
    ) { row in
      ResendRequest(TableName(row.text(at: 0) ?? ""), row.isNull(at: 1) ? nil : Set(row.blob(at: 1)))
    }
  }

  /// Deletes the requests of a share's receivers.
  ///
  /// - Throws: `SQLiteError`.
  package static func clear(for share: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "DELETE FROM main.buckia_request WHERE share = ?1", share)
  }
}
