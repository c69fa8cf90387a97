import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The table `buckia_resolution`.
extension ResolutionRecord {
  static let definition = """
    CREATE TABLE main.buckia_resolution(
      resolution INTEGER PRIMARY KEY,
      conflict INTEGER NOT NULL,
      answer TEXT NOT NULL,
      decided_by TEXT NOT NULL,
      decided_at INTEGER NOT NULL,
      layout INTEGER NOT NULL,
      before BLOB,
      after BLOB
    );
    CREATE INDEX main.buckia_resolution_conflict ON buckia_resolution(conflict);
    """

  /// All resolutions of a conflict, oldest first.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` when a record is damaged.
  package static func all(of conflict: Int64, on connection: borrowing SQLiteConnection) throws -> [ResolutionRecord] {
    guard try Ledger.exists(on: connection) else { return [] }
    return try read(conflict, "ORDER BY resolution", on: connection)
  }

  /// The last resolution of a conflict; nil for none.
  static func last(of conflict: Int64, on connection: borrowing SQLiteConnection) throws -> ResolutionRecord? {
    try read(conflict, "ORDER BY resolution DESC LIMIT 1", on: connection).first
  }

  /// The number of the newest resolution of any conflict; 0 for none.
  ///
  /// - Throws: `SQLiteError`.
  package static func newest(on connection: borrowing SQLiteConnection) throws -> Int64 {
    guard try Ledger.exists(on: connection) else { return 0 }
    return try connection.integer("SELECT max(resolution) FROM main.buckia_resolution") ?? 0
  }

  private static func read(
    _ conflict: Int64, _ rest: String, on connection: borrowing SQLiteConnection
  ) throws -> [ResolutionRecord] {
    try connection.rows(
      ofCached: """
        SELECT resolution, answer, decided_by, decided_at, layout, before, after FROM main.buckia_resolution
        WHERE conflict = ?1 \(rest)
        """, conflict
    ) { row in
      let columns = try ConflictRecord.columns(of: row.integer(at: 4), on: connection)
      let reader = LargeValues.Reader(on: connection)
      return ResolutionRecord(
        id: row.integer(at: 0), answer: ConflictAnswer.Kind(rawValue: row.text(at: 1) ?? "") ?? .values,
        decidedBy: row.text(at: 2) ?? "", decidedAt: row.integer(at: 3), before: try reader.cells(row, at: 5, columns),
        after: try reader.cells(row, at: 6, columns))
    }
  }
}
