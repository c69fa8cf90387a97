import SQLiteChangesets
import SQLiteConnections

/// The database of one replica, for the length of an edit or a check.
///
/// Statements that an edit runs are written down with their values, so that the edit can be repeated without the code that made it.
public final class SimulatedDatabase {
  /// The number of the replica, from 0.
  public let replica: Int
  private let connection: SQLiteConnection
  private(set) var statements: [Statement] = []

  /// - Parameter connection: The replica's, which must outlive the edit.
  init(_ replica: Int, on connection: borrowing SQLiteConnection) {
    self.replica = replica
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// Runs a statement that changes rows.
  ///
  /// - Parameters:
  ///   - sql: One statement.
  ///   - values: The values of its parameters.
  /// - Throws: `BuckiaError`, such as for a constraint. Thrown on by an edit, it takes back all of the edit, which then counts as
  ///   not made.
  public func run(_ sql: String, _ values: ChangesetValue...) throws {
    try run(Statement(sql: sql, values: values))
  }

  /// The rows of a query.
  ///
  /// - Parameters:
  ///   - sql: One query.
  ///   - values: The values of its parameters.
  /// - Throws: `BuckiaError` when SQLite refuses it.
  public func rows(_ sql: String, _ values: ChangesetValue...) throws -> [[ChangesetValue]] {
    try wrapping {
      let statement = try connection.prepare(sql)
      for (index, value) in values.enumerated() { try statement.bind(value, at: index) }
      var rows: [[ChangesetValue]] = []
      while try statement.step() { rows.append(statement.values) }
      return rows
    }
  }

  /// Runs a statement and writes it down.
  func run(_ statement: Statement) throws {
    try wrapping {
      let prepared = try connection.prepare(statement.sql)
      for (index, value) in statement.values.enumerated() { try prepared.bind(value, at: index) }
      try prepared.run()
    }
    statements.append(statement)
  }

  private func wrapping<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch { throw BuckiaError.wrapped(error) }
  }
}

extension SQLiteStatement {
  /// Binds a value.
  func bind(_ value: ChangesetValue, at index: Int) throws(SQLiteError) {
    switch value {
    case .null: try bindNull(at: index)
    case .integer(let number): try bind(number, at: index)
    case .real(let number): try bind(number, at: index)
    case .text(let text): try bind(text, at: index)
    case .blob(let bytes): try bind(bytes, at: index)
    }
  }

  /// The values of the present row.
  var values: [ChangesetValue] { (0..<columnCount).map { value(at: $0) } }

  /// A value of the present row.
  func value(at index: Int) -> ChangesetValue {
    switch storageClass(at: index) {
    case .null: .null
    case .integer: .integer(integer(at: index))
    case .real: .real(real(at: index))
    case .text: .text(text(at: index) ?? "")
    case .blob: .blob(blob(at: index))
    }
  }
}
