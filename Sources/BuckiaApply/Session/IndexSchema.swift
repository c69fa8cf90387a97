import BuckiaBytes
import SQLiteConnections
import SQLiteSchemas

/// The part of a schema that index maintenance depends on: virtual tables, views and triggers.
struct IndexSchema {
  /// A trigger of the schema.
  struct Trigger {
    let name: String
    let table: TableName
    let sql: String
  }

  /// The indexes of `main`, in the order they were created.
  private(set) var indexes: [IndexTable] = []
  /// The other virtual tables, with their modules.
  private(set) var otherVirtualTables: [TableName: String] = [:]
  /// The ordinary tables.
  private(set) var tables: Set<TableName> = []
  /// The views, with their CREATE VIEW statements.
  private(set) var views: [TableName: String] = [:]
  /// The triggers of each table or view of `main`, in the order in which SQLite fires them: the last one created first.
  private(set) var triggers: [TableName: [Trigger]] = [:]
  /// The TEMP tables and views. In a TEMP trigger they hide those of `main` with the same names.
  private(set) var temporaryTables: Set<TableName> = []
  /// The TEMP triggers of the application, which fire even when triggers are off.
  private(set) var temporaryTriggers: [Trigger] = []

  private var places: [TableName: Int] = [:]

  /// True if the database has any virtual table.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  static func hasVirtualTables(on connection: borrowing SQLiteConnection) throws -> Bool {
    // Virtual tables are the only tables without a root page.
    try connection.integer("SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND rootpage = 0 LIMIT 1") != nil
  }

  /// Reads the schema of `main`.
  ///
  /// - Throws: `SQLiteError` when it cannot be read.
  init(_ connection: borrowing SQLiteConnection) throws {
    let query = """
      SELECT type, name, tbl_name, sql, rootpage FROM main.sqlite_schema WHERE type <> 'index' ORDER BY rowid
      """
    try connection.forEachRow(of: query) { row in
      let name = row.text(at: 1) ?? ""
      let table = TableName(name)
      let sql = row.text(at: 3) ?? ""
      switch row.text(at: 0) {
      case "view": views[table] = sql
      case "trigger":
        let owner = TableName(row.text(at: 2) ?? "")
        triggers[owner, default: []].insert(Trigger(name: name, table: owner, sql: sql), at: 0)
      default:
        if row.integer(at: 4) != 0 {
          tables.insert(table)
        } else if let definition = VirtualTableDefinition(parsing: sql) {
          if let index = IndexTable(table, definition) {
            places[table] = indexes.count
            indexes.append(index)
          } else {
            otherVirtualTables[table] = definition.module
          }
        }
      }
    }
  }

  /// The same schema with the present TEMP tables and triggers, which do not count for the schema's version.
  ///
  /// - Throws: `SQLiteError` when they cannot be read.
  func withTemporaries(on connection: borrowing SQLiteConnection) throws -> IndexSchema {
    var schema = self
    try schema.readTemporaries(on: connection)
    return schema
  }

  private mutating func readTemporaries(on connection: borrowing SQLiteConnection) throws {
    try connection.forEachRow(ofCached: "SELECT type, name, tbl_name, sql FROM temp.sqlite_schema") { row in
      let name = row.text(at: 1) ?? ""
      switch row.text(at: 0) {
      case "table", "view": temporaryTables.insert(TableName(name))
      case "trigger":
        temporaryTriggers.append(
          Trigger(name: name, table: TableName(row.text(at: 2) ?? ""), sql: row.text(at: 3) ?? ""))
      default: break
      }
    }
  }

  /// Adds an ordinary table that has been created since.
  mutating func addTable(_ name: TableName) { tables.insert(name) }

  /// True if there is a table, view or index with a name.
  func contains(_ name: TableName) -> Bool {
    tables.contains(name) || views[name] != nil || places[name] != nil || otherVirtualTables[name] != nil
  }

  /// The index with a name.
  func index(named name: TableName) -> IndexTable? { places[name].map { indexes[$0] } }

  /// True if a trigger that writes to an index has a WHEN condition. The index may then lack rows on purpose.
  func hasConditions(on index: IndexTable) -> Bool {
    triggers.values.joined().contains { trigger in
      guard let definition = TriggerDefinition(parsing: trigger.sql) else { return true }
      return definition.condition != nil && definition.statements.contains { $0.target == index.name }
    }
  }

  /// The indexes to which the INSTEAD OF triggers of a view write.
  func indexes(writtenThrough view: TableName) -> [IndexTable] {
    var found: [IndexTable] = []
    var seen: Set<TableName> = [view]
    var open = [view]
    while let next = open.popLast() {
      for trigger in triggers[next] ?? [] {
        for target in TriggerDefinition(parsing: trigger.sql)?.statements.compactMap(\.target) ?? [] {
          if let index = index(named: target) { found.append(index) }
          if views[target] != nil, seen.insert(target).inserted { open.append(target) }
        }
      }
    }
    return found
  }
}

