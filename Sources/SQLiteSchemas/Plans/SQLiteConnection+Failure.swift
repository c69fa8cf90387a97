import SQLiteConnections

extension SQLiteError {
  /// Whether another statement in this one's place could do better: not when memory, the disk or a lock is to blame, or
  /// the work was interrupted. Only then the transaction is sure to be still there.
  package var isAboutTheStatement: Bool { ![4, 5, 6, 7, 8, 9, 10, 13, 14].contains(primaryCode) }
}

extension SQLiteConnection {
  /// Runs a statement.
  ///
  /// - Returns: Why it failed, or nil.
  /// - Throws: `SQLiteError` when that is not the statement's fault.
  package func failure(ofRunning sql: String) throws(SQLiteError) -> String? {
    do throws(SQLiteError) {
      try execute(sql)
      return nil
    } catch {
      guard error.isAboutTheStatement else { throw error }
      return error.message
    }
  }

  /// As ``failure(ofRunning:)``, but only prepares it.
  package func failure(ofPreparing sql: String) throws(SQLiteError) -> String? {
    do throws(SQLiteError) {
      _ = try prepare(sql)
      return nil
    } catch {
      guard error.isAboutTheStatement else { throw error }
      return error.message
    }
  }
}
