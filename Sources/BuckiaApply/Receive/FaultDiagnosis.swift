import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteConnections

/// Looks closer where SQLite's result code leaves open whether a file, the database or the machine is to blame.
enum FaultDiagnosis {
  /// The error that says who is to blame, given one that a file's changes have met.
  ///
  /// - Parameter connection: The database, before anything is rolled back.
  static func refined(_ error: any Error, on connection: borrowing SQLiteConnection) -> any Error {
    guard let failure = error as? SQLiteError, !failure.isAboutLedger else { return error }
    if failure.isFullDisk, let table = tableWithoutIDs(on: connection) {
      return ReplicationError(
        .noIDsLeft,
        "the table \(EscapedText.quoted(table)) with AUTOINCREMENT has given out the greatest id there is, so that no row can be added to it",
        table: table, cause: failure)
    }
    if failure.isCorrupt { return ReplicationError.damaged(table: nil, failure) }
    // The transaction is there, so the database can be written: a virtual table refuses it, or a trigger wants what cannot be.
    if failure.isReadOnly, failure.primaryCode == failure.code, connection.transactionState == .write {
      return Refusal(.rejected, code: BuckiaErrorCode(failure), reason: failure.message)
    }
    return error
  }

  /// The greatest rowid. See <https://sqlite.org/autoinc.html>.
  private static let greatestID = Int64.max

  /// A table with AUTOINCREMENT that cannot give out another id: SQLite calls that a full disk.
  private static func tableWithoutIDs(on connection: borrowing SQLiteConnection) -> String? {
    do {
      var schemas: [String] = []
      try connection.forEachRow(of: "SELECT name FROM pragma_database_list") { schemas.append($0.text(at: 0) ?? "") }
      for schema in schemas.map({ SQLText.identifier($0) }) {
        let hasCounters =
          "SELECT 1 FROM \(schema).sqlite_schema WHERE type = 'table' AND name = 'sqlite_sequence'"
        guard try connection.integer(hasCounters) != nil else { continue }
        let used = "SELECT name FROM \(schema).sqlite_sequence WHERE CAST(seq AS INTEGER) = \(greatestID)"
        if let table = try connection.text(used) { return table }
        // A row that has the greatest id counts, too, whatever the counter says.
        var tables: [String] = []
        let counting = "SELECT name FROM \(schema).sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'"
        try connection.forEachRow(of: counting) { tables.append($0.text(at: 0) ?? "") }
        for table in tables {
          let row = "SELECT 1 FROM \(schema).\(SQLText.identifier(table)) WHERE rowid = \(greatestID)"
          if try connection.integer(row) != nil { return table }
        }
      }
    } catch {
      // What keeps us from looking is a failure of the database, as the first one then is.
    }
    return nil
  }
}

extension ReplicationError {
  /// Says that the local database is damaged where changes need it.
  ///
  /// - Parameter table: The table whose changes met the damage, which may lie in an index of it, too.
  static func damaged(table: String?, _ cause: SQLiteError) -> ReplicationError {
    let place = table.map { "in table \(EscapedText.quoted($0)) or what belongs to it" } ?? "where it is needed"
    return ReplicationError(
      .damagedDatabase, "the local database is damaged \(place) (\(cause.message)); restore a backup", table: table,
      cause: cause)
  }
}
