import SQLiteSchemas
import SQLiteConnections

/// Makes SQLite roll back single statements where it would roll back the whole transaction, in order to see what a failure
/// was about before everything is gone.
///
/// When SQLite finds "the disk full", it keeps the transaction only for a statement that has a journal of its own. It gives one
/// to statements that write several rows and may be aborted, which a trigger with `RAISE(ABORT)` makes of any.
/// See <https://sqlite.org/lang_transaction.html#response_to_errors_within_a_transaction>.
enum StatementRollback {
  /// Puts a TEMP trigger that never does anything on every table that has none.
  ///
  /// The transaction must be rolled back afterwards, which takes the triggers away.
  ///
  /// - Throws: `SQLiteError`.
  static func require(in session: ApplySession) throws {
    for entry in try session.schema().entries where entry.kind == .table {
      for event in ["INSERT", "UPDATE", "DELETE"] {
        let name = SQLText.identifier("\(SQLiteConnection.temporaryPrefix)statement_\(event)_\(entry.name.text)")
        try session.connection.execute(
          """
          CREATE TEMP TRIGGER IF NOT EXISTS \(name) BEFORE \(event) ON main.\(entry.name.quoted) WHEN 0 BEGIN
            SELECT RAISE(ABORT, '');
          END
          """)
      }
    }
  }
}
