import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

/// A cache of the schema of a database that knows if it is still valid: the one place that reads the schema while files
/// are applied.
///
/// A schema may have ten thousand tables, and a folder ten thousand files. The schema is therefore kept from file to
/// file and from transaction to transaction, under the version that SQLite increments with each change by any
/// connection (<https://sqlite.org/pragma.html#pragma_schema_version>). Under another version the cache is not used.
/// Only the steps of plans are followed, by reading what they have changed.
///
/// Rolling back a change restores the version, and the next change gets the same number. Code that rolls back must
/// therefore name the version that it returns to.
final class KnownSchema {
  private let connection: SQLiteConnection
  /// The version of the cached schema; nil for an empty cache.
  private(set) var version: Int64?
  private var knownTables: SchemaReader?
  private var knownReferences: SchemaReferences?
  private var knownIndexes: IndexSchema?
  private var knownHasVirtualTables: Bool?

  /// - Parameter connection: The connection, which must outlive this.
  init(_ connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  /// Discards the cache if the schema has changed.
  ///
  /// - Returns: True if the schema has changed.
  /// - Throws: `SQLiteError` when its version cannot be read.
  func refresh() throws -> Bool {
    let present = try presentVersion()
    guard present != version else { return false }
    forget()
    version = present
    return true
  }

  private func presentVersion() throws -> Int64 { try connection.cachedInteger("PRAGMA main.schema_version") ?? 0 }

  /// Discards the cache.
  func forget() {
    version = nil
    knownTables = nil
    knownReferences = nil
    knownIndexes = nil
    knownHasVirtualTables = nil
  }

  /// Says that all that was done under later versions than this has been rolled back.
  ///
  /// Versions only grow in a transaction: a cache with the same version has been valid throughout.
  func rollBack(to earlier: Int64?) {
    guard version != earlier else { return }
    forget()
    version = earlier
  }

  /// Keeps the cache of an earlier version, because the changes since do not concern it.
  func follow(from earlier: Int64?) throws {
    guard version == earlier else { return forget() }
    version = try presentVersion()
  }

  // MARK: Contents, as of the last refresh

  private func known<Value>(
    _ place: ReferenceWritableKeyPath<KnownSchema, Value?>, _ read: () throws -> Value
  ) throws -> Value {
    if let known = self[keyPath: place] { return known }
    let read = try read()
    self[keyPath: place] = read
    return read
  }

  /// The tables and views.
  func tables() throws -> SchemaReader {
    try known(\.knownTables) { try SchemaReader(connection, keepsDefinitions: true) }
  }

  /// The foreign keys.
  func references() throws -> SchemaReferences {
    try known(\.knownReferences) { try SchemaReferences(connection) }
  }

  /// Virtual tables, views and triggers.
  func indexes() throws -> IndexSchema {
    try known(\.knownIndexes) { try IndexSchema(connection) }
  }

  /// True if there is any virtual table; most databases have none, and then there are no indexes to keep.
  func hasVirtualTables() throws -> Bool {
    try known(\.knownHasVirtualTables) { try IndexSchema.hasVirtualTables(on: connection) }
  }

  // MARK: Changing it

  /// Executes a step of a plan. Call it right after ``refresh()`` in the same transaction, which keeps other
  /// connections from changing the schema.
  ///
  /// - Throws: As `SchemaStep.carryOut(on:)`; `SQLiteError`. Nothing is known then.
  func carryOut(_ step: SchemaStep) throws {
    do {
      let isFollowed = try tables().carryOut(step)
      guard isFollowed else { return forget() }
      if case .createTable(let table, _) = step {
        let name = TableName(table.name)
        if !table.foreignKeys.isEmpty { try knownReferences?.add(of: name, on: connection) }
        knownIndexes?.addTable(name)
      }
      version = try presentVersion()
    } catch {
      forget()
      throw error
    }
  }
}

/// The foreign keys of a schema, found from either end.
struct SchemaReferences {
  /// A foreign key: a table that refers to another.
  private struct Reference: Hashable {
    let child: TableName
    let parent: TableName
    /// The parent's columns; empty for a reference to the primary key without naming it.
    let columns: [String]
  }

  private var byChild: [TableName: Set<Reference>] = [:]
  private var byParent: [TableName: Set<Reference>] = [:]

  /// `f`: a foreign key of a table, a row for each of its columns.
  private static let columns = "f.id, f.\"table\", f.\"to\""
  private static let order = "f.id, f.seq"

  /// Reads the foreign keys of all tables of `main`.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  init(_ connection: borrowing SQLiteConnection) throws {
    let query = """
      SELECT \(Self.columns), t.name FROM main.sqlite_schema AS t, pragma_foreign_key_list(t.name, 'main') AS f
      WHERE t.type = 'table' AND t.sql LIKE '%REFERENCES%' ORDER BY t.rowid, \(Self.order)
      """
    try insert(connection.rows(of: query) { Self.column($0, of: $0.text(at: 3) ?? "") })
  }

  /// Adds the foreign keys of a table that was created since.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  mutating func add(of table: TableName, on connection: borrowing SQLiteConnection) throws {
    let query = "SELECT \(Self.columns) FROM pragma_foreign_key_list(?1, 'main') AS f ORDER BY \(Self.order)"
    try insert(connection.rows(ofCached: query, table.text) { Self.column($0, of: table.text) })
  }

  /// One column of a foreign key.
  private typealias Column = (child: String, id: Int64, parent: String, name: String?)

  private static func column(_ row: borrowing SQLiteStatement, of child: String) -> Column {
    (child, row.integer(at: 0), row.text(at: 1) ?? "", row.text(at: 2))
  }

  /// Adds the columns of foreign keys, where those of one key are adjacent.
  private mutating func insert(_ columns: [Column]) {
    var next = 0
    while next < columns.count {
      let first = columns[next]
      let key = columns[next...].prefix { $0.child == first.child && $0.id == first.id }
      next = key.endIndex
      let reference = Reference(
        child: TableName(first.child), parent: TableName(first.parent), columns: key.compactMap(\.name))
      byChild[reference.child, default: []].insert(reference)
      byParent[reference.parent, default: []].insert(reference)
    }
  }

  /// True if there are none.
  var isEmpty: Bool { byChild.isEmpty }

  /// The tables that refer to any.
  var children: Set<TableName> { Set(byChild.keys) }

  /// The tables that refer to one.
  func children(of parent: TableName) -> Set<TableName> { Set((byParent[parent] ?? []).map(\.child)) }

  /// The tables that refer to other columns of one than its primary key.
  func children(of parent: TableName, besidesKeyOf definition: TableDefinition) -> Set<TableName> {
    let key = Set(definition.primaryKey.map { ASCIIName.folded(definition.columns[$0].name) })
    let others = (byParent[parent] ?? []).filter { reference in
      !reference.columns.allSatisfy { key.contains(ASCIIName.folded($0)) }
    }
    return Set(others.map(\.child))
  }

  /// True if a table refers to any.
  func isChild(_ table: TableName) -> Bool { byChild[table] != nil }

  /// True if any table refers to one.
  func isParent(_ table: TableName) -> Bool { byParent[table] != nil }
}
