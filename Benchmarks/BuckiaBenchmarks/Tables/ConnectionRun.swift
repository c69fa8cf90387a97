import SQLiteConnections

/// A run on one open database.
final class ConnectionRun: PreparedRun {
  private let connection: SQLiteConnection
  private let result: (borrowing SQLiteConnection) throws -> UInt64
  private let work: (borrowing SQLiteConnection) throws -> Void

  /// Takes an open connection and the work to do on it.
  ///
  /// - Parameter content: Hashes the rows that the work produced: those of the table `t` by default.
  init(
    _ connection: consuming SQLiteConnection,
    content: @escaping (borrowing SQLiteConnection) throws -> UInt64 = { try ContentHash.of(TableShape.table, on: $0) },
    _ work: @escaping (borrowing SQLiteConnection) throws -> Void
  ) {
    self.connection = connection
    self.work = work
    result = content
  }

  func run() throws -> Double? {
    try work(connection)
    return nil
  }

  func content() throws -> UInt64? { try result(connection) }
}
