import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The rows of one diff whose INSERT was left out, and the rows of it that refer to them.
///
/// Such a row must not refer to the local row that happens to have the same key: it is a conflict of its own. But
/// tables and rows of a diff can have any order, and references can be circular. A row may therefore be written before
/// the row that it refers to is refused. Then everything is rolled back and applied again, with the knowledge of which
/// rows refer to refused ones. One run passes this to the next; without a refused row that others of the diff refer to,
/// there is one run, and this stays empty.
final class RefusedRows {
  /// Why a row was left out.
  enum Cause: Int64 {
    /// Another local row has its key.
    case keyTaken = 1
    /// A constraint refuses it.
    case constraint
  }

  /// A missing row to which another one refers: the table, its identity in the diff, and the reason why it is left out;
  /// nil if it refers to another such row itself.
  typealias Parent = (table: TableName, key: [UInt8], cause: Cause?)

  /// How often a diff is applied again at most. One that needs more leaves out other rows each time.
  private static let runLimit = 8

  /// The decisions about broken references.
  let references = ReferenceDecisions()
  private let library: SQLiteLibrary
  private var store: ReferenceStore?
  /// The tables of the diff with rows that refer to refused ones.
  private var referringTables: Set<TableName> = []
  /// True if a row has been refused since the last search.
  private var hasNews = false
  private var runs = 0
  /// True if a local row had to make room for one with the same key.
  private(set) var hasReplaced = false

  /// - Parameter library: The copy of SQLite that the database is used with.
  init(with library: SQLiteLibrary) { self.library = library }

  private func makeStore() throws -> ReferenceStore {
    if let store { return store }
    let made = try ReferenceStore(with: library)
    store = made
    return made
  }

  /// Begins another run.
  func beginRun() throws {
    hasReplaced = false
    try store?.connection.execute("UPDATE referring SET taken = 0 WHERE taken; DELETE FROM replaced")
  }

  // MARK: Results of a run

  /// Records a row whose INSERT is left out.
  ///
  /// - Parameters:
  ///   - key: The identity of the row in the diff.
  ///   - table: The table, as the diff calls it.
  func note(_ key: [UInt8], of table: String, _ cause: Cause) throws {
    let store = try makeStore()
    try store.connection.run(cached: "INSERT OR IGNORE INTO refused VALUES (?1, ?2, ?3)", table, key, cause.rawValue)
    if store.connection.changes > 0 { hasNews = true }
  }

  /// Records the referenced values of a local row, before another row replaces it.
  func note(replaced record: [UInt8], of table: TableName) throws {
    hasReplaced = true
    try makeStore().connection.run(cached: "INSERT INTO replaced VALUES (?1, ?2)", table.text, record)
  }

  /// Passes the values of each local row of a table that was replaced in this run to `body`.
  func forEachReplaced(of table: TableName, _ body: (RowCopy) throws -> Void) throws {
    guard hasReplaced, let store else { return }
    try store.connection.forEachRow(
      of: "SELECT record FROM replaced WHERE tbl = ?1 COLLATE NOCASE", binding: [table.text]
    ) { try body(RowCopy(record: $0.blob(at: 0))) }
  }

  /// Searches for rows that refer to the refused rows of this run.
  ///
  /// - Parameters:
  ///   - staysOut: True if a row of a table is left out when it refers to one that is.
  /// - Returns: True if any were found: everything has to be rolled back and applied again.
  /// - Throws: `ReplicationError` with `conflict` when that has happened too often; `SQLiteError`.
  func findReferring(
    in changes: IncomingChanges, _ matches: [TableName: TableMatch], _ session: ApplySession,
    staysOut: @escaping (TableName) -> Bool
  ) throws -> Bool {
    guard hasNews, let store else { return false }
    hasNews = false
    let tables = try self.tables(of: "refused", in: store)
    let search = ReferenceSearch(session: session, store: store, changes: changes, matches: matches, staysOut: staysOut)
    guard try search.run(from: tables) else { return false }
    referringTables = try self.tables(of: "referring", in: store)
    runs += 1
    guard runs < Self.runLimit else {
      throw ReplicationError(
        .conflict,
        "rows of this file refer to rows that cannot be taken here, and leaving them out keeps out others, again and again; "
          + "nothing of this file is applied")
    }
    return true
  }

