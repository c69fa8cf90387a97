import BuckiaApply
import BuckiaBytes
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Deletions that a comparison with a baseline finds although the rows exist: they are left out of the share because they
/// refer to a missing row.
///
/// They are sent neither as deletions nor as withdrawals, and the baseline keeps the rows. At the recipients such a row
/// stays as it was sent last, until its reference is mended.
package struct HeldDeletions {
  private let changeset: TemporaryBuffer
  /// Runs of neighbouring changes; true for held deletions.
  private var runs: [(count: Int64, isLeftOut: Bool)] = []

  /// Looks up the rows that a difference deletes.
  ///
  /// - Throws: `SQLiteError`, `ChangesetError`, `ByteStreamError`.
  package init(
    in difference: DatabaseDifference, leavingOut rows: ScopeRows, _ schema: SchemaReader,
    on connection: borrowing SQLiteConnection
  ) throws {
    changeset = difference.changeset
    guard !rows.leftOutPlaces.isEmpty else { return }
    let connection = SQLiteConnection(sharing: connection)
    let definitions = difference.tables.map(\.definition)
    let tables = try KeyedTables(definitions, schema)
    var lookups: [TableName: LeftOutLookup] = [:]
    for definition in definitions {
      let name = TableName(definition.name)
      lookups[name] = try LeftOutLookup(of: definition, tables[name], rows, on: connection)
    }
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      var isLeftOut = false
      if change.operation == .delete, let lookup = reader.table.flatMap({ lookups[TableName($0.name)] }) {
        isLeftOut = try lookup.finds(reader.old, bytes, on: connection)
      }
      if let last = runs.indices.last, runs[last].isLeftOut == isLeftOut {
        runs[last].count += 1
      } else {
        runs.append((1, isLeftOut))
      }
    }
  }

  /// Returns a difference without the held deletions.
  ///
  /// - Parameter difference: The difference that was searched.
  /// - Throws: `ChangesetError`, `ByteStreamError`.
  package func removed(from difference: DatabaseDifference) throws -> DatabaseDifference {
    runs.contains { $0.isLeftOut } ? try difference.leavingOut(deletions: runs) : difference
  }

  /// Calls `body` with each row of a table in the baseline.
  func forEach(of table: TableName, _ body: ([ValueSlice], RawSpan) throws -> Void) throws {
    guard runs.contains(where: \.isLeftOut) else { return }
    var runs = WithdrawalRuns(runs.map { ($0.count, isWithdrawal: $0.isLeftOut) })
    try Changesets.forEachChange(of: changeset) { _, reader, bytes in
      if runs.next(), reader.table.map({ TableName($0.name) }) == table { try body(reader.old, bytes) }
    }
  }
}

/// Finds deleted rows among the left-out rows of a table, by key or, without a key, by content.
private final class LeftOutLookup {
  private let table: KeyedTable?
  private let byKey: String
  /// Without an integer key column, the first value of a row is the rowid and no content.
  private let contentStart: Int
  /// The number of left-out rows with each content that no deletion has been matched with yet.
  private var contents: [[UInt8]: Int] = [:]

  /// - Returns: nil if no rows of the table are left out.
  init?(
    of definition: TableDefinition, _ keyed: KeyedTable?, _ rows: ScopeRows, on connection: borrowing SQLiteConnection
  ) throws {
    let name = TableName(definition.name)
    guard let place = rows.leftOutPlaces.first(where: { rows.schema.tables[$0].name == name }) else { return nil }
    let table = rows.schema.tables[place]
    let isLeftOut =
      "(\(table.identity.joined(separator: ", "))) IN (SELECT \(ScopeRows.keys(of: table)) FROM \(ScopeRows.leftOutName(place)))"
    self.table = keyed
    byKey = keyed.map { "\($0.exactLookup) AND \(isLeftOut)" } ?? ""
    contentStart = definition.isKeyedByRowID ? 1 : 0
    let hasNullKey = table.definition.hasNullKeySQL.map { " AND (\($0))" }
    guard keyed == nil || hasNullKey != nil else { return }
    let columns = definition.columns.map(\.name)
    try table.selected.selection(where: isLeftOut + (keyed == nil ? "" : hasNullKey ?? "")).forEachRow(
      of: table.definition, columns.filter { table.definition.column(named: $0) != nil }, on: connection
    ) { contents[$0.record(of: 0..<$0.columnCount), default: 0] += 1 }
  }

  func finds(_ row: [ValueSlice], _ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws -> Bool {
    if let table, table.hasKey(row) { return try table.finds(byKey, row, bytes, on: connection) }
    let content = row.dropFirst(contentStart).flatMap { bytes.array($0.encoded) }
    guard let count = contents[content], count > 0 else { return false }
    contents[content] = count - 1
    return true
  }
}
