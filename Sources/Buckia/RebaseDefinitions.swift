import BuckiaBytes
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// What is known of the tables of files that are rebased: from the definitions in the files, else from a database.
struct RebaseDefinitions {
  private var definitions: [TableName: TableDefinition] = [:]
  private var greatestKeys: [TableName: Int64] = [:]
  /// The tables of the changes, as their headers describe them.
  private let tables: [ChangesetTable]

  /// - Parameters:
  ///   - inputs: The files.
  ///   - database: A database with the same tables; nil for none.
  /// - Throws: `BuckiaError` when the database cannot be read.
  init(of inputs: [InspectedFile], database: String?) throws {
    var tables: [TableName: ChangesetTable] = [:]
    for table in inputs.flatMap(\.summary.tables) { tables[TableName(table.table.name)] = table.table }
    self.tables = tables.values.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    for definition in inputs.flatMap({ $0.schema ?? [] }) { definitions[TableName(definition.name)] = definition }
    if let database {
      try DatabaseManager(database).withReader { connection in
        let transaction = try SQLiteTransaction(.deferred, on: connection)
        try read(SchemaReader(connection), on: connection)
        transaction.rollback()
      }
    }
    for table in self.tables where definitions[TableName(table.name)]?.describes(table) == false {
      definitions[TableName(table.name)] = nil
    }
  }

  /// - Parameters:
  ///   - definitions: The tables of changes that a database receives.
  ///   - tables: The same as the changes describe them.
  ///   - connection: The database.
  init(
    of definitions: [TableDefinition], _ tables: [ChangesetTable], on connection: borrowing SQLiteConnection
  ) throws {
    self.tables = tables
    for definition in definitions { self.definitions[TableName(definition.name)] = definition }
    try read(SchemaReader(connection), on: connection)
  }

  private mutating func read(_ schema: SchemaReader, on connection: borrowing SQLiteConnection) throws {
    for table in tables {
      let name = TableName(table.name)
      guard let entry = schema.entry(named: name), entry.kind == .table else { continue }
      let local = try schema.definition(of: entry)
      let known = definitions[name] ?? local
      definitions[name] = known
      guard let key = local.integerKeyName, known.integerKeyName.map({ ASCIIName.matches($0, key) }) ?? false else {
        continue
      }
      var greatest: Int64 = 0
      try connection.forEachRow(of: "SELECT max(\(key)) FROM main.\(name.quoted)") { row in
        if row.storageClass(at: 0) == .integer { greatest = row.integer(at: 0) }
      }
      if local.isAutoIncrement {
        let query = "SELECT seq FROM main.sqlite_sequence WHERE name = ?1 COLLATE NOCASE"
        try connection.forEachRow(of: query, binding: [table.name]) { greatest = max(greatest, $0.integer(at: 0)) }
      }
      greatestKeys[name] = greatest
    }
  }

  /// What is known, as rebasing takes it.
  var rebaseTables: [RebaseTable] {
    tables.compactMap { table in
      let name = TableName(table.name)
      return definitions[name].map { definition in
        RebaseTable(
          name: table.name, collations: definition.changesetCollations, unique: definition.changesetUnique,
          references: definition.foreignKeys.compactMap { reference($0, of: definition) },
          integerKey: definition.integerKeyName == nil ? nil : definition.keyIndexes[0],
          greatestKey: greatestKeys[name])
      }
    }
  }

  private func reference(_ key: ForeignKey, of child: TableDefinition) -> RebaseTable.Reference? {
    guard let parent = definitions[TableName(key.parent)] else { return nil }
    let columns = key.columns.compactMap { child.changesetColumn(named: $0) }
    let parentColumns =
      key.parentColumns.isEmpty
      ? parent.primaryKey : key.parentColumns.compactMap { parent.changesetColumn(named: $0) }
    guard columns.count == key.columns.count, columns.count == parentColumns.count else { return nil }
    return RebaseTable.Reference(columns: columns, parent: parent.name, parentColumns: parentColumns)
  }

  /// The columns of a table by name; numbers from 1 where there is no definition.
  func columns(of table: String) -> [String]? { definitions[TableName(table)]?.changesetColumns }

  /// The indexes of a table's key columns, in column order.
  func keyIndexes(of table: String) -> [Int] {
    guard let table = tables.first(where: { TableName($0.name) == TableName(table) }) else { return [] }
    return table.keyFlags.indices.filter { table.isKey($0) }
  }

  /// What is worth knowing.
  func remarks(remapped: [RemappedKey], remapsKeys: Bool) -> [Remark] {
    var remarks = tables.filter { definitions[TableName($0.name)] == nil }
      .map { Remark(.rebasedWithoutDefinition, $0.name) }
    guard remapsKeys else { return remarks }
    let names = Set(remapped.map { TableName($0.table) })
    for table in tables where names.contains(TableName(table.name)) {
      remarks.append(Remark(.undeclaredReferences, table.name))
      if greatestKeys[TableName(table.name)] == nil { remarks.append(Remark(.newKeysUnchecked, table.name)) }
    }
    return remarks
  }
}

extension TableDefinition {
  /// Whether a header is one of this table.
  fileprivate func describes(_ table: ChangesetTable) -> Bool {
    keyFlags.elementsEqual(table.keyFlags) { ($0 != 0) == ($1 != 0) }
  }

  /// How many columns a changeset has in front of those of the table.
  private var offset: Int { isKeyedByRowID ? 1 : 0 }

  fileprivate func changesetColumn(named name: String) -> Int? { column(named: name).map { $0 + offset } }

  fileprivate var changesetUnique: [[Int]] { unique.map { $0.map { $0 + offset } } }

  fileprivate var changesetCollations: [RebaseTable.Collation] {
    Array(repeating: .binary, count: offset)
      + columns.map { column in
        if ASCIIName.matches(column.collation, "NOCASE") { return .noCase }
        return ASCIIName.matches(column.collation, "RTRIM") ? .rightTrim : .binary
      }
  }

  /// The column that alone is the key and holds integers, as an SQL identifier; nil for any other key, and for virtual tables, which take
  /// theirs from other tables.
  fileprivate var integerKeyName: String? {
    guard module == nil else { return nil }
    if isKeyedByRowID { return rowIDName }
    guard primaryKey.count == 1, affinity(at: primaryKey[0]) == .integer else { return nil }
    return SQLText.identifier(columns[primaryKey[0]].name)
  }
}