  private func tables(of list: String, in store: ReferenceStore) throws -> Set<TableName> {
    Set(try store.connection.rows(of: "SELECT DISTINCT tbl FROM \(list)") { TableName($0.text(at: 0) ?? "") })
  }

  // MARK: Knowledge of the next run

  /// True if any row of a table is known to refer to a refused one.
  func areReferred(by table: TableName) -> Bool { referringTables.contains(table) }

  /// The refused row that a row of the diff refers to; nil if there is none, or when that does not matter any more.
  ///
  /// - Parameters:
  ///   - key: The identity of the row in the diff.
  ///   - table: The table, as the diff calls it.
  func parent(of key: [UInt8], in table: String) throws -> Parent? {
    guard let store else { return nil }
    return try store.connection.first(
      ofCached: """
        SELECT r.parent_tbl, r.parent_key, r.cause FROM referring AS r
        LEFT JOIN referring AS p ON p.tbl = r.parent_tbl AND p.key = r.parent_key
        WHERE r.tbl = ?1 AND r.key = ?2 AND NOT r.taken AND (r.cause IS NOT NULL OR NOT ifnull(p.taken, 0))
        ORDER BY r.cause IS NULL LIMIT 1
        """, table, key
    ) { row in
      (TableName(row.text(at: 0) ?? ""), row.blob(at: 1), Cause(rawValue: row.integer(at: 2)))
    }
  }

  /// Says that a row is written although it refers to a refused one.
  func take(_ key: [UInt8], in table: String) throws {
    try store?.connection.run(cached: "UPDATE referring SET taken = 1 WHERE tbl = ?1 AND key = ?2", table, key)
  }
}

/// A temporary database beside that of the application. Its contents outlive a rollback there, and need not fit in
/// memory, unless the changes came encrypted. SQLite deletes it with the connection.
final class ReferenceStore {
  let connection: SQLiteConnection

  /// - Parameter library: The copy of SQLite that keeps it.
  /// - Throws: `SQLiteError` when it cannot be made.
  init(with library: SQLiteLibrary) throws {
    // An empty name: https://sqlite.org/inmemorydb.html#temp_db. Nothing of it is ever rolled back or committed.
    let name = TemporaryBuffer.sealing == nil ? "" : ":memory:"
    connection = try SQLiteConnection(opening: name, as: .create, with: library)
    try connection.execute(
      """
      PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;
      CREATE TABLE refused(tbl TEXT, key BLOB, cause INTEGER, PRIMARY KEY (tbl, key)) WITHOUT ROWID;
      CREATE TABLE referring(
        tbl TEXT, key BLOB, parent_tbl TEXT, parent_key BLOB, cause INTEGER, taken INTEGER DEFAULT 0,
        PRIMARY KEY (tbl, key, parent_tbl, parent_key)
      ) WITHOUT ROWID;
      CREATE TABLE replaced(tbl TEXT, record BLOB);
      CREATE TABLE node(id INTEGER PRIMARY KEY, tbl TEXT, key BLOB, expands INTEGER);
      CREATE INDEX node_key ON node(tbl, key);
      CREATE TABLE edge(parent INTEGER, child INTEGER, PRIMARY KEY (parent, child)) WITHOUT ROWID;
      """)
  }

  // MARK: The graph of a search

