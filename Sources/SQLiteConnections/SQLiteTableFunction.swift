/// The rows of one call of a table-valued function, one after the other.
package protocol SQLiteRows: AnyObject {
  /// Moves on to the next row.
  ///
  /// - Returns: false behind the last one.
  func advance() throws -> Bool

  /// The value of a column in the row.
  ///
  /// - Parameter column: Its place among the columns of the function, from 0.
  func value(at column: Int) -> SQLiteFunctionResult
}

/// A table-valued function: a virtual table that is there without being created, and whose arguments are hidden columns.
///
/// ```swift
/// try connection.addTableFunction(
///   SQLiteTableFunction("digits", columns: ["digit"], parameters: ["number"], required: 1, access: .innocuous) {
///     arguments in Digits(of: arguments.integer(at: 0))
///   })
/// try connection.execute("SELECT digit FROM digits(42)")
/// ```
///
/// See <https://sqlite.org/vtab.html#tabfunc2>.
package struct SQLiteTableFunction {
  /// Its name in SQL.
  let name: String
  /// Its columns.
  let columns: [String]
  /// The names of its arguments.
  let parameters: [String]
  /// How many of the arguments must be given.
  let required: Int
  /// Where it may be called from.
  let access: SQLiteFunctionAccess
  /// Begins a call.
  let rows: (borrowing SQLiteArguments) throws -> any SQLiteRows

  /// Makes one.
  ///
  /// - Parameters:
  ///   - name: Its name in SQL.
  ///   - columns: The names of its columns.
  ///   - parameters: The names of its arguments.
  ///   - required: How many of these must be given.
  ///   - access: Where it may be called from.
  ///   - rows: Begins a call; what it throws ends the statement with that message.
  package init(
    _ name: String, columns: [String], parameters: [String] = [], required: Int = 0, access: SQLiteFunctionAccess,
    rows: @escaping (borrowing SQLiteArguments) throws -> any SQLiteRows
  ) {
    self.name = name
    self.columns = columns
    self.parameters = parameters
    self.required = required
    self.access = access
    self.rows = rows
  }

  /// The definition that SQLite is told.
  var declaration: String {
    let all = columns.map { "\"\($0)\"" } + parameters.map { "\"\($0)\" HIDDEN" }
    return "CREATE TABLE x(\(all.joined(separator: ", ")))"
  }
}
