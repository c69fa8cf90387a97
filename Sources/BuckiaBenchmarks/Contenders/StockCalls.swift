import SQLiteConnections

/// SQLite's own calls, which Buckia's are measured against.
enum StockCalls {
  /// Applies a changeset in one transaction.
  ///
  /// - Parameter answer: What becomes of a change that meets a conflict; an error by default.
  static func apply(
    _ changeset: StockChangeset, onConflict answer: StockChangesets.Answer = .abort,
    to connection: borrowing SQLiteConnection
  ) throws {
    // The question's table and operation go unread, as they would in a handler that has one answer.
    try changeset.bytes.withUnsafeMutableBytes {
      try StockChangesets.apply($0, to: connection, answering: { _ in answer })
    }
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
    try apply(StockChangeset(changeset), to: connection)
    return try ContentHash.of(TableShape.table, on: connection)
  }
}

/// A changeset that SQLite's call may have to itself, so that nothing is copied while the clock runs.
final class StockChangeset {
  fileprivate var bytes: [UInt8]

  /// Takes the bytes.
  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    // An array that somebody else holds, too, is copied with the first access to write: now, not later.
    self.bytes.withUnsafeMutableBytes { _ in }
  }

  /// How many bytes it has.
  var count: Int { bytes.count }

  /// A copy of the bytes.
  var copy: [UInt8] { bytes }
}
