import Buckia
import SQLiteConnections

extension SQLiteConnection {
  /// Adds `buckia_conflicts` and `buckia_log`: what is recorded in the database of the connection, with the columns of
  /// `buckia conflicts --json` and `buckia log --json`.
  ///
  /// Without quotes a statement cannot name a column `table`, so it is called `tbl`. `constraint` needs its quotes.
  func addLedgerTables(on host: HostConnection) throws(SQLiteError) {
    try add(
      "buckia_conflicts",
      [
        "id", "diff", "table", "key", "kind", "outcome", "base", "local", "incoming", "reason", "constraint", "others",
        "parent", "status", "rule", "resolution",
      ]
    ) { add in
      try host.withDatabase { database in try database.forEachConflict { try add($0.json) } }
    }
    try add(
      "buckia_log",
      [
        "id", "sender", "senderKey", "state", "appliedAt", "inserted", "updated", "deleted", "conflicts", "omitted",
        "reason", "file", "digest",
      ]
    ) { add in
      try host.withDatabase { database in try database.forEachLogEntry { try add($0.json) } }
    }
  }

  /// Adds a table whose rows are documents.
  ///
  /// - Parameters:
  ///   - name: The table's name.
  ///   - members: The members of the documents.
  ///   - documents: Gives all documents to the closure.
  private func add(
    _ name: String, _ members: [String], _ documents: @escaping ((JSONValue) throws -> Void) throws -> Void
  ) throws(SQLiteError) {
    try addTableFunction(
      SQLiteTableFunction(name, columns: members.map { $0 == "table" ? "tbl" : $0 }, access: .normal) { _ in
        let spool = RowSpool()
        try documents { try spool.append($0.row(members)) }
        return spool
      })
  }
}
