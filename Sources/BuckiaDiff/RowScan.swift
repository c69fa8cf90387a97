import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The rows of a query, in its order.
///
/// A query has at most as many results as a table may have columns. A table of 2,000 columns without a key has one
/// value too many; a second query then reads the end of each row, in the same order.
struct RowScan: RowValues, ~Copyable {
  /// Unpaired surrogates. SQLite removes them when it converts a value to UTF-8, which is why they are counted before.
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
  ///   - isUTF16: True if the database stores text as UTF-16.
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
    self.statement = statement
    self.rest = rest
    width = first.count
    surrogates = isUTF16 ? Surrogates() : nil
  }

  /// The columns with text that is not valid UTF-16 and was written into changes as SQLite converts it.
  var invalidText: Set<Int> { surrogates?.written ?? [] }

  /// The parameters of a query that takes an interval of the key: its last two.
  static let low = ":buckia_low"
  static let high = ":buckia_high"

  /// Begins again, with the rows whose key is in an interval.
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

  /// Which rows of a table.
  enum Part {
    /// Those that their key identifies, in its order.
    case keyed
    /// Those with NULL in the key, in any order.
    case nullKey
  }

  /// Begins to read rows of one table, by the columns of the changeset.
  ///
  /// - Parameters:
  ///   - table: The table in the source of the snapshot.
  ///   - pair: The table in both sources.
  ///   - collation: By what text is ordered.
  ///   - candidates: The rows that the scan gives. If they are in intervals, it has to be restricted to one of these.
  /// - Returns: nil if there are no such rows.
  init?(
    _ part: Part, of table: SourceTable, in snapshot: DatabaseSnapshot, _ pair: TablePair, collation: String,
    among candidates: CandidateRows?
  ) throws {
    let hasNullKey = table.stored.hasNullKeySQL
    if part == .nullKey, hasNullKey == nil { return nil }
    var results: [String] = []
    var isStored: [Bool] = []
    if pair.definition.isKeyedByRowID {
      guard let name = table.rowIDName else { return nil }
      results.append(pair.isIdentifiedByContent ? "NULL" : name)
      isStored.append(false)
    }
    for column in pair.definition.columns {
      let place = table.places[column.name]
      isStored.append(place != nil)
      results.append(
        try place.map { table.rewritten[$0] ?? SQLText.identifier(table.stored.columns[$0].name) }
          ?? AddedColumnValue.literal(of: column, isStrict: pair.definition.isStrict))
    }
    var terms = [table.selection?.conditionSQL].compactMap { $0 }
    var order: [String] = []
    var listed = ""
    switch part {
    case .keyed:
      // In this form SQLite's index skips the other rows, which it does not do for NOT (…).
      terms += table.stored.nullableKeyColumns.map { "\(SQLText.identifier($0.name)) IS NOT NULL" }
      order =
        pair.definition.isKeyedByRowID && !pair.isIdentifiedByContent
        ? [results[0]] : pair.identity.filter { isStored[$0] }.map { "\(results[$0]) COLLATE \(collation)" }
      switch candidates {
      case .within: terms += pair.identity.map { "\(results[$0]) BETWEEN \(RowScan.low) AND \(RowScan.high)" }
      case .listed(let list):
        // The list comes first, whatever else there is an index for.
        listed = "\(list.sql) CROSS JOIN "
        terms += zip(pair.identity, list.columns).map { "\(results[$0]) = \($1)" }
      case .some(.none), nil: break
      }
    case .nullKey: terms += hasNullKey.map { ["(\($0))"] } ?? []
    }
    let source =
      "FROM \(listed)main.\(SQLText.identifier(table.storedName))"
      + (terms.isEmpty ? "" : " WHERE \(terms.joined(separator: " AND "))")
      + (order.isEmpty ? "" : " ORDER BY \(order.joined(separator: ", "))")
    try self.init(
      results, source, binding: table.selection, isUTF16: snapshot.isUTF16, on: snapshot.source.connection)
  }
}
