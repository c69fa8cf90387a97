import SQLiteChangesets
import SQLiteConnections

/// The rows of a query, in its order.
///
/// A query has at most as many results as a table may have columns. A table of 2,000 columns without a key has one value
/// too many, so there can be a second query for the end of each row, in the same order.
struct RowScan: RowValues, ~Copyable {
  /// Unpaired surrogates. They are gone once SQLite has converted a value to UTF-8, so they are looked for before.
  private final class Surrogates {
    /// The columns of the row in hand that hold any, and those that were written into changes.
    var present: Set<Int> = []
    var written: Set<Int> = []
  }

  private let statement: SQLiteStatement
  private let rest: PreparedStatement?
  /// How many values the first query gives.
  private let width: Int
  /// Those of a database that stores text as UTF-16; nil for others.
  private let surrogates: Surrogates?

  /// Prepares a query.
  ///
  /// - Parameters:
  ///   - results: What it gives, as SQL.
  ///   - source: What follows behind the results. Its order must be that of a key.
  ///   - selection: Gives the source's parameters their values.
  ///   - isUTF16: Whether the database stores text as UTF-16.
  init(
    _ results: [String], _ source: String, binding selection: RowSelection?, isUTF16: Bool,
    on connection: borrowing SQLiteConnection
  ) throws {
    let first = results.prefix(connection.columnLimit)
    let others = results.dropFirst(first.count)
    let rest =
      others.isEmpty
      ? nil : PreparedStatement(try connection.prepare("SELECT \(others.joined(separator: ", ")) \(source)"))
    let statement = try connection.prepare("SELECT \(first.joined(separator: ", ")) \(source)")
    try selection?.bindParameters(to: statement)
    if let rest { try selection?.bindParameters(to: rest.statement) }
    self.init(statement, rest, width: first.count, isUTF16 ? Surrogates() : nil)
  }

  private init(
    _ statement: consuming SQLiteStatement, _ rest: PreparedStatement?, width: Int, _ surrogates: Surrogates?
  ) {
    self.statement = statement
    self.rest = rest
    self.width = width
    self.surrogates = surrogates
  }

  /// The columns with text that is not valid UTF-16 and was written into changes as SQLite converts it.
  var invalidText: Set<Int> { surrogates?.written ?? [] }

  /// The parameters of a query that takes an interval of the key: its last two.
  static let low = ":buckia_low"
  static let high = ":buckia_high"

  /// Begins anew, with the rows whose key is in an interval.
  func restart(within interval: ClosedRange<Int64>) throws {
    try Self.restart(statement, within: interval)
    if let rest { try Self.restart(rest.statement, within: interval) }
  }

  private static func restart(_ query: borrowing SQLiteStatement, within interval: ClosedRange<Int64>) throws {
    query.reset()
    try query.bind(interval.lowerBound, at: query.parameterCount - 2)
    try query.bind(interval.upperBound, at: query.parameterCount - 1)
  }

  /// Goes on to the next row.
  func step() throws -> Bool {
    if let rest { _ = try rest.statement.step() }
    guard try statement.step() else { return false }
    if let surrogates { find(surrogates) }
    return true
  }

  private func find(_ surrogates: Surrogates) {
    surrogates.present.removeAll()
    for column in 0..<statement.columnCount where statement.hasUnpairedSurrogate(at: column) {
      surrogates.present.insert(column)
    }
    guard let rest else { return }
    for column in 0..<rest.statement.columnCount where rest.statement.hasUnpairedSurrogate(at: column) {
      surrogates.present.insert(column + width)
    }
  }

  /// The value of a column of the changeset.
  @inline(__always)
  func value(_ column: Int) -> RowValue { column < width ? statement.value(at: column) : valueOfRest(column) }

  @inline(never)
  private func valueOfRest(_ column: Int) -> RowValue { rest?.statement.value(at: column - width) ?? .null }

  /// Writes a value into a change.
  func append(_ column: Int, to writer: inout ChangesetWriter) {
    if let surrogates, surrogates.present.contains(column) { surrogates.written.insert(column) }
    value(column).append(to: &writer)
  }
}
