import SQLiteConnections

/// The SQL function `buckia_applying()`, by which triggers of the application tell changes that Buckia writes from its own.
package enum ApplyingFunction {
  /// It goes on while an ``ApplySession`` has a connection ready: changes are applied, conflicts resolved, diffs taken back, databases
  /// merged.
  static let state = SQLiteStateFunction(named: "buckia_applying")

  /// Adds the function to a connection, where it stays until that is closed.
  ///
  /// - Throws: `SQLiteError` when there is no memory for it.
  package static func add(to connection: borrowing SQLiteConnection) throws(SQLiteError) {
    try state.add(to: connection)
  }
}
