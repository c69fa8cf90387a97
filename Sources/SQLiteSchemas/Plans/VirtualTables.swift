import BuckiaBytes
import SQLiteConnections

/// The virtual tables of one database: what their rows are, and which other tables belong to them.
struct VirtualTables {
  private struct Entry {
    let name: String
    /// The name as SQLite compares it.
    let folded: [UInt8]
    let definition: VirtualTableDefinition?
    /// Whether the module is there. SQLite tells which tables belong to one only then.
    let isLoaded: Bool
  }

  private let entries: [Entry]
  private let triggers: TriggerTargets

  /// - Parameter sources: Their names and the statements that made them.
  init(_ sources: [(name: String, sql: String)], on connection: borrowing SQLiteConnection) throws {
    guard !sources.isEmpty else {
      entries = []
      triggers = TriggerTargets()
      return
    }
    var loaded: Set<String> = []
    try connection.forEachRow(of: "SELECT lower(name) FROM pragma_module_list") { loaded.insert($0.text(at: 0) ?? "") }
    entries = sources.map { source in
      let definition = VirtualTableDefinition(parsing: source.sql)
      return Entry(
        name: source.name, folded: Array(ASCIIName.folded(source.name).utf8), definition: definition,
        isLoaded: loaded.contains(ASCIIName.folded(definition?.module ?? "")))
    }
    triggers = try TriggerTargets(connection)
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
    if triggers.contain(table) { return .keptByTriggers }
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
  /// - Parameter isMarked: Whether SQLite says that it belongs to one.
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

/// The tables that triggers of a schema write to.
private struct TriggerTargets {
  private var targets: Set<TableName> = []
  /// All that triggers name which cannot be understood.
  private var mentioned: Set<TableName> = []

  init() {}

  init(_ connection: borrowing SQLiteConnection) throws {
    try connection.forEachRow(of: "SELECT sql FROM main.sqlite_schema WHERE type = 'trigger'") { row in
      let sql = row.text(at: 0) ?? ""
      if let definition = TriggerDefinition(parsing: sql) {
        targets.formUnion(definition.statements.compactMap(\.target))
      } else {
        mentioned.formUnion(SQLReferences(of: sql).names)
      }
    }
  }

  func contain(_ table: TableName) -> Bool { targets.contains(table) || mentioned.contains(table) }
}
