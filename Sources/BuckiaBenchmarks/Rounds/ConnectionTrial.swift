import SQLiteConnections

/// Work on one open database.
final class ConnectionTrial: Trial {
  private let connection: SQLiteConnection
  private let result: (borrowing SQLiteConnection) throws -> UInt64
  private let work: (borrowing SQLiteConnection) throws -> Void

  /// Takes the connection, ready and warm, and what to do on it.
  ///
  /// - Parameter content: Reads what the work arrived at: the table `t`, unless it says otherwise.
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

/// Work whose result is looked at afterwards.
public final class ClosureTrial: Trial {
  private let work: () throws -> Double?
  private let result: () throws -> UInt64?

  /// Makes a trial.
  ///
  /// - Parameters:
  ///   - content: What the work arrived at, see ``Trial/content()``.
  ///   - work: The work, see ``Trial/run()``.
  public init(content: @escaping () throws -> UInt64? = { nil }, _ work: @escaping () throws -> Double?) {
    self.work = work
    result = content
  }

  /// Does the work.
  public func run() throws -> Double? { try work() }

  /// What the work arrived at.
  public func content() throws -> UInt64? { try result() }
}
