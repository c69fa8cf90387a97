import BuckiaBytes
import SQLiteConnections

/// The virtual tables of one database: what their rows are, and which other tables belong to them.
struct VirtualTables {
  private struct Entry {
    let name: String
    /// The name as SQLite compares it.
    let folded: [UInt8]
    let definition: VirtualTableDefinition?
    /// True if the module is there. SQLite tells which tables belong to one only then.
    let isLoaded: Bool
  }

  private let entries: [Entry]
  /// The tables that triggers write to, and all that those name which cannot be understood.
  private let triggered: Set<TableName>

  /// - Parameter sources: Their names and the statements that made them.
  init(_ sources: [(name: String, sql: String)], on connection: borrowing SQLiteConnection) throws {
    guard !sources.isEmpty else {
      entries = []
      triggered = []
      return
    }
    let loaded = Set(
      try connection.rows(of: "SELECT lower(name) FROM pragma_module_list") { $0.text(at: 0) ?? "" })
    entries = sources.map { source in
      let definition = VirtualTableDefinition(parsing: source.sql)
      return Entry(
        name: source.name, folded: Array(ASCIIName.folded(source.name).utf8), definition: definition,
        isLoaded: loaded.contains(ASCIIName.folded(definition?.module ?? "")))
    }
    var triggered: Set<TableName> = []
    try connection.forEachRow(of: "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger'") { row in
      let sql = row.text(at: 0) ?? ""
      let targets = TriggerDefinition(parsing: sql)?.statements.compactMap(\.target)
      triggered.formUnion(targets.map { Set($0) } ?? SQLReferences(of: sql).names)
    }
    self.triggered = triggered
  }

  /// What kind of table one of them is.
  func kind(of name: String, on connection: borrowing SQLiteConnection) throws(SQLiteError) -> TableKind {
    guard let definition = entries.first(where: { $0.name == name })?.definition else {
      return .virtual(module: "", content: .unknown)
    }
    return .virtual(module: definition.module, content: try content(of: TableName(name), definition, on: connection))
  }

  private func content(
    of table: TableName, _ definition: VirtualTableDefinition, on connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> VirtualContent {
    let module = ASCIIName.folded(definition.module)
    guard VirtualModule.knownNames.contains(module) else { return .unknown }
    if triggered.contains(table) { return .keptByTriggers }
    if module == "fts5", let content = definition.fullTextContent {
      return content.isEmpty ? .contentless : .external(TableName(content))
    }
    // The names of its columns do not matter here.
    guard VirtualModule(definition, columns: definition.arguments) != nil else { return .unknown }
    if let reason = try connection.failure(ofPreparing: "SELECT * FROM main.\(table.quoted)") {
      return .unavailable(reason)
    }
    return .own
  }

  /// The suffixes of the tables that SQLite's own virtual tables keep their content in.
  ///
  /// `PRAGMA table_list` marks them, but only while the module is loaded, and a file may come from a program that has
  /// modules which are missing here.
  private static let shadowSuffixes = [
    "_node", "_parent", "_rowid", "_content", "_segments", "_segdir", "_docsize", "_stat", "_data", "_idx", "_config",
  ]

  /// The virtual table that another table belongs to; nil when it belongs to none.
  ///
  /// - Parameter isMarked: True if SQLite says that it belongs to one.
  func owner(ofShadow name: String, isMarked: Bool) -> String? {
    guard !entries.isEmpty else { return isMarked ? "" : nil }
    let folded = Array(ASCIIName.folded(name).utf8)
    let owners = entries.filter { owner in
      guard isMarked || !owner.isLoaded, folded.starts(with: owner.folded) else { return false }
      let rest = folded.dropFirst(owner.folded.count)
      return isMarked ? rest.first == UInt8(ascii: "_") : Self.shadowSuffixes.contains { rest.elementsEqual($0.utf8) }
    }
    // Of `f` and `f_x` it is the second that `f_x_data` belongs to.
    return owners.max { $0.folded.count < $1.folded.count }?.name ?? (isMarked ? "" : nil)
  }
}

extension SchemaReader {
  /// True if a table is a shadow table of a virtual table that travels, and so travels with it.
  package func isInside(_ entry: SchemaEntry) -> Bool {
    guard case .shadow(let owner) = entry.kind else { return false }
    return self.entry(named: TableName(owner))?.kind.hasOwnRows == true
  }

