import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// The tables `buckia_held_…`: changes that the database holds because their table, or their columns, are missing here.
///
/// There is a part for each table of each diff. It has the table's definition, so its changes can be read whatever becomes
/// of the local schema.
package final class HeldParts {
  /// The ledger entry of the diff that the parts belong to.
  private let entry: Int64
  private let connection: SQLiteConnection
  private var parts: [TableName: Int64] = [:]
  /// What is held, and how many changes of it.
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

  /// Deletes this part's changes, before what still has no place is held again.
  package static func remove(part number: Int64, on connection: borrowing SQLiteConnection) throws {
    for table in ["change", "column", "part"] {
      try connection.execute("DELETE FROM main.buckia_held_\(table) WHERE part = \(number)")
    }
  }

  // MARK: Removing

  /// Deletes what is held of a change of this diff that a conflict has left out. ``removeEmpty(_:on:)`` must follow for the part.
  ///
  /// - Returns: The bytes of the deleted changes.
  package func remove(_ key: [UInt8], of table: TableName) throws -> [[UInt8]] {
    guard let part = parts[table] else { return [] }
    let delete = try connection.cached(
      "DELETE FROM main.buckia_held_change WHERE part = ?1 AND key = ?2 RETURNING bytes")
    defer { delete.statement.reset() }
    try delete.statement.bind(part, at: 0)
    try delete.statement.bind(key, at: 1)
    var dropped: [[UInt8]] = []
    while try delete.statement.step() { dropped.append(delete.statement.blob(at: 0)) }
    if let place = places[table] { held[place].changes -= dropped.count }
    return dropped
  }

  /// The parts of this diff of which nothing is left.
  package var emptyParts: Set<Int64> {
    Set(parts.filter { name, _ in places[name].map { held[$0].changes == 0 } ?? false }.values)
  }

  /// Whether anything is held.
  package static func exist(on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.cachedInteger("SELECT 1 FROM main.buckia_held_part LIMIT 1") != nil
  }

  /// The tables of which anything is held.
  package static func tables(on connection: borrowing SQLiteConnection) throws -> Set<TableName> {
    var tables: Set<TableName> = []
    try connection.forEachRow(of: "SELECT DISTINCT table_name FROM main.buckia_held_part") {
      tables.insert(TableName($0.text(at: 0) ?? ""))
    }
    return tables
  }

  /// Deletes what is held of earlier diffs for a row that is gone. ``removeEmpty(_:on:)`` must follow for the parts.
  ///
  /// - Returns: The parts that have lost changes.
  package static func remove(
    _ key: [UInt8], of table: TableName, before entry: Int64, on connection: borrowing SQLiteConnection
  ) throws -> Set<Int64> {
    // By the key first: there may be many parts.
    let delete = try connection.cached(
      """
      DELETE FROM main.buckia_held_change WHERE key = ?1 AND EXISTS (
        SELECT 1 FROM main.buckia_held_part AS p
        WHERE p.part = buckia_held_change.part AND table_name = ?2 COLLATE NOCASE AND NOT whole AND entry < ?3)
      RETURNING part
      """)
    defer { delete.statement.reset() }
    try delete.statement.bind(key, at: 0)
    try delete.statement.bind(table.text, at: 1)
    try delete.statement.bind(entry, at: 2)
    var parts: Set<Int64> = []
    while try delete.statement.step() { parts.insert(delete.statement.integer(at: 0)) }
    return parts
  }

  /// Deletes those of some parts that have no changes left. Diffs of which nothing is held any more are `applied` then.
  package static func removeEmpty(_ parts: Set<Int64>, on connection: borrowing SQLiteConnection) throws {
    for part in parts {
      let delete = try connection.cached(
        """
        DELETE FROM main.buckia_held_part
        WHERE part = ?1 AND NOT EXISTS (SELECT 1 FROM main.buckia_held_change WHERE part = ?1)
        RETURNING entry
        """)
      try delete.statement.bind(part, at: 0)
      let entry = try delete.statement.step() ? delete.statement.integer(at: 0) : nil
      delete.statement.reset()
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
