import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Which diffs have set the rows and columns of a table last, as its clock has it.
package final class StampedRows {
  /// A diff that has set something.
  package struct Setter: Equatable, Sendable {
    /// The diff.
    package let diff: KSUID
    /// True if it was made from this database.
    package let isOwn: Bool
  }

  /// What is known of a row.
  package struct Row {
    /// What has inserted the row; nil for no diff.
    package fileprivate(set) var insertion: Setter?
    /// What has deleted it.
    package fileprivate(set) var deletion: Setter?
    /// What has set columns, by the name of the column in lower case.
    package fileprivate(set) var columns: [String: Setter] = [:]

    /// Nothing is known of the row.
    package init() {}
  }

  private let number: Int64
  private let key: ClockKey
  private let names: [String]
  private let connection: SQLiteConnection
  private var known: [StampList: Row] = [:]

  /// How many different histories of rows are remembered.
  private static let historyLimit = 4_096

  /// - Parameter includesOwn: True if it is worth while if the clock knows no diffs but those made from this database.
  /// - Returns: nil where the table has no clock, or one that knows nothing.
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
  ///   - bytes: The values of its key, as the key has them in order, in the format of changesets.
  ///   - isHere: True if the row is in the table.
  /// - Throws: `SQLiteError`.
  package func row(_ bytes: [UInt8], isHere: Bool) throws -> Row {
    guard
      let list = try key.stamps(of: ClockKeyRecord(bytes: bytes), in: number, includingRuns: isHere, on: connection)
    else { return Row() }
    if let row = known[list] { return row }
    var row = Row()
    let stamps = RowStamps(try list.numbers.compactMap { try RowClocks.stamp($0, on: connection) })
    func setter(_ stamp: RowStamp?) throws -> Setter? {
      guard let stamp, stamp.diff != .minimum else { return nil }
      return Setter(diff: stamp.diff, isOwn: try RowClocks.isOwn(stamp.number, on: connection))
    }
    row.insertion = try setter(stamps.stamps.first { $0.operation == .insert })
    row.deletion = try setter(stamps.stamps.first { $0.operation == .delete })
    for (position, name) in names.enumerated() {
      row.columns[name] = try setter(stamps.stamps.first { $0.columns.contains(position) })
    }
    if known.count >= Self.historyLimit { known.removeAll(keepingCapacity: true) }
    known[list] = row
    return row
  }
}

/// What the clock of a table knows of one row.
package struct RowHistory {
  /// The names of the table's columns as changesets have them.
  package let columns: [String]
  /// The row; nil where it is not there.
  package let values: [ChangesetValue]?
  /// The stamp that has inserted the row, or deleted the one that is not there; nil where no diff has.
  package let stamp: RowStamp?
  /// For each column the stamp that has set it last; nil where no diff has.
  package let setters: [RowStamp?]

  /// Looks a row up.
  ///
  /// - Parameters:
  ///   - key: A value for each column of the key, as the key has them in order.
  ///   - table: The table.
  /// - Returns: nil where the table has no clock.
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
    let list = try ClockKey(of: table).stamps(of: record, in: number, includingRuns: isHere, on: connection)
    let stamps = RowStamps(try (list?.numbers ?? []).compactMap { try RowClocks.stamp($0, on: connection) })
    let names = try RowClocks.columns(of: number, on: connection)
    stamp = stamps.stamps.first { $0.operation == (isHere ? .insert : .delete) }
    setters = columns.enumerated().map { place, name in
      guard isHere else { return nil }
      if table.keyIndexes.contains(place) { return stamps.stamps.first { $0.operation == .insert } }
      guard let position = names.firstIndex(where: { ASCIIName.matches($0, name) }) else { return nil }
      return stamps.stamps.first { $0.columns.contains(position) }
    }
  }
}

extension ClockKey {
  /// The stamps of one row, looked up by its key in a clock.
  ///
  /// - Parameter includesRuns: True if runs are looked at, too: what they say holds for rows only that are here.
  fileprivate func stamps(
    of row: ClockKeyRecord, in clock: Int64, includingRuns includesRuns: Bool, on connection: borrowing SQLiteConnection
  ) throws -> StampList? {
    func list(_ sql: String) throws -> StampList? {
      let query = try connection.cached(sql)
      defer { query.statement.reset() }
      try row.bind(to: query.statement, from: 0)
      guard try query.statement.step(), !query.statement.isNull(at: 0) else { return nil }
      return StampList(query.statement, at: 0)
    }
    let parameters = names().indices.map { "?\($0 + 1)" }
    let own = zip(names(), parameters).map { "\($0) = \($1)" }.joined(separator: " AND ")
    if let found = try list("SELECT stamps FROM main.buckia_clock_\(clock) WHERE \(own)") { return found }
    guard includesRuns else { return nil }
    let (first, last) = (ClockKey.row(names("f")), ClockKey.row(names("l")))
    let order = names("f").map { "\($0) DESC" }.joined(separator: ", ")
    return try list(
      """
      SELECT CASE WHEN \(last) >= \(ClockKey.row(parameters)) THEN stamps END FROM main.buckia_clock_\(clock)_run
      WHERE \(first) <= \(ClockKey.row(parameters)) ORDER BY \(order) LIMIT 1
      """)
  }
}
