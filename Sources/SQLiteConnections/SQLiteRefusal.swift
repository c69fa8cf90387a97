import CBuckiaSQLite

/// Why SQLite did not write a row: what `SQLiteStatement.attempt` returns instead of throwing.
///
/// There can be millions of refused rows, so this is only a code. `SQLiteStatement.lastMessage` has SQLite's message until
/// the next call.
package struct SQLiteRefusal: Equatable, Sendable {
  /// The extended result code, such as 2067 for a UNIQUE violation: <https://sqlite.org/rescode.html>.
  package let code: Int32

  /// Whether another row has the same unique value or key.
  package var isUniqueness: Bool {
    code == Self.primaryKey || code == Self.unique || code == Self.rowID
  }

  /// The code for a primary key that another row has.
  package static let primaryKey: Int32 = 1_555
  /// The code for a UNIQUE value that another row has.
  package static let unique: Int32 = 2_067
  /// The code for a rowid that another row has.
  package static let rowID: Int32 = 2_579

  /// Another row has the same key or unique value.
  package static let taken = SQLiteRefusal(known: unique)

  /// The table would store a different value than it was given.
  package static let altered = SQLiteRefusal(known: SQLITE_MISMATCH)

  private init(known code: Int32) { self.code = code }

  /// nil for codes that are not about the row.
  init?(_ code: Int32) {
    guard [SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_TOOBIG].contains(code & 0xff) else { return nil }
    self.code = code
  }
}
