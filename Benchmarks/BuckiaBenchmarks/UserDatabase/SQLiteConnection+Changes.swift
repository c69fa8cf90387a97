import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

extension SQLiteConnection {
  /// Opens a copy to write to, without triggers, foreign-key actions and waiting for the disk.
  static func withoutSideEffects(opening database: String) throws(SQLiteError) -> SQLiteConnection {
    let connection = try SQLiteConnection(opening: database, as: .readWrite)
    try connection.execute("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF")
    try connection.enableTriggers(false)
    return connection
  }
}

extension SQLiteStatement {
  /// Binds values to consecutive parameters.
  func bind(_ values: [ChangesetValue], from start: Int) throws(SQLiteError) {
    for (offset, value) in values.enumerated() { try bind(value, at: start + offset) }
  }
}
