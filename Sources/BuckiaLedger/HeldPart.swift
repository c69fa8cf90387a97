import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A part of a diff that the database holds until the local schema has a place for it.
package struct HeldPart: Sendable {
  /// The diff's ledger entry.
  package let entry: Int64
  /// Its number.
  package let number: Int64
  /// The table as its author has it, as far as that is needed to find its place here.
  package let definition: TableDefinition
  /// The columns that were unknown: indexes into those of the definition.
  package let columns: [Int]
  /// Whether all of the table is kept.
  package let isWhole: Bool
  package let format: ChangesetFormat

  /// The diff's id; nil where it has none.
  package let diff: KSUID?
  /// The verified key of its sender in hex, or empty for unsigned files.
  package let senderKey: String
  /// Whether it came as a raw changeset.
  package let isRaw: Bool
  /// The name of its file, without its folder.
  package let file: String
  /// The table.
  package var table: String { definition.name }
  /// The columns that have no place here; empty where the table has none.
  package var columnNames: [String] { isWhole ? [] : columns.map { definition.columns[$0].name } }
  /// How many changes are kept.
  package let changeCount: Int
  /// Why, for people.
  package let reason: String
}

extension HeldPart {
  /// All parts, in the order in which they arrived.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for ledger tables of a newer version.
  package static func all(on connection: borrowing SQLiteConnection) throws -> [HeldPart] {
    guard try Ledger.exists(on: connection), try HeldParts.exist(on: connection) else { return [] }
    var columns: [Int64: [(column: ColumnDefinition, key: Int, isHeld: Bool)]] = [:]
    let columnQuery = "SELECT part, name, type, key, held FROM main.buckia_held_column ORDER BY part, position"
    try connection.forEachRow(of: columnQuery) { row in
      let column = ColumnDefinition(name: row.text(at: 1) ?? "", declaredType: row.text(at: 2) ?? "")
      columns[row.integer(at: 0), default: []].append(
        (column, Int(clamping: row.integer(at: 3)), row.integer(at: 4) != 0))
    }
    var parts: [HeldPart] = []
    let query = """
      SELECT entry, part, table_name, strict, whole, patchset, p.reason, diff,
        (SELECT count(*) FROM main.buckia_held_change AS c WHERE c.part = p.part), sender, file, module, raw
      FROM main.buckia_held_part AS p LEFT JOIN main.buckia_ledger USING (entry) ORDER BY entry, part
      """
    try connection.forEachRow(of: query) { row in
      let found = columns[row.integer(at: 1)] ?? []
      var definition = TableDefinition(name: row.text(at: 2) ?? "", columns: found.map(\.column))
      definition.primaryKey = found.indices.filter { found[$0].key > 0 }.sorted { found[$0].key < found[$1].key }
      definition.isStrict = row.integer(at: 3) != 0
      definition.module = row.text(at: 11).flatMap { VirtualModule(named: $0) }
      parts.append(
        HeldPart(
          entry: row.integer(at: 0), number: row.integer(at: 1), definition: definition,
          columns: found.indices.filter { found[$0].isHeld }, isWhole: row.integer(at: 4) != 0,
          format: row.integer(at: 5) != 0 ? .patchset : .changeset, diff: row.text(at: 7).flatMap { KSUID($0) },
          senderKey: row.text(at: 9) ?? "", isRaw: row.integer(at: 12) != 0, file: row.text(at: 10) ?? "",
          changeCount: Int(row.integer(at: 8)), reason: row.text(at: 6) ?? ""))
    }
    return parts
  }
}

extension HeldPart {
  /// The kept changes as a changeset.
  ///
  /// - Throws: `SQLiteError`, `ByteStreamError`.
  package func changeset(on connection: borrowing SQLiteConnection) throws -> TemporaryBuffer {
    let spool = TemporaryBuffer()
    var writer = ChangesetWriter()
    writer.beginTable(ChangesetTable(name: definition.name, format: format, keyFlags: definition.keyFlags))
    try spool.write(writer.bytes)
    let statement = try connection.prepare("SELECT bytes FROM main.buckia_held_change WHERE part = ?1 ORDER BY change")
    try statement.bind(number, at: 0)
    while try statement.step() { try spool.write(statement.blob(at: 0)) }
    return spool
  }
}

extension VirtualModule {
  /// The module alone, which is all that matching a virtual table needs. No table is ever created from it.
  fileprivate init?(named name: String) {
    if let kind = SpatialIndex.Kind(rawValue: name) {
      self = .spatial(SpatialIndex(kind: kind, coordinates: 0))
    } else if name == FullTextIndex.moduleName {
      self = .fullText(FullTextIndex(options: nil))
    } else {
      return nil
    }
  }
}
