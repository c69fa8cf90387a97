import SQLiteConnections
import SQLiteSchemas

/// The counters of AUTOINCREMENT tables, which keep an id from being given out twice.
///
/// SQLite moves a counter on when a row is inserted, at the end of the statement. It does not when the statement ends at a
/// refused row (`OR FAIL`), nor for a row that was updated, replaced where it stood, or left out. The author of an INSERT has used
/// its id all the same. A change that meets no row moves no counter: anybody can name any id. See
/// <https://sqlite.org/autoinc.html>.
package enum AutoIncrement {
  /// The greatest id that an INSERT may bring into a table. An INSERT of a greater one would leave the table too few ids for new rows:
  /// once the last is used, SQLite refuses every INSERT without an id, also when the row is deleted.
  package static let greatestIncomingID = Int64.max - (1 << 32)

  /// Makes sure that the next id of a table is greater than one that has travelled.
  ///
  /// - Throws: `SQLiteError`.
  package static func raise(_ table: TableName, to rowID: Int64, on connection: borrowing SQLiteConnection) throws {
    guard rowID > 0 else { return }
    // SQLite compares the name byte for byte, and takes what is no number for 0.
    try connection.run(
      cached: "UPDATE main.sqlite_sequence SET seq = ?1 WHERE name = ?2 AND coalesce(CAST(seq AS INTEGER), 0) < ?1",
      rowID, table.text)
    guard connection.changes == 0 else { return }
    try connection.run(
      cached: """
        INSERT INTO main.sqlite_sequence(seq, name) SELECT ?1, ?2
        WHERE NOT EXISTS (SELECT 1 FROM main.sqlite_sequence WHERE name = ?2)
        """, rowID, table.text)
  }
}
