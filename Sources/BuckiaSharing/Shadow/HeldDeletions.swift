import BuckiaApply
import BuckiaBytes
import BuckiaDiff
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Deletions that a comparison with a shadow finds of rows which are there, and left out of the share because a reference of theirs dangles.
///
/// They are not sent, neither as deletions nor as withdrawals, and the shadow keeps the rows: a row that was sent stays at the receivers as it
/// was sent last, until it is mended.
package struct HeldDeletions {
  private let changeset: TemporaryBuffer
  /// Neighbouring changes, and whether they are such deletions.
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

  /// A difference without these deletions.
  ///
  /// - Parameter difference: The one in which they were found.
  /// - Throws: `ChangesetError`, `ByteStreamError`.
  package func removed(from difference: DatabaseDifference) throws -> DatabaseDifference {
    runs.contains { $0.isLeftOut } ? try difference.leavingOut(deletions: runs) : difference
  }

  /// Gives each row of a table, as the shadow has it.
  func forEach(of table: TableName, _ body: ([ValueSlice], RawSpan) throws -> Void) throws {
    guard runs.contains(where: \.isLeftOut) else { return }
    var runs = WithdrawalRuns(runs.map { ($0.count, isWithdrawal: $0.isLeftOut) })
    try Changesets.forEachChange(of: changeset) { _, reader, bytes in
      if runs.next(), reader.table.map({ TableName($0.name) }) == table { try body(reader.old, bytes) }
    }
  }
}

/// Finds deleted rows among those of a table that are left out: by their key, or by their content where that has none.
private final class LeftOutLookup {
  private let table: KeyedTable?
  private let byKey: String
  /// Where the key is no column, the first value of a row is no content.
  private let contentStart: Int
  /// How many rows of each content are left out that no deletion has stood for yet.
  private var contents: [[UInt8]: Int] = [:]

  /// - Returns: nil where no rows of the table are left out.
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
    ) { row in
      var writer = ChangesetWriter()
      for place in 0..<row.columnCount { writer.append(column: place, of: row) }
      contents[writer.bytes, default: 0] += 1
    }
  }

  func finds(_ row: [ValueSlice], _ bytes: RawSpan, on connection: borrowing SQLiteConnection) throws -> Bool {
    if let table, table.hasKey(row) { return try table.finds(byKey, row, bytes, on: connection) }
    let content = row.dropFirst(contentStart).flatMap { bytes.array($0.encoded) }
    guard let count = contents[content], count > 0 else { return false }
    contents[content] = count - 1
    return true
  }
}
