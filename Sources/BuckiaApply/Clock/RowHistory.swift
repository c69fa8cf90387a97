import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

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
    let stamps = RowStamps(
      try Self.list(of: record, ClockKey(of: table), number, includingRuns: values != nil, on: connection)
        .compactMap { try RowClocks.stamp($0, on: connection) })
    let names = try RowClocks.columns(of: number, on: connection)
    let isHere = values != nil
    stamp = stamps.stamps.first { $0.operation == (isHere ? .insert : .delete) }
    setters = columns.enumerated().map { place, name in
      guard isHere else { return nil }
      if table.keyIndexes.contains(place) { return stamps.stamps.first { $0.operation == .insert } }
      guard let position = names.firstIndex(where: { ASCIIName.matches($0, name) }) else { return nil }
      return stamps.stamps.first { $0.columns.contains(position) }
    }
  }

  static func list(
    of record: ClockKeyRecord, _ key: ClockKey, _ number: Int64, includingRuns: Bool,
    on connection: borrowing SQLiteConnection
  ) throws -> [Int64] {
    let count = key.names().count
    let parameters = (1...count).map { "?\($0)" }
    let own = zip(key.names(), parameters).map { "\($0) = \($1)" }.joined(separator: " AND ")
    let row = try connection.prepare("SELECT stamps FROM main.buckia_clock_\(number) WHERE \(own)")
    try record.bind(to: row, from: 0)
    if try row.step(), let list = StampList(row, at: 0) { return list.numbers }
    guard includingRuns else { return [] }
    let (first, last) = (ClockKey.row(key.names("f")), ClockKey.row(key.names("l")))
    let run = try connection.prepare(
      """
      SELECT stamps FROM main.buckia_clock_\(number)_run
      WHERE \(first) <= \(ClockKey.row(parameters)) AND \(last) >= \(ClockKey.row(parameters)) LIMIT 1
      """)
    try record.bind(to: run, from: 0)
    return try run.step() ? StampList(run, at: 0)?.numbers ?? [] : []
  }
}
