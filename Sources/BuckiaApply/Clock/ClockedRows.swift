import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The diffs that have set the rows and columns of a table last, by its clock.
package final class ClockedRows {
  /// A diff that has set a row or a column.
  package struct Setter: Equatable, Sendable {
    /// The diff.
    package let diff: KSUID
    /// True if it was made from this database.
    package let isOwn: Bool
  }

  /// The setters of a row and its columns.
  package struct Row {
    /// The diff that has inserted the row; nil for none.
    package fileprivate(set) var insertion: Setter?
    /// The diff that has deleted the row; nil for none.
    package fileprivate(set) var deletion: Setter?
    /// The diffs that have set columns, by column name in lower case.
    package fileprivate(set) var columns: [String: Setter] = [:]

    /// Creates a row without setters.
    package init() {}
  }

  private let number: Int64
  private let key: ClockKey
  private let names: [String]
  private let connection: SQLiteConnection
  private var known: [RowVersionList: Row] = [:]

  /// The most different histories of rows that are cached.
  private static let historyLimit = 4_096

  /// - Parameter includesOwn: True to read the clock even if it has only diffs that were made from this database.
  /// - Returns: nil if the table has no clock, or an empty one.
  package init?(of table: TableDefinition, includingOwn includesOwn: Bool, on connection: borrowing SQLiteConnection)
    throws
  {
    guard try Ledger.exists(on: connection), table.module == nil,
      let number = try RowClocks.number(of: table, on: connection),
      try includesOwn || RowClocks.knowsOthers(in: number, on: connection)
    else { return nil }
    self.number = number
    key = ClockKey(of: table)
    names = try RowClocks.columns(of: number, on: connection).map { ASCIIName.folded($0) }
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// Looks a row up.
  ///
  /// - Parameters:
  ///   - bytes: The values of the key in its order, in the format of changesets.
  ///   - isHere: True if the row is in the table.
  /// - Throws: `SQLiteError`.
  package func row(_ bytes: [UInt8], isHere: Bool) throws -> Row {
    guard
      let list = try key.rowVersions(
        of: ClockKeyRecord(bytes: bytes), in: number, includingRuns: isHere, on: connection)
    else { return Row() }
    if let row = known[list] { return row }
    var row = Row()
    let rowVersions = VersionVector(try list.numbers.compactMap { try RowClocks.rowVersion($0, on: connection) })
    func setter(_ rowVersion: RowVersion?) throws -> Setter? {
      guard let rowVersion, rowVersion.diff != .minimum else { return nil }
      return Setter(diff: rowVersion.diff, isOwn: try RowClocks.isOwn(rowVersion.number, on: connection))
    }
    row.insertion = try setter(rowVersions.rowVersions.first { $0.operation == .insert })
    row.deletion = try setter(rowVersions.rowVersions.first { $0.operation == .delete })
    for (position, name) in names.enumerated() {
      row.columns[name] = try setter(rowVersions.rowVersions.first { $0.columns.contains(position) })
    }
    if known.count >= Self.historyLimit { known.removeAll(keepingCapacity: true) }
    known[list] = row
    return row
  }
}

/// The history of one row in the clock of its table.
package struct RowHistory {
  /// The names of the table's columns, in the order of changesets.
  package let columns: [String]
  /// The row; nil if it does not exist.
  package let values: [ChangesetValue]?
  /// The row version that has inserted the existing row, or deleted the missing one; nil if no diff has.
  package let rowVersion: RowVersion?
  /// The row version that has set each column last; nil if no diff has.
  package let setters: [RowVersion?]

  /// Looks a row up.
  ///
  /// - Parameters:
  ///   - key: The values of the key, in its order.
  ///   - table: The table.
  /// - Returns: nil if the table has no clock.
  package init?(of key: [ChangesetValue], in table: TableDefinition, on connection: borrowing SQLiteConnection) throws {
    guard try Ledger.exists(on: connection), let number = try RowClocks.number(of: table, on: connection) else {
      return nil
    }
    columns = table.changesetColumns
    var writer = ChangesetWriter()
    for value in key { writer.append(value) }
    let record = ClockKeyRecord(bytes: writer.bytes)
    values = try TableRows(table, in: connection).row(record).map {
      try ChangesetValue.record($0).map { $0 ?? .null }
    }
    let isHere = values != nil
    let list = try ClockKey(of: table).rowVersions(of: record, in: number, includingRuns: isHere, on: connection)
    let rowVersions = VersionVector(
      try (list?.numbers ?? []).compactMap { try RowClocks.rowVersion($0, on: connection) })
    let names = try RowClocks.columns(of: number, on: connection)
    rowVersion = rowVersions.rowVersions.first { $0.operation == (isHere ? .insert : .delete) }
    setters = columns.enumerated().map { place, name in
      guard isHere else { return nil }
      if table.keyIndexes.contains(place) { return rowVersions.rowVersions.first { $0.operation == .insert } }
      guard let position = names.firstIndex(where: { ASCIIName.matches($0, name) }) else { return nil }
      return rowVersions.rowVersions.first { $0.columns.contains(position) }
    }
  }
}

extension ClockKey {
  /// The row versions of one row by its key.
  ///
  /// - Parameter includesRuns: True to include runs, which apply only to existing rows.
  fileprivate func rowVersions(
    of row: ClockKeyRecord, in clock: Int64, includingRuns includesRuns: Bool, on connection: borrowing SQLiteConnection
  ) throws -> RowVersionList? {
    func list(_ sql: String) throws -> RowVersionList? {
      let query = try connection.cached(sql)
      defer { query.statement.reset() }
      try row.bind(to: query.statement, from: 0)
      guard try query.statement.step(), !query.statement.isNull(at: 0) else { return nil }
      return RowVersionList(query.statement, at: 0)
    }
    let parameters = names().indices.map { "?\($0 + 1)" }
    let own = zip(names(), parameters).map { "\($0) = \($1)" }.joined(separator: " AND ")
    if let found = try list("SELECT row_versions FROM main.buckia_clock_\(clock) WHERE \(own)") { return found }
    guard includesRuns else { return nil }
    let (first, last) = (ClockKey.row(names("f")), ClockKey.row(names("l")))
    let order = names("f").map { "\($0) DESC" }.joined(separator: ", ")
    return try list(
      """
      SELECT CASE WHEN \(last) >= \(ClockKey.row(parameters)) THEN row_versions END FROM main.buckia_clock_\(clock)_run
      WHERE \(first) <= \(ClockKey.row(parameters)) ORDER BY \(order) LIMIT 1
      """)
  }
}
