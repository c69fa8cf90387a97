import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// What the diffs of others have made of rows here, as far as the ledger keeps it: what a row has since is told from that.
final class TakenChanges {
  private struct Row {
    /// The diff that has inserted or deleted it; nil where that is not known.
    var diff: KSUID?
    /// True if it has deleted it.
    var isDeletion = false
    /// The hashes of values, and the diffs that have set them, by columns in lower case.
    var values: [String: (hash: UInt64, diff: KSUID)] = [:]
  }

  private var rows: [TableName: [[UInt8]: Row]] = [:]
  private var seeds: [String: StreamRowHash.Seed] = [:]

  /// Reads it.
  ///
  /// - Parameter tables: The tables that count.
  /// - Throws: `SQLiteError`, `ChangesetError`; `LedgerError` when the ledger is damaged.
  init(of tables: [TableDefinition], on connection: borrowing SQLiteConnection) throws {
    let tables = Dictionary(tables.map { (TableName($0.name), $0) }) { first, _ in first }
    var reader = EffectReader()
    for entry in try AppliedEffects.entries(on: connection) {
      let parts = try reader.parts(of: entry.number, on: connection)
      if parts.isEmpty, entry.hasWritten {
        // Nobody knows which of the rows are as it has left them.
        rows = [:]
      }
      for part in parts {
        let columns = Dictionary(part.tables.map { (TableName($0.name), $0.columns) }) { first, _ in first }
        try Changesets.forEachChange(of: TemporaryBuffer(part.changes)) { change, reader, bytes in
          guard let header = reader.table else { return }
          let name = TableName(header.name)
          guard let table = tables[name], let columns = columns[name], columns.count == header.columnCount else {
            return
          }
          try note(change, reader, bytes, table, name, columns.map { ASCIIName.folded($0) }, by: entry.diff)
        }
      }
    }
  }

  private func note(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, _ table: TableDefinition, _ name: TableName,
    _ columns: [String], by diff: KSUID?
  ) throws {
    let old = change.operation == .insert ? reader.new : reader.old
    guard let key = Self.key(old, bytes, table, columns) else { return }
    var row = change.operation == .update ? rows[name]?[key] ?? Row() : Row()
    if change.operation != .update { (row.diff, row.isDeletion) = (diff, change.operation == .delete) }
    if change.operation != .delete {
      for (place, column) in columns.enumerated() where reader.new[place].isDefined {
        row.values[column] = diff.map { (hash(reader.new[place], bytes, column), $0) }
      }
    }
    rows[name, default: [:]][key] = row
  }

  private static func key(
    _ row: [ValueSlice], _ bytes: RawSpan, _ table: TableDefinition, _ columns: [String]
  ) -> [UInt8]? {
    guard !table.isKeyedByRowID else { return nil }
    var key: [UInt8] = []
    for column in table.primaryKey {
      guard let place = columns.firstIndex(of: ASCIIName.folded(table.columns[column].name)), row[place].isDefined
      else { return nil }
      key += bytes.array(row[place].encoded)
    }
    return key
  }

  private func hash(_ value: ValueSlice, _ bytes: RawSpan, _ column: String) -> UInt64 {
    let seed = seeds[column] ?? StreamRowHash.Seed(of: column)
    seeds[column] = seed
    var hash = StreamRowHash()
    hash.add(value, bytes, seed)
    return hash.value
  }

  /// The diff that has inserted a row which is here, or deleted one that is not; nil where that was done here, or is not known.
  func diff(ofRow key: [UInt8], in table: TableName, isHere: Bool) -> KSUID? {
    rows[table]?[key].flatMap { $0.isDeletion == isHere ? nil : $0.diff }
  }

  /// The diff that has made a column what it is; nil where it was edited here since, or nothing is known.
  ///
  /// - Parameter value: What the column is.
  func diff(of column: String, _ value: ValueSlice, _ bytes: RawSpan, inRow key: [UInt8], of table: TableName) -> KSUID?
  {
    guard let known = rows[table]?[key]?.values[column], known.hash == hash(value, bytes, column) else { return nil }
    return known.diff
  }

  /// Whether a diff is known to have made a column something else than it is.
  ///
  /// - Parameters: As those of ``diff(of:_:_:inRow:of:)``.
  func isOther(
    than diff: KSUID, _ column: String, _ value: ValueSlice, _ bytes: RawSpan, inRow key: [UInt8],
    of table: TableName
  ) -> Bool {
    guard let known = rows[table]?[key]?.values[column], known.diff == diff else { return false }
    return known.hash != hash(value, bytes, column)
  }
}
