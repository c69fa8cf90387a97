import SQLiteConnections

/// SQLite's own calls, the baseline for Buckia's.
enum StockCalls {
  /// Applies a changeset in one transaction.
  ///
  /// - Parameter answer: What to do with a change that conflicts; by default the call fails.
  static func apply(
    _ changeset: StockChangeset, onConflict answer: StockChangesets.Answer = .abort,
    to connection: borrowing SQLiteConnection
  ) throws {
    // The handler reads neither table nor operation, like any handler that always gives the same answer.
    try changeset.bytes.withUnsafeMutableBytes {
      try StockChangesets.apply($0, to: connection, answering: { _ in answer })
    }
  }

  /// The changeset between the tables of two database files: `sqlite3session_diff`.
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

  /// Applies a changeset to a copy of a database and hashes the table `t` of the result.
  static func contentAfter(
    _ changeset: [UInt8], on original: String, in folder: ScratchFolder
  ) throws -> UInt64 {
    let connection = try SQLiteConnection(opening: try folder.copy(of: original), as: .readWrite)
    try connection.execute("PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF")
    try connection.enableTriggers(false)
    try apply(StockChangeset(changeset), to: connection)
    return try ContentHash.of(TableShape.table, on: connection)
  }
}
