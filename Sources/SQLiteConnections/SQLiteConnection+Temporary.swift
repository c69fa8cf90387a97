import CBuckiaSQLite

/// What Buckia adds to a connection for the length of a call.
extension SQLiteConnection {
  /// The names of all TEMP tables and triggers of Buckia begin so. ``borrowing(_:of:_:)`` drops those that are left.
  package static let temporaryPrefix = "buckia_temp_"

  /// The connections of the app's that are borrowed at the moment.
  private static let loans = ConnectionCounts()

  /// Notes that the connection is borrowed.
  func beginLoan() { Self.loans.begin(handle.pointer) }

  /// Removes what Buckia has added to a borrowed connection. A call inside of another, such as a resolver's, leaves what that one needs.
  ///
  /// - Throws: `SQLiteError`.
  func giveBack() throws {
    cache.statements = [:]
    if handle.hasByteCollation { removeByteCollation() }
    if Self.loans.end(handle.pointer) == 0 { try dropTemporaryObjects() }
  }

  private static let isOurs = "substr(iif(type = 'trigger', name, tbl_name), 1, 12) = '\(temporaryPrefix)'"

  /// A Boolean value that indicates whether anything was made in the schema `temp` by others than Buckia.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  var hasTemporaryObjectsOfOthers: Bool {
    get throws(SQLiteError) {
      guard hasTemporarySchema else { return false }
      return try integer("SELECT 1 FROM temp.sqlite_schema WHERE NOT \(Self.isOurs) LIMIT 1") != nil
    }
  }

  /// Drops the TEMP tables and triggers of Buckia.
  ///
  /// SQLite drops no table while a statement of the connection reads. Such a table is emptied, and dropped after a later call.
  ///
  /// - Throws: `SQLiteError`.
  private func dropTemporaryObjects() throws {
    guard hasTemporarySchema else { return }
    var triggers: [String] = []
    var tables: [String] = []
    try forEachRow(
      of: """
        SELECT type, printf('temp."%w"', name) FROM temp.sqlite_schema
        WHERE type IN ('table', 'trigger') AND \(Self.isOurs)
        """
    ) { row in
      let name = row.text(at: 1) ?? ""
      if row.text(at: 0) == "table" { tables.append(name) } else { triggers.append(name) }
    }
    for name in triggers { try execute("DROP TRIGGER \(name)") }
    for name in tables {
      do throws(SQLiteError) {
        try execute("DROP TABLE \(name)")
      } catch {
        guard error.primaryCode == SQLITE_LOCKED else { throw error }
        try execute("DELETE FROM \(name)")
      }
    }
  }

  /// A Boolean value that indicates whether the connection has used the schema `temp` so far. SQLite makes it when it is first asked for,
  /// and does not let its storage be chosen any more inside a transaction.
  private var hasTemporarySchema: Bool { handle.routines.db_readonly(handle.pointer, "temp") >= 0 }
}
