import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

/// The table `buckia_forgotten`: up to where deletions of rows are not known any more, because everybody was told of them.
///
/// Whoever sends changes has to have got that far: what they have made before may bring a row that was deleted.
package enum ForgottenDeletions {
  static let definition = """
    CREATE TABLE main.buckia_forgotten(
      clock INTEGER NOT NULL,
      share INTEGER NOT NULL,
      through INTEGER NOT NULL,
      diff TEXT NOT NULL,
      PRIMARY KEY (clock, share)
    ) WITHOUT ROWID;
    """

  /// Whether the ledger has this table, and anything is in it.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    guard try Ledger.exists(on: connection) else { return false }
    return try connection.cachedInteger("SELECT 1 FROM main.buckia_forgotten LIMIT 1") != nil
  }

  /// Notes that a deletion is forgotten.
  ///
  /// - Parameters:
  ///   - diff: The diff that has deleted the row first.
  ///   - told: The numbers of the diffs that have told of it, by share.
  /// - Throws: `SQLiteError`.
  package static func note(
    _ diff: KSUID, in clock: Int64, toldAt told: [Int64: Int64], on connection: borrowing SQLiteConnection
  ) throws {
    // The share 0 stands for all that is forgotten.
    for (share, sequence) in told.merging([0: 0], uniquingKeysWith: { first, _ in first }) {
      try connection.run(
        cached: """
          INSERT INTO main.buckia_forgotten VALUES (?1, ?2, ?3, ?4)
          ON CONFLICT DO UPDATE SET through = max(through, excluded.through), diff = max(diff, excluded.diff)
          """, clock, share, sequence, diff.description)
    }
  }

  /// The greatest diff whose deletions are forgotten; nil where none is.
  ///
  /// - Throws: `SQLiteError`.
  package static func newest(in clock: Int64, on connection: borrowing SQLiteConnection) throws -> KSUID? {
    let query = try connection.cached("SELECT diff FROM main.buckia_forgotten WHERE clock = ?1 AND share = 0")
    defer { query.statement.reset() }
    try query.statement.bind(clock, at: 0)
    return try query.statement.step() ? query.statement.text(at: 0).flatMap { KSUID($0) } : nil
  }

  /// The greatest diff whose deletions in any of some tables are forgotten; nil where none is.
  ///
  /// - Throws: `SQLiteError`.
  package static func newest(
    in tables: [TableName], on connection: borrowing SQLiteConnection
  ) throws -> KSUID? {
    var newest: KSUID?
    for clock in try clocks(of: tables, on: connection) {
      if let found = try self.newest(in: clock, on: connection) { newest = max(newest ?? found, found) }
    }
    return newest
  }

  /// A share that whoever sends changes of some tables must have applied.
  package struct Requirement: Equatable, Sendable {
    /// The share.
    package let share: Int64
    /// Its stream.
    package let stream: [UInt8]
    /// The incarnation whose stream it is.
    package let incarnation: [UInt8]
    /// The number up to which it must have been applied.
    package let through: Int64
  }

  /// What a sender must have applied before their changes of some tables are taken: of those shares that they have acknowledged once.
  ///
  /// - Parameters:
  ///   - sender: The verified key; empty for unsigned diffs, whose senders are told apart by their replicas.
  ///   - replica: Their replica; nil where the diff does not say.
  ///   - tables: The tables.
  /// - Throws: `SQLiteError`.
  package static func requirements(
    of sender: String, _ replica: [UInt8]?, in tables: [TableName], on connection: borrowing SQLiteConnection
  ) throws -> [Requirement] {
    var found: [Requirement] = []
    for clock in try clocks(of: tables, on: connection) {
      let query = try connection.cached(
        """
        SELECT f.share, s.stream, s.incarnation, f.through FROM main.buckia_forgotten AS f
        JOIN main.buckia_share AS s ON s.share = f.share
        WHERE f.clock = ?1 AND EXISTS (
          SELECT 1 FROM main.buckia_acknowledgement AS a WHERE a.share = f.share AND a.sender = ?2 AND (a.sender <> '' OR a.replica = ?3))
        """)
      defer { query.statement.reset() }
      try query.statement.bind(clock, at: 0)
      try query.statement.bind(sender, at: 1)
      try query.statement.bind(replica, at: 2)
      while try query.statement.step() {
        found.append(
          Requirement(
            share: query.statement.integer(at: 0), stream: query.statement.blob(at: 1),
            incarnation: query.statement.blob(at: 2), through: query.statement.integer(at: 3)))
      }
    }
    return found
  }

  private static func clocks(
    of tables: [TableName], on connection: borrowing SQLiteConnection
  ) throws -> [Int64] {
    try tables.compactMap { table in
      try connection.integer("SELECT clock FROM main.buckia_clock WHERE table_name = ?1", binding: [table.text])
    }
  }

  /// Whether a diff has inserted rows into a table here once.
  ///
  /// - Throws: `SQLiteError`.
  package static func hasInserted(
    _ diff: KSUID, in clock: Int64, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    let query = try connection.cached(
      "SELECT 1 FROM main.buckia_stamp WHERE clock = ?1 AND diff = ?2 AND operation = 'insert' LIMIT 1")
    defer { query.statement.reset() }
    try query.statement.bind(clock, at: 0)
    try query.statement.bind(diff.description, at: 1)
    return try query.statement.step()
  }
}
