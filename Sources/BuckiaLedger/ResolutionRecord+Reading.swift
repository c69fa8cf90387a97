import SQLiteConnections

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

  /// The last resolution of a conflict; nil where there is none.
  static func last(of conflict: Int64, on connection: borrowing SQLiteConnection) throws -> ResolutionRecord? {
    try read(conflict, "ORDER BY resolution DESC LIMIT 1", on: connection).first
  }

  /// The number of the newest resolution of any conflict; 0 where there is none.
  ///
  /// - Throws: `SQLiteError`.
  package static func newest(on connection: borrowing SQLiteConnection) throws -> Int64 {
    guard try Ledger.exists(on: connection) else { return 0 }
    return try connection.integer("SELECT max(resolution) FROM main.buckia_resolution") ?? 0
  }

  private static func read(
    _ conflict: Int64, _ rest: String, on connection: borrowing SQLiteConnection
  ) throws -> [ResolutionRecord] {
    var found: [ResolutionRecord] = []
    let query = try connection.cached(
      """
      SELECT resolution, answer, decided_by, decided_at, layout, before, after FROM main.buckia_resolution
      WHERE conflict = ?1 \(rest)
      """)
    defer { query.statement.reset() }
    try query.statement.bind(conflict, at: 0)
    while try query.statement.step() {
      let row = query
      let columns = try ConflictRecord.columns(of: row.statement.integer(at: 4), on: connection)
      let reader = LargeValues.Reader(on: connection)
      func version(_ index: Int) throws -> [Cell]? {
        guard !row.statement.isNull(at: index) else { return nil }
        return zip(columns, try reader.values(of: row.statement.blob(at: index))).map { ($0.0.name, $0.1) }
      }
      found.append(
        ResolutionRecord(
          id: row.statement.integer(at: 0),
          answer: ConflictAnswer.Kind(rawValue: row.statement.text(at: 1) ?? "") ?? .values,
          decidedBy: row.statement.text(at: 2) ?? "", decidedAt: row.statement.integer(at: 3), before: try version(5),
          after: try version(6)))
    }
    return found
  }
}
