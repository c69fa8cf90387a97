import SQLiteConnections

/// SQLite's own calls, which Buckia's are measured against.
enum StockCalls {
  /// Applies a changeset in one transaction; a conflict is an error.
  static func apply(_ changeset: [UInt8], to connection: borrowing SQLiteConnection) throws {
    try StockChangesets.apply(changeset, to: connection) { _ in .abort }
  }

  /// Applies a changeset in one transaction; what meets a conflict is left out.
  static func applyKeepingLocal(_ changeset: [UInt8], to connection: borrowing SQLiteConnection) throws {
    try StockChangesets.apply(changeset, to: connection) { _ in .omit }
  }

  /// What turns the tables of one database file into those of another: `sqlite3session_diff`.
  static func difference(from older: String, to newer: String, tables: [String]) throws -> [UInt8] {
    let connection = try SQLiteConnection(opening: newer, as: .readOnly)
    try connection.attach(older, as: "older")
    let session = try SQLiteSession(on: connection)
    for table in tables {
      try session.attach(table)
      try session.recordDifference(from: "older", table: table)
    }
    return try session.changeset()
  }

  /// What a changeset makes of a database: the hash of one table after it was applied to a copy.
  static func contentAfter(
    _ changeset: [UInt8], on original: String, in folder: ScratchFolder
  ) throws -> UInt64 {
    let connection = try SQLiteConnection(opening: try folder.copy(of: original), as: .readWrite)
    try connection.execute("PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF")
    try connection.enableTriggers(false)
    try apply(changeset, to: connection)
    return try ContentHash.of(TableShape.table, on: connection)
  }
}
