import BuckiaBytes
import SQLiteConnections

/// Reads the definitions of one database through its own connection.
///
/// Make another reader after the schema has changed. Only what ``carryOut(_:)`` changes is followed.
package final class SchemaReader {
  let connection: SQLiteConnection
  /// The copy of SQLite of the connection.
  package var library: SQLiteLibrary { connection.library }
  /// All tables and views but SQLite's own, in the order they were created.
  package internal(set) var entries: [SchemaEntry]
  /// Where each name stands in `entries`.
  var places: [TableName: Int]
  /// The definitions that have been read; nil where none are kept.
  var definitions: KeptDefinitions?
  /// The virtual tables whose modules have names for tables of their own, by these names.
  private(set) lazy var shadowOwners: [TableName: TableName] = {
    var owners: [TableName: TableName] = [:]
    for entry in entries {
      guard case .virtual(let module, _) = entry.kind else { continue }
      for suffix in VirtualModule.shadowSuffixes(ofModule: module) {
        let name = TableName(entry.name.text + suffix)
        if owners[name] == nil { owners[name] = entry.name }
      }
    }
    return owners
  }()

  /// Lists the schema of `main`, through a connection that must outlive the reader.
  ///
  /// - Parameters:
  ///   - keepsDefinitions: True if definitions are kept once they have been read, for callers that ask for the same ones again and
  ///     again.
  ///   - standIns: For the name of a table, that of the table which has its rows: then only these tables are there.
  /// - Throws: `SQLiteError` when the schema cannot be read: no database, damaged, locked.
  package init(
    _ connection: borrowing SQLiteConnection, keepsDefinitions: Bool = false, standIns: [TableName: TableName]? = nil
  ) throws {
    self.connection = SQLiteConnection(sharing: connection)
    definitions = keepsDefinitions ? KeptDefinitions() : nil
    let stored = "SELECT name, sql FROM main.sqlite_schema WHERE type IN ('table','view')"
    let sources = try connection.rows(of: stored) { row in
      (name: row.text(at: 0) ?? "", sql: row.text(at: 1) ?? "", isRepaired: !row.isWellFormedText(at: 0))
    }
    var kinds: [TableName: (type: String, withoutRowID: Bool, strict: Bool)] = [:]
    try connection.forEachRow(of: "SELECT name, type, wr, strict FROM pragma_table_list WHERE schema = 'main'") { row in
      kinds[TableName(row.text(at: 0) ?? "")] = (
        row.text(at: 1) ?? "", row.integer(at: 2) != 0, row.integer(at: 3) != 0
      )
    }
    let virtual = try VirtualTables(
      sources.filter { kinds[TableName($0.name)]?.type == "virtual" }.map { ($0.name, $0.sql) }, on: connection)
    var found: [SchemaEntry] = []
    for source in sources {
      guard let entry = kinds[TableName(source.name)], !ASCIIName.folded(source.name).hasPrefix("sqlite_") else {
        continue
      }
      let kind: TableKind
      if entry.type == "view" {
        kind = .view
      } else if entry.type == "virtual" {
        kind = try virtual.kind(of: source.name, on: connection)
      } else if let owner = virtual.owner(ofShadow: source.name, isMarked: entry.type == "shadow") {
        kind = .shadow(of: owner)
      } else {
        kind = .table
      }
      found.append(
        SchemaEntry(
          name: TableName(source.name), kind: kind, isWithoutRowID: entry.withoutRowID, isStrict: entry.strict,
          sql: source.sql, isNameRepaired: source.isRepaired))
    }
    if let standIns {
      found = standIns.sorted { $0.key.text < $1.key.text }.compactMap { name, stored in
        found.first { $0.name == stored }?.standing(in: name)
      }
    }
    entries = found
    // A name that had to be repaired may look like another's.
    let named = found.enumerated().filter { !$1.isNameRepaired }
    places = Dictionary(named.map { ($1.name, $0) }) { first, _ in first }
  }

  /// The entry of that name, whatever its case.
  package func entry(named name: TableName) -> SchemaEntry? { places[name].map { entries[$0] } }

  /// The entries of some names, in the order they were created.
  package func entries(named names: Set<TableName>) -> [SchemaEntry] {
    names.compactMap { places[$0] }.sorted().map { entries[$0] }
  }

  /// The definition of an ordinary table; nil where there is none of the name.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  package func table(named name: TableName) throws -> TableDefinition? {
    guard let entry = entry(named: name), entry.kind == .table else { return nil }
    return try definition(of: entry)
  }

  /// The definition of a table that has rows of its own.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  package func definition(of entry: SchemaEntry) throws -> TableDefinition {
    // A name that had to be repaired may look like another's.
    guard !entry.isNameRepaired else { return try readDefinition(of: entry) }
    if let known = definitions?[entry.name] { return known }
    let found = try readDefinition(of: entry)
    definitions?.keep(found)
    return found
  }

  /// Reads the definition of a table that has rows of its own.
  ///
  /// The queries are kept by the connection: a database may have ten thousand tables, and to prepare what asks about a
  /// table takes longer than the answer.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  private func readDefinition(of entry: SchemaEntry) throws -> TableDefinition {
    if case .virtual = entry.kind { return try virtualDefinition(of: entry) }
    let name = entry.storedName
    var columns: [ColumnDefinition] = []
    var generated: [GeneratedColumn] = []
    var key: [(position: Int64, column: Int)] = []
    var hasRepairedNames = false
    let query = "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?, 'main')"
    try connection.forEachRow(ofCached: query, binding: [name]) { row in
      let column = row.text(at: 0) ?? ""
      let type = row.text(at: 1) ?? ""
      if !row.isWellFormedText(at: 0) { hasRepairedNames = true }
      switch row.integer(at: 5) {
      case 2: generated.append(GeneratedColumn(name: column, declaredType: type, isStored: false))
      case 3: generated.append(GeneratedColumn(name: column, declaredType: type, isStored: true))
      default:
        if row.integer(at: 4) > 0 { key.append((row.integer(at: 4), columns.count)) }
        let source = row.text(at: 3)
        // A default that had to be repaired is another one.
        let literal = row.isWellFormedText(at: 3) ? source.flatMap(LiteralDefault.init(columnDefault:)) : nil
        columns.append(
          ColumnDefinition(
            name: column, declaredType: type, isNotNull: row.integer(at: 2) != 0, defaultValue: literal,
            hasExpressionDefault: source != nil && literal == nil))
      }
    }
    guard !hasRepairedNames else {
      // Nothing more can be asked about a column whose name cannot be said.
      return TableDefinition(
        name: entry.name.text, columns: columns, generated: generated, hasRepairedNames: true)
    }
    var isAutoIncrement = false
    for index in columns.indices {
      let metadata = try connection.columnMetadata(table: name, column: columns[index].name)
      columns[index].collation = metadata.collation
      if metadata.isAutoIncrement { isAutoIncrement = true }
    }
    key.sort { $0.position < $1.position }
    if key.count == 1, !entry.isWithoutRowID,
      ASCIIName.matches(columns[key[0].column].declaredType, "INTEGER"),
      try hasKeyIndex(name)
    {
      // INTEGER PRIMARY KEY DESC is no rowid and may hold NULL (https://sqlite.org/lang_createtable.html#rowid). Made
      // again from its definition it would become one; INT is the same type and never does.
      columns[key[0].column].declaredType = "INT"
    }
    return TableDefinition(
      name: entry.name.text, columns: columns, generated: generated, primaryKey: key.map(\.column),
      isWithoutRowID: entry.isWithoutRowID, isStrict: entry.isStrict, isAutoIncrement: isAutoIncrement,
      unique: try uniqueConstraints(of: name, columns: columns),
      foreignKeys: try foreignKeys(of: name))
  }

  /// True if the key of a table has an index of its own, as no rowid has.
  private func hasKeyIndex(_ table: String) throws -> Bool {
    try connection.hasRow(cached: "SELECT 1 FROM pragma_index_list(?1, 'main') WHERE origin = 'pk'", table)
  }

  /// True if rows of a table are found without looking at all of them, by the value of one of some columns.
  ///
  /// - Returns: True if one of the columns is the rowid, or the first of a whole index that compares it as the column itself is compared.
  /// - Throws: `SQLiteError`.
  package func hasIndex(on table: TableDefinition, ofOneOf columns: [String]) throws -> Bool {
    let places = columns.compactMap { table.column(named: $0) }
    if !table.isWithoutRowID, table.primaryKey.count == 1, places.contains(table.primaryKey[0]),
      try !hasKeyIndex(table.name)
    {
      return true
    }
    let query = """
      SELECT x.name, x.coll FROM pragma_index_list(?1, 'main') AS l, pragma_index_xinfo(l.name, 'main') AS x
      WHERE NOT l.partial AND x.seqno = 0
      """
    var isFound = false
    try connection.forEachRow(ofCached: query, binding: [table.name]) { row in
      let (name, collation) = (row.text(at: 0) ?? "", row.text(at: 1) ?? "")
      if places.contains(where: {
        ASCIIName.matches(table.columns[$0].name, name) && ASCIIName.matches(table.columns[$0].collation, collation)
      }) {
        isFound = true
      }
    }
    return isFound
  }

  /// UNIQUE constraints and whole unique indexes whose columns are compared as the columns themselves are.
  private func uniqueConstraints(of table: String, columns: [ColumnDefinition]) throws -> [[Int]] {
    var indexes: [String] = []
    let list = "SELECT name FROM pragma_index_list(?, 'main') WHERE \"unique\" AND NOT partial AND origin <> 'pk'"
    try connection.forEachRow(ofCached: list, binding: [table]) { indexes.append($0.text(at: 0) ?? "") }
    var constraints: [[Int]] = []
    for index in indexes {
      var members: [Int] = []
      var isPlain = true
      let parts = "SELECT name, coll FROM pragma_index_xinfo(?, 'main') WHERE key"
      try connection.forEachRow(ofCached: parts, binding: [index]) { row in
        let collation = row.text(at: 1) ?? ""
        let found = row.text(at: 0).flatMap { name in columns.firstIndex { ASCIIName.matches($0.name, name) } }
        if let found, ASCIIName.matches(columns[found].collation, collation) {
          members.append(found)
        } else {
          isPlain = false
        }
      }
      if isPlain, !members.isEmpty { constraints.append(members) }
    }
    return constraints.reversed()
  }

  private func foreignKeys(of table: String) throws -> [ForeignKey] {
    var keys: [(id: Int64, key: ForeignKey)] = []
    let query = """
      SELECT id, "table", "from", "to", on_update, on_delete FROM pragma_foreign_key_list(?, 'main') ORDER BY id, seq
      """
    try connection.forEachRow(ofCached: query, binding: [table]) { row in
      let id = row.integer(at: 0)
      if keys.last?.id != id {
        keys.append(
          (
            id,
            ForeignKey(
              columns: [], parent: row.text(at: 1) ?? "",
              onUpdate: ForeignKey.Action(rawValue: row.text(at: 4) ?? "") ?? .noAction,
              onDelete: ForeignKey.Action(rawValue: row.text(at: 5) ?? "") ?? .noAction)
          ))
      }
      keys[keys.count - 1].key.columns.append(row.text(at: 2) ?? "")
      if let parent = row.text(at: 3) { keys[keys.count - 1].key.parentColumns.append(parent) }
    }
    return keys.map(\.key).reversed()
  }
}

