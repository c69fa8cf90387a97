import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A temporary database of our own, beside that of the application: what is in it outlives a rollback there, and need not fit in
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

  /// Makes tables for the values of some foreign keys.
  func beginSearch(_ links: [ReferenceLink]) throws {
    try connection.execute("DELETE FROM node; DELETE FROM edge")
    for (number, link) in links.enumerated() {
      // Compared as SQLite compares them: with the parent's affinity and collating sequence. Those of an application are
      // not known to this connection.
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

  /// Which end of a foreign key a row is.
  enum End: String {
    case parent, child
  }

  /// Adds the values that a row has at one end of a foreign key.
  func add(_ values: RowCopy, at end: End, of link: Int, row: Int64) throws {
    let places = (1...values.values.count + 1).map { "?\($0)" }.joined(separator: ", ")
    let insert = try connection.cached("INSERT INTO \(end.rawValue)_\(link) VALUES (\(places))")
    // The values are bound where they lie, so the statement runs while they are sure to stay there.
    try values.record.withRawSpan { bytes in
      try insert.statement.bind(values.values, in: bytes)
      try insert.statement.bind(row, at: values.values.count)
      try insert.statement.run()
    }
    insert.statement.clearBindings()
  }

  /// Adds a row of the diff.
  ///
  /// - Parameter expands: True if what refers to it has lost its parent when it is left out.
  func add(row: Int64, of table: String, _ key: [UInt8], expands: Bool) throws {
    try connection.run(cached: "INSERT INTO node VALUES (?1, ?2, ?3, ?4)", row, table, key, Int64(expands ? 1 : 0))
  }

  /// Follows the foreign keys from the refused rows to all that refer to them, directly or through others.
  ///
  /// - Returns: True if this finds anything that was not known before.
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
