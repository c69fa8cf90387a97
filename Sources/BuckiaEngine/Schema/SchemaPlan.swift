import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// How far a diff may change the local schema.
public enum SchemaMode: String, Sendable, CaseIterable {
  /// Missing tables are created and missing columns added; nothing is ever dropped or altered.
  case additive
  /// Any difference refuses the diff.
  case exact
}

/// One step that makes the local schema fit.
public enum SchemaStep: Equatable, Sendable, CustomStringConvertible {
  /// A table is created. `siblings` are the tables created along with it, the only ones its foreign keys may name.
  case createTable(TableDefinition, siblings: Set<TableName>)
  /// A column is added to a table that is there.
  case addColumn(ColumnDefinition, table: TableName)

  /// The statement that carries it out.
  var sql: String {
    switch self {
    case .createTable(let table, let siblings): return table.createStatement(siblings: siblings)
    case .addColumn(let column, let table):
      return "ALTER TABLE main.\(table.quoted) ADD COLUMN \(column.addClause)"
    }
  }

  /// What it does, for people.
  public var description: String {
    switch self {
    case .createTable(let table, _):
      guard let module = table.module else { return "create table \(table.name) (\(table.columns.count) columns)" }
      return "create virtual table \(table.name) (\(module.name), \(table.columns.count) columns)"
    case .addColumn(let column, let table): return "add column \(table).\(column.name)"
    }
  }
}

/// How the columns of one incoming table meet those of the local one.
struct TableMatch: Sendable {
  /// The local table, as it will be once the steps have been carried out.
  let local: TableDefinition
  /// For each column of the changeset its place in the local layout: `local.changesetColumns`.
  let columns: [Int]
  /// Columns whose values must be looked at: index in the changeset, affinity here.
  let checkedValues: [(column: Int, affinity: Affinity)]
}

/// Matches incoming definitions with the local schema by name and says what has to be done.
struct SchemaPlan: Sendable {
  private(set) var steps: [SchemaStep] = []
  private(set) var matches: [TableName: TableMatch] = [:]
  /// Virtual tables whose rows are not written, since this database keeps its own, and what is to be said of it.
  private(set) var passedOver: [TableName: String] = [:]

  /// Plans for all tables of a diff.
  ///
  /// - Throws: `EngineError` when a table cannot be made to fit; nothing has been changed then.
  init(
    definitions: [TableDefinition], mode: SchemaMode, local schema: borrowing SchemaReader,
    on connection: borrowing SQLiteConnection
  ) throws {
    let missing = definitions.filter { schema.entry(named: TableName($0.name)) == nil }
    guard missing.count <= TableDefinition.newTableLimit else {
      throw EngineError(
        .refusedDefinition,
        "it would create \(missing.count) tables; one diff file may create \(TableDefinition.newTableLimit)")
    }
    let siblings = Set(missing.map { TableName($0.name) })
    for definition in definitions {
      let name = TableName(definition.name)
      guard matches[name] == nil else {
        throw EngineError(.refusedDefinition, "table \"\(name)\" is defined twice", table: name.text)
      }
      if let refusal = name.refusal {
        throw EngineError(.refusedTable, "no diff may change table \"\(name)\": \(refusal)", table: name.text)
      }
      if let entry = schema.entry(named: name) {
        if let remark = VirtualMatch.remark(onPassingOver: definition, for: entry) {
          passedOver[name] = remark
          continue
        }
        if let refusal = VirtualMatch.refusal(of: definition, for: entry) ?? Replicability.refusal(of: entry) {
          throw EngineError(.refusedTable, "no diff may change \"\(name)\": \(refusal)", table: name.text)
        }
        let existing = try schema.definition(of: entry, on: connection)
        if existing.module != nil {
          matches[name] = try VirtualMatch.match(definition, with: existing, mode: mode)
        } else {
          try match(definition, with: existing, mode: mode)
        }
      } else {
        if let clash = schema.nameClash(of: definition, among: missing) {
          throw EngineError(
            .refusedDefinition, "table \"\(name)\" may not be created: \(clash)", table: name.text)
        }
        try create(definition, siblings: siblings, mode: mode, on: connection)
      }
    }
  }

  private mutating func create(
    _ table: TableDefinition, siblings: Set<TableName>, mode: SchemaMode, on connection: borrowing SQLiteConnection
  ) throws {
    guard mode == .additive else {
      throw EngineError(
        .schemaDiffers, "table \"\(table.name)\" is missing here, and --schema exact allows no change",
        table: table.name)
    }
    if let refusal = table.creationRefusal {
      throw EngineError(
        .refusedDefinition, "table \"\(table.name)\" may not be created: \(refusal)", table: table.name)
    }
    let taken = "SELECT 1 FROM pragma_module_list WHERE lower(name) = lower(?1)"
    if try connection.integer(taken, binding: [table.name]) != nil {
      throw EngineError(
        .refusedDefinition, "table \"\(table.name)\" may not be created: it would hide a module of that name",
        table: table.name)
    }
    if let module = table.module { try VirtualMatch.requireLoaded(module, for: table, on: connection) }
    steps.append(.createTable(table, siblings: siblings))
    matches[TableName(table.name)] = TableMatch(
      local: table, columns: Array(table.changesetColumns.indices), checkedValues: [])
  }