/// Definitions of tables that have been read, as many as there is room for.
struct KeptDefinitions {
  /// The most columns that are kept, of all tables together: some 10 MB of memory.
  private static let columnLimit = 65_536

  private var definitions: [TableName: TableDefinition] = [:]
  private var columnCount = 0

  /// The definition of a table; nil where it is not kept.
  subscript(name: TableName) -> TableDefinition? { definitions[name] }

  /// Keeps a definition, in the place of an earlier one of the same table.
  mutating func keep(_ definition: TableDefinition) {
    let name = TableName(definition.name)
    forget(name)
    if columnCount + definition.columns.count > Self.columnLimit {
      definitions = [:]
      columnCount = 0
    }
    columnCount += definition.columns.count
    definitions[name] = definition
  }

  /// Forgets the definition of a table.
  mutating func forget(_ name: TableName) {
    if let known = definitions.removeValue(forKey: name) { columnCount -= known.columns.count }
  }

  /// Takes a definition out, to be changed and kept again: it is not copied then.
  mutating func take(_ name: TableName) -> TableDefinition? {
    let known = definitions[name]
    forget(name)
    return known
  }
}

/// A schema that changes while it is known: a folder can hold thousands of files that each add something to it, and reading
/// all of it again for each takes a time that grows with their square.
extension SchemaReader {
  /// Carries out a step of a plan, and reads what it has changed.
  ///
  /// - Returns: True if the reader describes the schema as it is now. It does not once a virtual table was made, along with the
  ///   tables of its module.
  /// - Throws: As ``SchemaStep/carryOut(on:)``. What the reader says means nothing any more then.
  package func carryOut(_ step: SchemaStep) throws -> Bool {
    try step.carryOut(on: connection)
    switch step {
    case .createTable(let table, _):
      guard table.module == nil else { return false }
      let name = TableName(table.name)
      let sql = try createStatement(of: name)
      places[name] = entries.count
      entries.append(
        SchemaEntry(
          name: name, kind: .table, isWithoutRowID: table.isWithoutRowID, isStrict: table.isStrict, sql: sql,
          isNameRepaired: false))
      definitions?.forget(name)
    case .addColumn(let column, let table):
      guard let place = places[table] else { return false }
      entries[place].sql = try createStatement(of: table)
      addColumn(column.added, to: entries[place].name)
    }
    return true
  }

  /// The statement that SQLite has for a table. That of a new one is found at once: it is the last.
  private func createStatement(of table: TableName) throws -> String {
    let query = """
      SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE ORDER BY rowid DESC LIMIT 1
      """
    return try connection.first(ofCached: query, table.text) { $0.text(at: 0) ?? "" } ?? ""
  }

  /// Adds a new column to the definition of its table, if that is kept. SQLite adds it behind all others, and neither to a key nor
  /// to an index (<https://sqlite.org/lang_altertable.html#altertabaddcol>). To read all columns again would take longer than to
  /// add one.
  private func addColumn(_ column: ColumnDefinition, to table: TableName) {
    guard var definition = definitions?.take(table) else { return }
    definition.columns.append(column)
    definitions?.keep(definition)
  }
}
