import BuckiaApply
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// A row as it is here, in the columns of a changeset.
struct LocalRow {
  /// Its values, in the format of changesets.
  let values: [UInt8]
  /// Where each of them stands.
  let slices: [ValueSlice]
  /// Its hash as that of a stream.
  let hash: UInt64

  /// Looks up the row with the key of another one.
  ///
  /// - Returns: nil where there is none, or the table does not have all columns.
  /// - Throws: `SQLiteError`.
  init?(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, on connection: borrowing SQLiteConnection) throws {
    guard let query = table.rowQuery else { return nil }
    let prepared = try connection.cached(query)
    defer {
      prepared.statement.reset()
      prepared.statement.clearBindings()
    }
    try table.bindKey(row, bytes, to: prepared.statement)
    guard try prepared.statement.step() else { return nil }
    var writer = ChangesetWriter()
    for column in table.columns.indices { writer.append(column: column, of: prepared.statement) }
    values = writer.bytes
    let read = values.withRawSpan { span in
      var position = 0
      let slices = table.columns.map { _ in ValueSlice(verified: span, at: &position) }
      return (slices, StreamRowHash(slices, span, table.seeds).value)
    }
    (slices, hash) = read
  }

  /// True if its key is spelled like that of another row, which only compares equal where the key has a collating sequence.
  func hasSameKey(as row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) -> Bool {
    table.keyPlaces.allSatisfy { encoded($0) == bytes.array(row[$0].encoded) }
  }

  /// A value, as a changeset has it.
  func encoded(_ place: Int) -> [UInt8] { Array(values[slices[place].encoded]) }

  /// The columns outside of the key in which another row has other values.
  func changedPlaces(_ row: [ValueSlice], _ bytes: RawSpan, _ header: ChangesetTable) -> [Int] {
    row.indices.filter { !header.isKey($0) && encoded($0) != bytes.array(row[$0].encoded) }
  }
}
