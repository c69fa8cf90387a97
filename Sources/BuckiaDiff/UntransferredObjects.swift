import BuckiaBytes
import SQLiteSchemas
import SQLiteConnections

/// Names what is different between two schemas and does not travel: dropped tables, clauses of tables, views, triggers and
/// indexes.
struct UntransferredObjects {
  private(set) var skipped: [SkippedItem] = []

  private mutating func skip(_ name: String, _ code: SkipReason.Code, _ arguments: String...) {
    skipped.append(SkippedItem(name: name, reason: SkipReason(code, arguments)))
  }

  /// Names the tables that are in the older database only.
  mutating func addDroppedTables(_ older: SchemaReader, _ newer: borrowing SchemaReader, of options: DiffOptions) {
    for entry in older.entries where options.includes(entry.name) && newer.entry(named: entry.name) == nil {
      switch entry.kind {
      case .table, .virtual(_, .own):
        if Replicability.refusal(of: entry) == nil { skip(entry.name.text, .tableDropped) }
      // Its rows do not travel, and that it is gone does not either.
      case .virtual: skip(entry.name.text, .tableDropped)
      case .view, .shadow: break
      }
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

  /// Names indexes, triggers and views that are new, have changed or were dropped.
  ///
  /// What went along with its table is not named beside that, and what belongs to our own tables is not the user's.
  mutating func addObjects(_ older: DatabaseSnapshot, _ newer: DatabaseSnapshot) throws {
    let known = try Self.objects(of: older.source.connection)
    let present = try Self.objects(of: newer.source.connection)
    let knownSQL = Dictionary(known.map { ($0.key, $0.sql) }) { first, _ in first }
    for object in present {
      let sql = knownSQL[object.key]
      if sql != object.sql { skip(object.name, sql == nil ? .newObject : .changedObject, object.type) }
    }
    let presentKeys = Set(present.map(\.key))
    for object in known where !presentKeys.contains(object.key) {
      guard object.type == "view" || newer.schema.entry(named: object.table) != nil else { continue }
      skip(object.name, .droppedObject, object.type)
    }
  }

  /// An index, a trigger or a view.
  private struct Object {
    let type: String
    let name: String
    /// The table of an index or a trigger; a view itself.
    let table: TableName
    let sql: [UInt8]
    /// Type and name as bytes: names that Swift takes for equal can be those of two objects.
    let key: [UInt8]
  }

  private static func objects(of connection: borrowing SQLiteConnection) throws -> [Object] {
    let query = """
      SELECT type, name, tbl_name, sql FROM main.sqlite_schema
      WHERE type IN ('index', 'trigger', 'view') AND sql IS NOT NULL ORDER BY type, name
      """
    var objects: [Object] = []
    try connection.forEachRow(of: query) { row in
      let table = TableName(row.text(at: 2) ?? "")
      guard !Replicability.isOwn(table) else { return }
      objects.append(
        Object(
          type: row.text(at: 0) ?? "", name: row.text(at: 1) ?? "", table: table, sql: Array(row.textBytes(at: 3)),
          key: Array(row.textBytes(at: 0)) + [0] + Array(row.textBytes(at: 1))))
    }
    return objects
  }
}

extension DiffOptions {
  /// Whether a table is among those that are to be compared.
  func includes(_ table: TableName) -> Bool {
    !excludedTables.contains(table) && tables?.contains(table) ?? true
  }
}
