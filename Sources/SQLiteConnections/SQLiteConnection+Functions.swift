import CBuckiaSQLite

/// Where a function, or a table-valued one, may be called from.
package enum SQLiteFunctionAccess: Sendable {
  /// Everywhere, a schema that is not trusted included: it has no effect, and tells nothing but what follows from its arguments.
  case innocuous
  /// Everywhere but in a schema that is not trusted.
  case normal
  /// In statements of the program only, not in views, triggers and other parts of a schema: it has effects, or reads files.
  case direct
}

extension SQLiteConnection {
  /// Adds a scalar function that stays until the connection is closed.
  ///
  /// - Parameters:
  ///   - name: Its name in SQL.
  ///   - argumentCounts: With how many arguments it may be called.
  ///   - access: Where it may be called from.
  ///   - isDeterministic: Whether equal arguments always give an equal result.
  ///   - body: Computes the result; what it throws ends the statement with that message.
  /// - Throws: `SQLiteError`.
  package func addFunction(
    _ name: String, argumentCounts: ClosedRange<Int>, access: SQLiteFunctionAccess, isDeterministic: Bool = false,
    _ body: @escaping (borrowing SQLiteArguments) throws -> SQLiteFunctionResult
  ) throws(SQLiteError) {
    var flags: Int32 =
      switch access {
      case .innocuous: SQLITE_INNOCUOUS
      case .normal: 0
      case .direct: SQLITE_DIRECTONLY
      }
    if isDeterministic { flags |= SQLITE_DETERMINISTIC }
    for count in argumentCounts {
      try handle.check(SQLiteFunctions.create(name, Int32(count), flags, on: handle, SQLiteFunctionBody(body)))
    }
  }

  /// Adds a table-valued function that stays until the connection is closed.
  ///
  /// - Throws: `SQLiteError`.
  package func addTableFunction(_ function: SQLiteTableFunction) throws(SQLiteError) {
    try handle.check(function.add(to: handle))
  }

  /// Whether a statement of the connection is running that writes; one that only reads is not meant.
  package var isWritingStatementRunning: Bool {
    var next = handle.routines.next_stmt(handle.pointer, nil)
    while let statement = next {
      if handle.routines.stmt_busy(statement) != 0, handle.routines.stmt_readonly(statement) == 0 { return true }
      next = handle.routines.next_stmt(handle.pointer, statement)
    }
    return false
  }

  /// Whether any database of the connection is being read or written: by the open transaction, or by a statement that is running.
  package var hasLocks: Bool { handle.routines.txn_state(handle.pointer, nil) != SQLITE_TXN_NONE }
}