  /// Reads the definition of a virtual table that has rows of its own.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  func virtualDefinition(of entry: SchemaEntry) throws -> TableDefinition {
    let name = entry.name.text
    // Full-text tables have hidden columns, which hold commands and ranks, not rows.
    let query = "SELECT name FROM pragma_table_xinfo(?1, 'main') WHERE hidden <> 1 ORDER BY cid"
    let columns = try connection.rows(of: query, name) { ColumnDefinition(name: $0.text(at: 0) ?? "") }
    let source = "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1"
    let made = VirtualTableDefinition(parsing: try connection.text(source, binding: [name]) ?? "")
    var table = TableDefinition(name: name, columns: columns)
    guard let made, let module = VirtualModule(made, columns: columns.map(\.name)) else {
      throw ReplicationError(
        .refusedTable, "the definition of the virtual table \"\(name)\" is not understood", table: name)
    }
    table.module = module
    if case .spatial(let index) = module {
      table.primaryKey = [0]
      table.columns[0].isNotNull = true
      for place in columns.indices {
        table.columns[place].declaredType =
          place == 0
          ? "INTEGER"
          : place > index.coordinates
            ? VirtualModule.auxiliaryType(in: made.arguments[place]) : index.kind == .real ? "REAL" : "INT"
      }
    }
    return table
  }

  /// True if a module has a name: then every table of that name can be read without being created.
  func hasModule(named name: String) throws -> Bool {
    try connection.hasRow(cached: "SELECT 1 FROM pragma_module_list WHERE lower(name) = lower(?1)", name)
  }

  /// Why a table may not be created beside those that are there, or nil: the names of the tables that a module makes along
  /// with a virtual one are taken, or the name of an ordinary one is such a name.
  ///
  /// - Parameter siblings: The other tables of the same diff.
  func nameClash(of table: TableDefinition, among siblings: [TableDefinition]) -> String? {
    let own = (table.module?.shadowSuffixes ?? []).map { TableName(table.name + $0) }
    if let taken = own.first(where: { entry(named: $0) != nil }) {
      return "its module keeps its rows in a table \"\(taken)\", and there is another of that name"
    }
    for sibling in siblings {
      if own.contains(TableName(sibling.name)) {
        return "its module keeps its rows in a table \"\(sibling.name)\", which is to be created, too"
      }
    }
    if let owner = shadowOwners[TableName(table.name)] {
      return "a table of that name would hold the insides of the virtual table \"\(owner)\""
    }
    return nil
  }
}

extension TableDefinition {
  /// What commands such as `rank` have set for a full-text table, which does not travel.
  ///
  /// See <https://sqlite.org/fts5.html#special_insert_commands>.
  ///
  /// - Returns: The settings by name, each with its value as SQL; nil for a table of another kind, and where they cannot be read.
  /// - Throws: `SQLiteError` when the database fails.
  package func fullTextSettings(
    on connection: borrowing SQLiteConnection
  ) throws -> [(name: String, value: String)]? {
    guard case .fullText = module else { return nil }
    let source = SQLText.identifier(name + "_config")
    let query = "SELECT k, quote(k) || quote(v) FROM main.\(source) WHERE k <> 'version' ORDER BY k"
    // Damage inside the table is reported when its rows are read.
    guard try connection.failure(ofPreparing: query) == nil else { return nil }
    return try connection.rows(of: query) { ($0.text(at: 0) ?? "", $0.text(at: 1) ?? "") }
  }
}