  /// Creates tables for the values of some foreign keys.
  func beginSearch(_ links: [ReferenceLink]) throws {
    try connection.execute("DELETE FROM node; DELETE FROM edge")
    for (number, link) in links.enumerated() {
      // Compared as SQLite does, with the parent's affinity and collating sequence. This connection does not have the
      // collating sequences of an application.
      let columns = link.parentColumns.enumerated().map { index, column in
        let known = link.parent.columns[column].hasKnownCollation ? link.parent.columns[column].collation : "BINARY"
        return "k\(index) \(link.parent.affinity(at: column).rawValue) COLLATE \(SQLText.identifier(known))"
      }
      let names = columns.indices.map { "k\($0)" }.joined(separator: ", ")
      try connection.execute(
        """
        DROP TABLE IF EXISTS parent_\(number); DROP TABLE IF EXISTS child_\(number);
        CREATE TABLE parent_\(number)(\(columns.joined(separator: ", ")), node INTEGER);
        CREATE INDEX parent_\(number)_key ON parent_\(number)(\(names));
        CREATE TABLE child_\(number)(\(columns.joined(separator: ", ")), node INTEGER);
        """)
    }
  }

  /// The end of a foreign key.
  enum End: String {
    case parent, child
  }

  /// Adds the values that a row has at one end of a foreign key.
  func add(_ values: RowCopy, at end: End, of link: Int, row: Int64) throws {
    let places = (1...values.values.count + 1).map { "?\($0)" }.joined(separator: ", ")
    let insert = try connection.cached("INSERT INTO \(end.rawValue)_\(link) VALUES (\(places))")
    // The values are bound without copying, and the statement runs while they are certain to stay.
    try values.record.withRawSpan { bytes in
      try insert.statement.bind(values.values, in: bytes)
      try insert.statement.bind(row, at: values.values.count)
      try insert.statement.run()
    }
    insert.statement.clearBindings()
  }

  /// Adds a row of the diff.
  ///
  /// - Parameter expands: True if rows that refer to the row lose their parent when it is left out.
  func add(row: Int64, of table: String, _ key: [UInt8], expands: Bool) throws {
    try connection.run(cached: "INSERT INTO node VALUES (?1, ?2, ?3, ?4)", row, table, key, Int64(expands ? 1 : 0))
  }

  /// Follows the foreign keys from the refused rows to all that refer to them, directly or through others.
  ///
  /// - Returns: True if any row is new.
  func finishSearch(_ links: [ReferenceLink]) throws -> Bool {
    for (number, link) in links.enumerated() {
      let equal = link.parentColumns.indices.map { "p.k\($0) = c.k\($0)" }.joined(separator: " AND ")
      try connection.execute(
        """
        INSERT OR IGNORE INTO edge
        SELECT p.node, c.node FROM child_\(number) AS c JOIN parent_\(number) AS p ON \(equal) WHERE p.node <> c.node;
        """)
    }
    // Two changes of one row, of which one makes it refer to itself, are no two rows.
    try connection.execute(
      """
      WITH RECURSIVE reached(child, parent) AS (
        SELECT e.child, e.parent FROM refused AS s JOIN node AS r ON r.tbl = s.tbl AND r.key = s.key
        JOIN edge AS e ON e.parent = r.id
        UNION
        SELECT e.child, e.parent FROM reached JOIN node AS r ON r.id = reached.child AND r.expands
        JOIN edge AS e ON e.parent = r.id
      )
      INSERT INTO referring(tbl, key, parent_tbl, parent_key, cause)
      SELECT c.tbl, c.key, p.tbl, p.key,
        (SELECT s.cause FROM refused AS s WHERE s.tbl = p.tbl AND s.key = p.key) AS cause
      FROM reached JOIN node AS c ON c.id = reached.child JOIN node AS p ON p.id = reached.parent
      WHERE c.tbl <> p.tbl OR c.key <> p.key
      ON CONFLICT DO UPDATE SET cause = excluded.cause WHERE cause IS NULL AND excluded.cause IS NOT NULL
      """)
    return connection.changes > 0
  }
}