/// A full-text or R-tree index: a virtual table that stores only the written rows.
///
/// Triggers of the indexed tables keep it up to date. See <https://sqlite.org/fts5.html>,
/// <https://sqlite.org/fts3.html>, <https://sqlite.org/rtree.html> and <https://sqlite.org/geopoly.html>.
struct IndexTable: Hashable {
  let name: TableName
  /// The name of the module, in lower case.
  let module: String
  /// The external content of a full-text index: a table or view from which it can be rebuilt. Nil when there is none.
  let content: TableName?

  private static let modules: Set<String> = ["fts3", "fts4", "fts5", "rtree", "rtree_i32", "geopoly"]

  /// Nil when the virtual table is not an index.
  init?(_ name: TableName, _ definition: VirtualTableDefinition) {
    let module = ASCIIName.folded(definition.module)
    guard Self.modules.contains(module) else { return nil }
    self.name = name
    self.module = module
    let content = module == "fts5" ? definition.fullTextContent : module == "fts4" ? definition.option("content") : nil
    self.content = content.flatMap { $0.isEmpty ? nil : TableName($0) }
  }

  /// The statement that rebuilds the index from its content. See <https://sqlite.org/fts5.html#the_rebuild_command>.
  var rebuildStatement: String { "INSERT INTO main.\(name.quoted)(\(name.quoted)) VALUES ('rebuild')" }
}

/// Full-text indexes with external content that no trigger maintains: they are rebuilt from their content.
extension IndexSchema {
  /// Rebuilds an index without triggers if its content has changed.
  ///
  /// - Parameters:
  ///   - index: The index.
  ///   - changed: The tables whose rows have changed.
  /// - Returns: A warning for the report; nil if there was nothing to do.
  /// - Throws: `SQLiteError` when the database fails.
  func rebuildWithoutTriggers(
    _ index: IndexTable, after changed: Set<TableName>, on connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> Warning? {
    guard let content = index.content, !sources(of: content).isDisjoint(with: changed), !isMaintained(index) else {
      return nil
    }
    if let reason = try connection.failure(ofRunning: index.rebuildStatement) {
      return Warning(
        .indexNotRebuilt, index.module, index.name.text, content.text, "was not kept up to date (it has no triggers)",
        reason)
    }
    return Warning(.indexRebuilt, index.module, index.name.text, content.text)
  }

  func isView(_ name: TableName) -> Bool { views[name] != nil }

  /// True if triggers maintain an index with external content: those of its content table, or TEMP triggers on it.
  private func isMaintained(_ index: IndexTable) -> Bool {
    guard let content = index.content else { return false }
    // The triggers that maintain an index over a view are those of the view's tables.
    let own = isView(content) ? Array(triggers.values.joined()) : triggers[content] ?? []
    let temporary = temporaryTriggers.filter { $0.table == content || isView(content) }
    return (own + temporary).contains { trigger in
      guard let definition = TriggerDefinition(parsing: trigger.sql) else {
        return SQLReferences(of: trigger.sql).names.contains(index.name)
      }
      return definition.statements.contains { $0.target == index.name }
    }
  }

  /// The tables that a table or view takes its rows from, itself included.
  func sources(of content: TableName) -> Set<TableName> {
    var found: Set<TableName> = [content]
    var open = [content]
    while let next = open.popLast() {
      guard let sql = views[next] else { continue }
      for source in SQLReferences(of: sql).sources where found.insert(source).inserted { open.append(source) }
    }
    return found
  }
}