  private mutating func match(_ incoming: TableDefinition, with existing: TableDefinition, mode: SchemaMode) throws {
    var local = existing
    guard incoming.hasSameKey(as: local) else {
      let incomingKey = incoming.primaryKey.map { incoming.columns[$0].name }
      let localKey = local.primaryKey.map { local.columns[$0].name }
      throw EngineError(
        .keyDiffers,
        "table \"\(local.name)\" has another primary key: \(Self.list(incomingKey)) in the diff, \(Self.list(localKey)) here",
        table: local.name)
    }
    if local.goesByRowID, local.rowIDName == nil {
      throw EngineError(
        .keyDiffers, "table \"\(local.name)\" has no primary key, and its columns hide the rowid", table: local.name)
    }
    if mode == .exact { try requireEqual(incoming, local) }
    var added = 0
    var columns: [Int] = incoming.goesByRowID ? [0] : []
    let offset = columns.count
    var checked: [(Int, Affinity)] = []
    var taken: Set<Int> = []
    for (index, column) in incoming.columns.enumerated() {
      if let found = local.column(named: column.name) {
        guard taken.insert(found).inserted else {
          throw EngineError(
            .columnsDiffer, "the definition of table \"\(local.name)\" names column \"\(column.name)\" twice",
            table: local.name, column: column.name)
        }
        switch TypeCompatibility(incoming: incoming.affinity(at: index), local: local.affinity(at: found)) {
        case .safe: break
        case .dependsOnValues: checked.append((index + offset, local.affinity(at: found)))
        case .contradictory:
          throw EngineError(
            .incompatibleType,
            "column \"\(local.name).\(column.name)\" has an incompatible type: \(Self.type(column)) in the diff, "
              + "\(Self.type(local.columns[found])) here",
            table: local.name, column: column.name)
        }
        columns.append(found + offset)
        continue
      }
      if local.generated.contains(where: { ASCIIName.matches($0.name, column.name) }) {
        throw EngineError(
          .columnsDiffer, "column \"\(local.name).\(column.name)\" is a generated column here and cannot be written",
          table: local.name, column: column.name)
      }
      if let refusal = column.creationRefusal {
        throw EngineError(
          .refusedDefinition, "column \"\(local.name).\(column.name)\" may not be added: \(refusal)",
          table: local.name, column: column.name)
      }
      added += 1
      guard added <= TableDefinition.newColumnLimit else {
        throw EngineError(
          .refusedDefinition,
          "it would add more than \(TableDefinition.newColumnLimit) columns to table \"\(local.name)\"",
          table: local.name)
      }
      steps.append(.addColumn(column, table: TableName(local.name)))
      taken.insert(local.columns.count)
      columns.append(local.columns.count + offset)
      local.columns.append(column)
    }
    matches[TableName(local.name)] = TableMatch(local: local, columns: columns, checkedValues: checked)
  }

  private func requireEqual(_ incoming: TableDefinition, _ local: TableDefinition) throws {
    func shape(_ table: TableDefinition) -> [String] {
      table.columns.map { "\(ASCIIName.folded($0.name)) \(ASCIIName.folded($0.declaredType))" }
    }
    guard shape(incoming) == shape(local), incoming.isWithoutRowID == local.isWithoutRowID,
      incoming.isStrict == local.isStrict
    else {
      throw EngineError(
        .schemaDiffers, "table \"\(local.name)\" is defined differently here, and --schema exact allows no difference",
        table: local.name)
    }
  }

  private static func list(_ key: [String]) -> String { key.isEmpty ? "none" : "(\(key.joined(separator: ", ")))" }

  private static func type(_ column: ColumnDefinition) -> String {
    column.declaredType.isEmpty ? "no type" : column.declaredType
  }

  /// Plans for a raw changeset, which has no definitions: columns go by position, and the key must be the same. There may
  /// be more columns here, behind the others.
  ///
  /// - Throws: `EngineError` when a table is missing or does not fit.
  init(
    positional tables: [ChangesetTable], local schema: borrowing SchemaReader, on connection: borrowing SQLiteConnection
  ) throws {
    for table in tables {
      let name = TableName(table.name)
      if let refusal = name.refusal {
        throw EngineError(.refusedTable, "no diff may change table \"\(name)\": \(refusal)", table: name.text)
      }
      guard let entry = schema.entry(named: name) else {
        throw EngineError(
          .missingTable,
          "table \"\(name)\" is missing here, and a raw changeset carries no definition to create it from",
          table: name.text)
      }
      if let remark = VirtualMatch.remark(onPassingOver: nil, for: entry) {
        passedOver[name] = remark
        continue
      }
      if let refusal = Replicability.refusal(of: entry) {
        throw EngineError(.refusedTable, "no diff may change \"\(name)\": \(refusal)", table: name.text)
      }
      let local = try schema.definition(of: entry, on: connection)
      let mayBeShort = local.module == nil
      guard local.changesetColumns.count >= table.columnCount,
        mayBeShort || local.changesetColumns.count == table.columnCount
      else {
        throw EngineError(
          .columnsDiffer,
          "table \"\(name)\" has \(local.changesetColumns.count) columns here and \(table.columnCount) in the changeset",
          table: name.text)
      }
      let keyFlags = local.keyFlags
      guard keyFlags.dropFirst(table.columnCount).allSatisfy({ $0 == 0 }),
        zip(keyFlags, table.keyFlags).allSatisfy({ ($0 != 0) == ($1 != 0) })
      else {
        throw EngineError(
          .keyDiffers, "table \"\(name)\" has another primary key here than in the changeset", table: name.text)
      }
      matches[name] = TableMatch(local: local, columns: Array(0..<table.columnCount), checkedValues: [])
    }
  }
}
