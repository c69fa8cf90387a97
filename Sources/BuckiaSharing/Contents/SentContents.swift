import BuckiaDiff
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// The rows of a share that only their content identifies: a diff says how many of them each replica has inserted and how many of those are
/// deleted, so that its readers know which rows they have already.
package final class SentContents {
  private let tables: ContentTables
  private let selections: [TableName: RowSelection]
  private let holder: String
  private let origin: [UInt8]
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
    tables = try ContentTables(definitions, schema, needsRows: true, on: connection)
    self.selections = selections
    holder = Self.holder(of: share.number)
    origin = incarnation
  }

  /// True if no table of the diff has such rows.
  var isEmpty: Bool { tables.isEmpty }

  /// What has become of rows that a change deletes, and that were not deleted here; nil for all others.
  ///
  /// They are here and not shared any more, or somebody else has withdrawn them.
  ///
  /// - Parameter receivers: The keys of the one recipient, who needs not be told of what they have brought; empty for several recipients.
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  func fate(
    _ header: ChangesetTable, _ row: [ValueSlice], _ bytes: RawSpan, receivers: Set<String>
  ) throws -> DepartedRows.Fate? {
    guard let table = tables.table(of: header, row) else { return nil }
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
    guard let table = tables.table(of: header, row) else { return nil }
    let row = table.content(row, bytes)
    if let last, last.table == table.name, last.content == row { return last.counts }
    let counts = try table.count(row, insertedBy: origin, heldBy: holder)
    last = (table.name, row, counts)
    return counts
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
