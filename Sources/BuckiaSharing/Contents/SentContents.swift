import BuckiaDiff
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The rows of a share that only their content identifies: a diff says how many of them each replica has inserted and how many of those are
/// deleted, so that its readers know which rows they have already.
package final class SentContents {
  private let tables: [TableName: ContentTable]
  private let selections: [TableName: RowSelection]
  private let holder: String
  private let origin: [UInt8]
  private var counted: [TableName: CountedTable] = [:]
  private var inScope: [TableName: ContentCounter] = [:]
  /// Equal rows stand together.
  private var last: (table: TableName, content: [UInt8], counts: CopyCounts)?

  /// The one who has the rows that a share has sent.
  static func holder(of share: Int64) -> String { "share:\(share)" }

  /// - Parameters:
  ///   - definitions: The tables as they travel.
  ///   - share: The share.
  ///   - incarnation: That of this database.
  ///   - selections: Which rows are shared.
  ///   - schema: The schema of the database.
  /// - Throws: `SQLiteError`, `ReplicationError`.
  package init(
    _ definitions: [TableDefinition], of share: ShareEntry, by incarnation: [UInt8],
    _ selections: [TableName: RowSelection], _ schema: SchemaReader, on connection: borrowing SQLiteConnection
  ) throws {
    tables = try ContentTable.all(definitions, schema, on: connection).filter { try $0.value.hasRows() }
    self.selections = selections
    holder = Self.holder(of: share.number)
    origin = incarnation
  }

  /// True if no table of the diff has such rows.
  var isEmpty: Bool { tables.isEmpty }

  /// The table of a change about a row that only its content identifies; nil for any other.
  private func table(of header: ChangesetTable, _ row: [ValueSlice]) -> ContentTable? {
    guard let table = tables[TableName(header.name)], table.isCounted(row) else { return nil }
    return table
  }

  /// What has become of rows that a change deletes, and that were not deleted here; nil for all others.
  ///
  /// They are here and not shared any more, or somebody else has withdrawn them.
  ///
  /// - Parameter receivers: The keys of the one recipient, who needs not be told of what they have brought; empty for several recipients.
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  func fate(
    _ header: ChangesetTable, _ row: [ValueSlice], _ bytes: RawSpan, receivers: Set<String>
  ) throws -> DepartedRows.Fate? {
    guard let table = table(of: header, row) else { return nil }
    let content = table.content(row, bytes)
    let rows = try table.counter.count(content)
    if rows > 0, let selection = selections[table.name] {
      let counter = inScope[table.name] ?? table.counter(in: selection)
      inScope[table.name] = counter
      if try counter.count(content) == 0 { return .departed }
    }
    guard let ledger = try table.counted(), let known = try ledger.content(content), known.absent > 0,
      known.counts.present > 0, rows + known.absent >= known.counts.present
    else { return nil }
    return try receivers.contains(where: { try ledger.isHeld(known, by: $0) }) ? .theirs : .departed
  }

  /// How many rows with the content of a changed row there are, by the incarnations that have inserted them. What was inserted and deleted here
  /// since the last share is counted now.
  ///
  /// - Returns: nil for a row that is known by its key.
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  func counts(_ header: ChangesetTable, _ row: [ValueSlice], _ bytes: RawSpan) throws -> CopyCounts? {
    guard let table = table(of: header, row) else { return nil }
    let row = table.content(row, bytes)
    if let last, last.table == table.name, last.content == row { return last.counts }
    let ledger = try counted[table.name] ?? table.makeCounted()
    counted[table.name] = ledger
    let known = try ledger.content(row) ?? ledger.make(row)
    var content = known
    content.note(try table.counter.count(row), insertedBy: origin)
    try ledger.write(content, over: known)
    try ledger.note(content, at: holder)
    last = (table.name, row, content.counts)
    return content.counts
  }
}

extension CountedTable.Content {
  /// Counts the rows that were inserted and deleted in the table since it was counted last.
  ///
  /// - Parameters:
  ///   - rows: How many there are now.
  ///   - origin: The incarnation that has inserted them; nil to count deletions only.
  /// - Returns: How many more there are than are counted.
  @discardableResult
  mutating func note(_ rows: Int64, insertedBy origin: [UInt8]?) -> Int64 {
    let more = rows + absent - counts.present
    if more < 0 {
      counts.delete(-more)
      return 0
    }
    guard let origin else { return more }
    // A row that was refused may have been taken since.
    let taken = min(absent, more)
    absent -= taken
    if more > taken { counts.insert(more - taken, by: origin) }
    return 0
  }
}

extension ContentTable {
  /// The tables of a diff in which rows are known by their content.
  ///
  /// - Throws: `SQLiteError`, `ReplicationError`.
  static func all(
    _ definitions: [TableDefinition], _ schema: SchemaReader, on connection: borrowing SQLiteConnection
  ) throws -> [TableName: ContentTable] {
    let candidates = definitions.filter { $0.isKeyedByRowID || !$0.nullableKeyColumns.isEmpty }
    guard !candidates.isEmpty else { return [:] }
    let scopes = try ShareEntry.all(on: connection).map { try ShareScope(json: $0.scope) }
    var found: [TableName: ContentTable] = [:]
    for definition in candidates {
      let name = TableName(definition.name)
      let entry = schema.entry(named: name)
      guard entry?.kind ?? .table == .table else { continue }
      found[name] = try ContentTable(definition, entry.map { try schema.definition(of: $0) }, scopes, on: connection)
    }
    return found
  }
}
