import BuckiaApply
import SQLiteConnections

extension DatabaseManager {
  /// Adds the SQL function `buckia_applying()` to a connection of the app, so that its triggers can ask who is writing.
  ///
  /// It returns 1 while Buckia writes to the database through that connection, whatever for, and 0 otherwise. A trigger that is to
  /// fire for the app's own changes only asks for it:
  ///
  /// ```sql
  /// CREATE TRIGGER note_edits AFTER UPDATE ON notes WHEN NOT buckia_applying()
  /// BEGIN INSERT INTO edits VALUES (new.id); END;
  /// ```
  ///
  /// A statement that fires such a trigger fails on connections without the function, so add it to each one right after it was
  /// opened: in GRDB's `prepareDatabase`, for example. It stays until the connection is closed. Where it was not added, Buckia has it
  /// on the connection while it writes. A function of the same name that is there already stays as it is.
  ///
  /// - Parameters:
  ///   - handle: The app's `sqlite3 *`.
  ///   - copy: The copy of SQLite that made it; nil for the one that Buckia links.
  /// - Throws: `BuckiaError` when another copy of SQLite made the handle.
  public static func addApplyingFunction(to handle: OpaquePointer, of copy: SQLiteCopy? = nil) throws {
    try BuckiaError.wrapping {
      try SQLiteConnection.borrowing(handle, of: copy?.library) { try ApplyingFunction.add(to: $0) }
    }
  }
}
