import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The tables `buckia_held_…`: changes that the database holds because their table, or their columns, are missing here.
///
/// There is a part for each table of each diff. It has the table's definition, by which its changes can be read under
/// any later schema.
package final class HeldParts {
  /// The ledger entry of the diff that the parts belong to.
  private let entry: Int64
  private let connection: SQLiteConnection
  private var parts: [TableName: Int64] = [:]
  /// The held tables, with the number of held changes.
  package private(set) var held: [(table: HeldTable, changes: Int)] = []
  private var places: [TableName: Int] = [:]

  /// The tables' definition.
  static let definition = """
    CREATE TABLE main.buckia_held_part(
      part INTEGER PRIMARY KEY,
      entry INTEGER NOT NULL,
      table_name TEXT NOT NULL,
      module TEXT,
      strict INTEGER NOT NULL,
      whole INTEGER NOT NULL,
      patchset INTEGER NOT NULL,
      reason TEXT NOT NULL
    );
    CREATE INDEX main.buckia_held_part_entry ON buckia_held_part(entry);
    CREATE TABLE main.buckia_held_column(
      part INTEGER NOT NULL,
      position INTEGER NOT NULL,
      name TEXT NOT NULL,
      type TEXT NOT NULL,
      key INTEGER NOT NULL,
      held INTEGER NOT NULL,
      PRIMARY KEY (part, position)
    ) WITHOUT ROWID;
    CREATE TABLE main.buckia_held_change(
      change INTEGER PRIMARY KEY,
      part INTEGER NOT NULL,
      key BLOB NOT NULL,
      bytes BLOB NOT NULL
    );
    CREATE INDEX main.buckia_held_change_part ON buckia_held_change(part);
    CREATE INDEX main.buckia_held_change_key ON buckia_held_change(key);
    """

  /// Begins to hold parts of the diff with this ledger entry.
  package init(of entry: Int64, on connection: borrowing SQLiteConnection) {
    self.entry = entry
    self.connection = SQLiteConnection(sharing: connection)
  }

  // MARK: Holding

  /// Holds one change.
  ///
  /// - Parameters:
  ///   - change: The change in the columns of the table's own definition.
  ///   - key: The key of its row.
  ///   - table: What of the table is unknown.
  ///   - header: That of the changes.
  package func add(_ change: [UInt8], of key: [UInt8], _ table: HeldTable, _ header: ChangesetTable) throws {
    let name = TableName(header.name)
    let part = try parts[name] ?? begin(table, header)
    try connection.run(
      cached: "INSERT INTO main.buckia_held_change(part, key, bytes) VALUES (?1, ?2, ?3)", part, key, change)
    if let place = places[name] { held[place].changes += 1 }
  }

  private func begin(_ table: HeldTable, _ header: ChangesetTable) throws -> Int64 {
    let definition = table.definition
    try connection.run(
      cached: """
        INSERT INTO main.buckia_held_part(entry, table_name, strict, whole, patchset, reason, module)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
        """, entry, definition.name, Int64(definition.isStrict ? 1 : 0), Int64(table.isWhole ? 1 : 0),
      Int64(header.format == .patchset ? 1 : 0), table.reason, definition.module?.name)
    let part = try connection.integer("SELECT last_insert_rowid()") ?? 0
    for (position, column) in definition.columns.enumerated() {
      let key = (definition.primaryKey.firstIndex(of: position) ?? -1) + 1
      try connection.run(
        cached: "INSERT INTO main.buckia_held_column VALUES (?1, ?2, ?3, ?4, ?5, ?6)", part, Int64(position),
        column.name, column.declaredType, Int64(key), Int64(table.columns.contains(position) ? 1 : 0))
    }
    let name = TableName(definition.name)
    parts[name] = part
    places[name] = held.count
    held.append((table, 0))
    return part
  }

  /// Deletes the changes of a part, before the rest of them is held again.
  package static func remove(part number: Int64, on connection: borrowing SQLiteConnection) throws {
    for table in ["change", "column", "part"] {
      try connection.execute("DELETE FROM main.buckia_held_\(table) WHERE part = \(number)")
    }
  }

  // MARK: Removing

  /// Deletes the held part of a change of this diff that a conflict has left out. ``removeEmpty(_:on:)`` must follow
  /// for the part.
  ///
  /// - Returns: The bytes of the deleted changes.
  package func remove(_ key: [UInt8], of table: TableName) throws -> [[UInt8]] {
    guard let part = parts[table] else { return [] }
    let dropped = try connection.rows(
      ofCached: "DELETE FROM main.buckia_held_change WHERE part = ?1 AND key = ?2 RETURNING bytes", part, key
    ) { $0.blob(at: 0) }
    if let place = places[table] { held[place].changes -= dropped.count }
    return dropped
  }

  /// The parts of this diff of which nothing is left.
  package var emptyParts: Set<Int64> {
    Set(parts.filter { name, _ in places[name].map { held[$0].changes == 0 } ?? false }.values)
  }

  /// True if anything is held.
  package static func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.cachedInteger("SELECT 1 FROM main.buckia_held_part LIMIT 1") != nil
  }

  /// The tables with held parts.
  package static func tables(on connection: borrowing SQLiteConnection) throws -> Set<TableName> {
    Set(
      try connection.rows(of: "SELECT DISTINCT table_name FROM main.buckia_held_part") {
        TableName($0.text(at: 0) ?? "")
      })
  }

  /// Deletes the held changes of earlier diffs for a deleted row. ``removeEmpty(_:on:)`` must follow for the parts.
  ///
  /// - Returns: The parts that have lost changes.
  package static func remove(
    _ key: [UInt8], of table: TableName, before entry: Int64, on connection: borrowing SQLiteConnection
  ) throws -> Set<Int64> {
    // By the key first: there may be many parts.
    return Set(
      try connection.rows(
        ofCached: """
          DELETE FROM main.buckia_held_change WHERE key = ?1 AND EXISTS (
            SELECT 1 FROM main.buckia_held_part AS p
            WHERE p.part = buckia_held_change.part AND table_name = ?2 COLLATE NOCASE AND NOT whole AND entry < ?3)
          RETURNING part
          """, key, table.text, entry
      ) { $0.integer(at: 0) })
  }

  /// Deletes parts without changes. Diffs without held parts become `applied`.
  package static func removeEmpty(_ parts: Set<Int64>, on connection: borrowing SQLiteConnection) throws {
    for part in parts {
      let entry = try connection.cachedInteger(
        """
        DELETE FROM main.buckia_held_part
        WHERE part = ?1 AND NOT EXISTS (SELECT 1 FROM main.buckia_held_change WHERE part = ?1)
        RETURNING entry
        """, part)
      guard let entry else { continue }
      try connection.run(cached: "DELETE FROM main.buckia_held_column WHERE part = ?1", part)
      try noteApplied(entry: entry, on: connection)
    }
  }

  /// Sets the state of a diff to `applied` when nothing of it is held any more.
  package static func noteApplied(entry: Int64, on connection: borrowing SQLiteConnection) throws {
    try connection.run(
      cached: """
        UPDATE main.buckia_ledger SET state = 'applied', reason = NULL
        WHERE entry = ?1 AND state = 'held' AND NOT EXISTS (SELECT 1 FROM main.buckia_held_part WHERE entry = ?1)
        """, entry)
  }
}

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
  /// True if all of the table is kept.
  package let isWhole: Bool
  package let format: ChangesetFormat

  /// The diff's id; nil for none.
  package let diff: KSUID?
  /// The verified key of its sender in hex, or empty for unsigned files.
  package let senderKey: String
  /// True if it came as a raw changeset.
  package let isRaw: Bool
  /// The name of its file, without its folder.
  package let file: String
  /// The table.
  package var table: String { definition.name }
  /// The columns that are unknown here; empty if the whole table is.
  package var columnNames: [String] { isWhole ? [] : columns.map { definition.columns[$0].name } }
  /// The number of held changes.
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
    try connection.forEachRow(
      of: "SELECT bytes FROM main.buckia_held_change WHERE part = ?1 ORDER BY change", binding: [number]
    ) { try spool.write($0.blob(at: 0)) }
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
