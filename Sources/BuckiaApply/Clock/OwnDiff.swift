import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// A diff that was made from this database: its rows are as the diff says, and the clocks note that it was this one
/// which has said so.
package enum OwnDiff {
  /// Notes what a diff says in the clocks of its tables, if there are any.
  ///
  /// - Parameters:
  ///   - changes: The changes.
  ///   - columns: The names of the columns that each table has in them.
  ///   - diff: The diff's id.
  ///   - origins: Where the changes come from that it only passes on, in their order; empty where all are its own.
  ///   - connection: The database.
  /// - Throws: `SQLiteError`, `ChangesetError`; then nothing has been noted.
  package static func stamp(
    _ changes: TemporaryBuffer, columns: [TableName: [String]], by diff: KSUID, _ origins: [OriginRun] = [],
    on connection: borrowing SQLiteConnection
  ) throws {
    guard try !RowClocks.tables(on: connection).isEmpty else { return }
    let transaction = try SQLiteTransaction(on: connection)
    let schema = try SchemaReader(connection)
    let storesUTF16 = try connection.text("PRAGMA main.encoding") != "UTF-8"
    let summary = try ChangesetSummary.of(changes)
    let sections = TableSections(summary, of: changes)
    let known = try origins.isEmpty ? nil : RowOrigins(origins, of: changes, diff)
    // In the order of the changes, so that stamps have the same numbers each time.
    var seen: Set<TableName> = []
    for name in summary.tables.map({ TableName($0.table.name) }) where seen.insert(name).inserted {
      guard let columns = columns[name], let header = sections.table(named: name),
        let entry = schema.entry(named: name), entry.kind == .table
      else {
        continue
      }
      let local = try schema.definition(of: entry)
      let layout = local.changesetColumns
      let places = columns.compactMap { column in layout.firstIndex { ASCIIName.matches($0, column) } }
      guard places.count == header.columnCount, local.module == nil,
        let number = try RowClocks.number(of: local, on: connection)
      else { continue }
      let match = TableMatch(local, columns: places)
      let clock = try TableClock(
        number, for: match, header, by: diff, origins: known?.table(name), isOwn: true, isAlone: false,
        storesUTF16: storesUTF16, on: connection)
      try sections.forEachChange(of: name) { try clock.stamp($0, $1) }
      try clock.flush()
    }
    try transaction.commit()
  }
}
