import BuckiaSchemaPlans
import SQLiteConnections
import SQLiteSchemas

/// Names what is different between two schemas and does not travel: dropped tables, clauses of tables, views, triggers and
/// indexes.
struct UntransferredObjects {
  private(set) var skipped: [SkippedItem] = []

  private mutating func skip(_ name: String, _ code: SkipReason.Code, _ arguments: String...) {
    skipped.append(SkippedItem(name: name, reason: SkipReason(code, arguments)))
  }

  /// Names the tables that are in the older database only.
  mutating func addDroppedTables(_ older: SchemaReader, _ newer: borrowing SchemaReader, of options: DiffOptions) {
    for entry in older.entries where options.includes(entry.name) && entry.kind.hasOwnRows {
      guard newer.entry(named: entry.name) == nil, Replicability.refusal(of: entry) == nil else { continue }
      skip(entry.name.text, .tableDropped)
    }
  }

  /// Names new CHECK and ON CONFLICT clauses of the tables that have changed, and foreign keys of new tables to old ones.
  mutating func addClauses(of tables: [TableDifference], _ older: SchemaReader, _ newer: borrowing SchemaReader) {
    let created = Set(tables.filter(\.isNew).map { TableName($0.definition.name) })
    for table in tables where table.definition.module == nil {
      let name = TableName(table.definition.name)
      let sql = newer.entry(named: name)?.sql ?? ""
      let olderSQL = table.isNew ? "" : older.entry(named: name)?.sql ?? ""
      if CheckConstraints.expressions(in: sql) != CheckConstraints.expressions(in: olderSQL) {
        skip(name.text, table.isNew ? .newCheck : .changedCheck)
      }
      guard table.isNew else { continue }
      if ConflictClauses.occur(in: sql) { skip(name.text, .conflictClause) }
      for key in table.definition.foreignKeys where !created.contains(TableName(key.parent)) {
        skip(name.text, .foreignKeyToOldTable, key.parent)
      }
    }
  }

  /// Names keys and UNIQUE constraints of new tables that compare a column by another collation than its declared one.
  mutating func addCollations(of tables: [TableDifference], on newer: borrowing SQLiteConnection) throws {
    let query = """
      SELECT i.origin, x.name, x.coll FROM pragma_index_list(?1, 'main') AS i, pragma_index_xinfo(i.name, 'main') AS x
      WHERE i.origin IN ('pk', 'u') AND x.key ORDER BY i.seq DESC, x.seqno
      """
    for table in tables where table.isNew && table.definition.module == nil {
      let definition = table.definition
      try newer.forEachRow(of: query, binding: [definition.name]) { row in
        guard let place = definition.column(named: row.text(at: 1) ?? "") else { return }
        let column = definition.columns[place]
        let collation = row.text(at: 2) ?? ""
        if ASCIIName.matches(column.collation, collation) { return }
        skip(definition.name, row.text(at: 0) == "pk" ? .keyCollation : .uniqueCollation, column.name, collation)
      }
    }
  }

  /// Names indexes, triggers and views that are new or have changed.
  mutating func addObjects(_ older: borrowing SQLiteConnection, _ newer: borrowing SQLiteConnection) throws {
    let query = """
      SELECT type, name, sql FROM main.sqlite_schema
      WHERE type IN ('index', 'trigger', 'view') AND sql IS NOT NULL ORDER BY type, name
      """
    // By their bytes: names that Swift takes for equal can be those of two objects.
    func bytes(_ row: borrowing SQLiteStatement, _ columns: Int...) -> [UInt8] {
      columns.flatMap { Array(row.textBytes(at: $0)) + [0] }
    }
    var known: [[UInt8]: [UInt8]] = [:]
    try older.forEachRow(of: query) { row in known[bytes(row, 0, 1)] = bytes(row, 2) }
    try newer.forEachRow(of: query) { row in
      let sql = known[bytes(row, 0, 1)]
      guard sql != bytes(row, 2) else { return }
      skip(row.text(at: 1) ?? "", sql == nil ? .newObject : .changedObject, row.text(at: 0) ?? "")
    }
  }
}

extension DiffOptions {
  /// Whether a table is among those that are to be compared.
  func includes(_ table: TableName) -> Bool { tables?.contains(table) ?? true }
}
