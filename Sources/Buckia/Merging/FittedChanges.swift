import BuckiaByteStreams
import BuckiaDiff
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The changes of another database, made to fit one that has been changed by itself since their base.
///
/// Changes of tables that are gone here are left out. In tables without a key both sides may have given one rowid to different rows:
/// the incoming row gets a rowid that nobody uses, so that both rows are kept.
struct FittedChanges {
  /// The changes.
  private(set) var changeset: TemporaryBuffer
  /// How many rows of each table got another rowid.
  private(set) var renumbered: [(table: TableName, count: Int)] = []

  /// A row that gets another rowid.
  private struct Renumbering {
    /// Where its INSERT stands.
    let change: Int
    /// The rowid; nil where SQLite is to choose one.
    let rowID: Int64?
  }

  /// - Parameters:
  ///   - difference: What the other side has changed.
  ///   - dropped: The tables that are gone here.
  ///   - incoming: The other database.
  ///   - connection: The database that receives the changes.
  init(
    _ difference: DatabaseDifference, without dropped: Set<TableName>, from incoming: borrowing SQLiteConnection,
    on connection: borrowing SQLiteConnection
  ) throws {
    changeset = difference.changeset
    var tables: [TableName: RowIDCollisions] = [:]
    let schema = try SchemaReader(connection)
    for table in difference.tables where table.inserted > 0 {
      let name = TableName(table.definition.name)
      tables[name] = try RowIDCollisions(table.definition, in: schema, from: incoming, on: connection)
    }
    let renumberings = try tables.isEmpty ? [] : findCollisions(&tables)
    renumbered = tables.filter { $0.value.count > 0 }.map { (table: $0.key, count: $0.value.count) }
      .sorted { $0.table.text < $1.table.text }
    if renumberings.isEmpty, dropped.isEmpty { return }
    try rewrite(renumberings, without: dropped)
  }

  /// Finds the INSERTs whose rowid is that of another row here.
  private func findCollisions(_ tables: inout [TableName: RowIDCollisions]) throws -> [Renumbering] {
    var found: [Renumbering] = []
    var scan = ChangesetScan(changeset)
    while try scan.advance() {
      try scan.window.withBytes { bytes in
        while let change = try scan.next(in: bytes) {
          guard change.operation == .insert, let table = scan.reader.table else { continue }
          let isMet =
            try tables[TableName(table.name)]?.meets(scan.reader.new, in: bytes) { value in
              try scan.longValue(value).map { try longBytes($0) }
            } ?? false
          guard isMet else { continue }
          let rowID = tables[TableName(table.name)]?.nextRowID()
          found.append(Renumbering(change: scan.range(of: change).lowerBound, rowID: rowID))
        }
      }
    }
    return found
  }

  private func longBytes(_ range: Range<Int>) throws -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(range.count)
    try changeset.forEachPiece(range) { bytes.append(contentsOf: $0) }
    return bytes
  }

  /// Writes the changes anew.
  private mutating func rewrite(_ renumberings: [Renumbering], without dropped: Set<TableName>) throws {
    let summary = try ChangesetSummary.of(changeset)
    let output = changeset.makeEmpty()
    var next = 0
    for section in summary.sections {
      let table = summary.tables[section.table]
      if dropped.contains(TableName(table.table.name)) { continue }
      try output.write(table.header)
      var start = section.changes.lowerBound
      while next < renumberings.count, renumberings[next].change < section.changes.upperBound {
        let renumbering = renumberings[next]
        next += 1
        // The operation and its flag stand before the rowid, an integer of nine bytes.
        try copy(start..<(renumbering.change + 2), to: output)
        var writer = ChangesetWriter()
        if let rowID = renumbering.rowID { writer.append(integer: rowID) } else { writer.appendNull() }
        try output.write(writer.bytes)
        start = renumbering.change + 11
      }
      try copy(start..<section.changes.upperBound, to: output)
    }
    changeset = output
  }

  private func copy(_ range: Range<Int>, to output: TemporaryBuffer) throws {
    try changeset.forEachPiece(range) { try output.write($0) }
  }
}
