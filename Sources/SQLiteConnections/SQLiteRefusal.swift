import CBuckiaSQLite

/// A row that SQLite would not write: what `SQLiteStatement.attempt` returns instead of throwing.
///
/// Refused rows can come by the million, so there is only a code, no text; `SQLiteConnection.lastMessage` has the words
/// until the next call.
public struct SQLiteRefusal: Equatable, Sendable {
  /// The extended result code, such as 2067 for a UNIQUE violation: <https://sqlite.org/rescode.html>.
  public let code: Int32

  /// Whether another row has the value or the key already.
  public var isUniqueness: Bool {
    code == Self.primaryKey || code == Self.unique || code == Self.rowID
  }

  /// The code of a key that another row has.
  public static let primaryKey: Int32 = 1_555
  /// The code of a value under UNIQUE that another row has.
  public static let unique: Int32 = 2_067
  /// The code of a rowid that another row has.
  public static let rowID: Int32 = 2_579

  /// Another row has a key or a value that must be unique, whichever it is.
  public static let taken = SQLiteRefusal(known: unique)

  /// The table would store another value than the one it is given.
  public static let altered = SQLiteRefusal(known: SQLITE_MISMATCH)

  private init(known code: Int32) { self.code = code }

  /// Nil for codes that do not speak of the row.
  init?(_ code: Int32) {
    guard [SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_TOOBIG].contains(code & 0xff) else { return nil }
    self.code = code
  }
}
