import CBuckiaSQLite

/// An SQL function without arguments that tells triggers whether something is going on on their connection: 1 while it is, else 0.
///
/// ```swift
/// try copying.add(to: connection)
/// copying.begin(on: connection)
/// try connection.integer("SELECT is_copying()")  // 1
/// copying.end(on: connection)
/// ```
package final class SQLiteStateFunction: Sendable {
  /// Its name in SQL, a plain word.
  package let name: String
  private let counts = ConnectionCounts()

  /// Makes a function, which is on no connection yet.
  package init(named name: String) { self.name = name }

  /// Adds the function to a connection, where it stays until it is removed or the connection is closed. A function of this name that
  /// is there already stays.
  ///
  /// - Returns: Whether it was added.
  /// - Throws: `SQLiteError` when there is no memory for it.
  @discardableResult
  package func add(to connection: borrowing SQLiteConnection) throws(SQLiteError) -> Bool {
    guard !isThere(on: connection) else { return false }
    let pointer = connection.handle.pointer
    let code = SQLiteFunctions.addInnocuous(name, on: connection.handle) { [counts] in
      .integer(counts[pointer] == 0 ? 0 : 1)
    }
    // It is there after all, and a statement is running: an authorizer of the app's may have kept it from being seen.
    if code & 0xff == SQLITE_BUSY { return false }
    try connection.handle.check(code)
    return true
  }

  /// Removes the function from a connection. SQLite keeps it while a statement of the connection is running, or an R-tree has been
  /// written to in the open transaction: then it stays, and says that nothing is going on.
  package func remove(from connection: borrowing SQLiteConnection) {
    _ = connection.handle.routines.create_function_v2(
      connection.handle.pointer, name, 0, SQLITE_UTF8, nil, nil, nil)
  }

  /// Whether statements of the connection can call it. Adding it again would make SQLite prepare all of them anew.
  private func isThere(on connection: borrowing SQLiteConnection) -> Bool {
    do {
      _ = try connection.prepare("SELECT \(name)()")
      return true
    } catch {
      return false
    }
  }

  /// Says that it is going on on a connection. It may begin several times, and has ended when each of them has.
  package func begin(on connection: borrowing SQLiteConnection) { counts.begin(connection.handle.pointer) }

  /// Says that it has ended.
  package func end(on connection: borrowing SQLiteConnection) { counts.end(connection.handle.pointer) }
}
