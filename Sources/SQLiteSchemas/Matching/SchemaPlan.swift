import SQLiteChangesets
import SQLiteConnections

/// Matches incoming definitions with the local schema by name and says what has to be done.
package struct SchemaPlan: Sendable {
  /// What has to be created and added, in this order.
  package private(set) var steps: [SchemaStep] = []
  /// What becomes of everything that is not the same on both sides.
  package private(set) var notes: [SchemaNote] = []
  /// Where the columns of each table go.
  package private(set) var matches: [TableName: TableMatch] = [:]
  /// What is unknown here, and is to be kept.
  package private(set) var held: [TableName: HeldTable] = [:]
  /// Virtual tables, and tables of SQLite's, whose rows are not written, since this database keeps its own, and what is to be
  /// said of it.
  package private(set) var passedOver: [TableName: Warning] = [:]

  /// True if rows that the diff deletes may have to stay, since they come back in a form that cannot be stored.
  package var keepsDeletedRows: Bool { matches.values.contains { !$0.unstorableRows.isEmpty } }

  /// Columns that are to be held although there is a place for them: for each table their indexes, with the reason.
  package typealias Withheld = [TableName: [Int: String]]

  /// A plan for no tables.
  package init() {}

  /// Plans for all tables of a diff.
  ///
  /// - Parameters:
  ///   - definitions: The tables as their author has them.
  ///   - mode: What may be done about differences.
  ///   - withheld: Columns that are to be held in any case, in the mode `hold`.
  ///   - renames: The renames that are known.
  ///   - replaced: Tables that the author has made otherwise. Where one has got another key, its changes are passed over in the mode
  ///     `additive`: they are for those who adopt the schema.
  ///   - schema: The local schema.
  /// - Throws: `ReplicationError` when a table cannot be made to fit; nothing has been changed then.
  package init(
    definitions: [TableDefinition], mode: SchemaMode, withholding withheld: Withheld = [:],
    renames: ColumnRenames = ColumnRenames(), replaced: Set<TableName> = [], local schema: SchemaReader
  ) throws {
    let missing = definitions.filter { schema.entry(named: TableName($0.name)) == nil }
    guard mode != .additive || missing.count <= TableDefinition.newTableLimit else {
      throw ReplicationError(
        .refusedDefinition,
        "it would create \(missing.count) tables; one diff file may create \(TableDefinition.newTableLimit)")
    }
    let siblings = Set(missing.map { TableName($0.name) })
    for definition in definitions {
      let name = TableName(definition.name)
      guard matches[name] == nil, held[name] == nil, passedOver[name] == nil else {
        throw ReplicationError(.refusedDefinition, "table \"\(name)\" is defined twice", table: name.text)
      }
      if let refusal = name.refusal {
        throw ReplicationError(.refusedTable, "no diff may change table \"\(name)\": \(refusal)", table: name.text)
      }
      guard definition.columns.count + definition.generated.count <= TableDefinition.columnLimit else {
        throw ReplicationError(
          .refusedDefinition, "table \"\(name)\" has more than \(TableDefinition.columnLimit) columns", table: name.text
        )
      }
      guard let entry = schema.entry(named: name) else {
        if mode == .hold {
          hold(definition, because: "the table is missing here")
          continue
        }
        if let clash = schema.nameClash(of: definition, among: missing) {
          throw ReplicationError.mayNotCreate(definition, clash)
        }
        try create(definition, siblings: siblings, mode: mode, in: schema)
        continue
      }
      if let warning = Self.warning(onPassingOver: definition, for: entry) {
        passedOver[name] = warning
        notes.append(SchemaNote(.leaveOut, name.text, nil, warning.description))
        continue
      }
      if let refusal = Self.refusal(of: definition, for: entry) ?? Replicability.refusal(of: entry) {
        // What is a view here may become a table; a shadow table never will.
        guard mode == .hold, !entry.isShadow else {
          throw ReplicationError(.refusedTable, "no diff may change \"\(name)\": \(refusal)", table: name.text)
        }
        hold(definition, because: "here the name stands for something else: \(refusal)")
        continue
      }
      do {
        let local = try Self.local(entry, in: schema)
        if local.module != nil {
          matches[name] = try Self.match(definition, with: local, mode: mode)
          continue
        }
        let fit = try TableFit(definition, into: local, mode: mode, withheld: withheld[name] ?? [:], renames)
        steps += fit.steps
        notes += fit.notes
        matches[name] = fit.match
        held[name] = fit.heldTable
      } catch let error as ReplicationError
        where mode == .hold && (error.code == .keyDiffers || definition.module != nil && error.code == .columnsDiffer)
      {
        hold(definition, because: error.message)
      } catch let error as ReplicationError
        where mode == .additive && error.code == .keyDiffers && replaced.contains(name)
      {
        let warning = Warning(.keyChanged, name.text)
        passedOver[name] = warning
        notes.append(SchemaNote(.leaveOut, name.text, nil, warning.description))
      }
    }
  }

  /// Notes the rows of a table that come in and cannot be stored.
  package mutating func note(unstorable rows: Set<RowIdentity>, in table: TableName) {
    matches[table]?.unstorableRows = rows
  }

  private mutating func hold(_ table: TableDefinition, because reason: String) {
    held[TableName(table.name)] = HeldTable(whole: table, because: reason)
    notes.append(SchemaNote(.hold, table.name, nil, reason))
  }

  /// The definition of a local table, all of which can be said.
  fileprivate static func local(_ entry: SchemaEntry, in schema: SchemaReader) throws -> TableDefinition {
    let table = try schema.definition(of: entry)
    if table.hasRepairedNames, let refusal = Replicability.refusal(of: table) {
      throw ReplicationError(.refusedTable, "no diff may change \"\(table.name)\": \(refusal)", table: table.name)
    }
    return table
  }

  private mutating func create(
    _ table: TableDefinition, siblings: Set<TableName>, mode: SchemaMode, in schema: SchemaReader
  ) throws {
    guard mode == .additive else {
      throw ReplicationError(
        .schemaDiffers, "table \"\(table.name)\" is missing here, and the schema mode `exact` allows no change",
        table: table.name)
    }
    if let refusal = table.creationRefusal { throw ReplicationError.mayNotCreate(table, refusal) }
    if try schema.hasModule(named: table.name) {
      throw ReplicationError.mayNotCreate(table, "it would hide a module of that name")
    }
    if let module = table.module, try !schema.hasModule(named: module.name) {
      throw ReplicationError.mayNotCreate(
        table, "it is a virtual table of the module \(module.name), which SQLite lacks here")
    }
    steps.append(.createTable(table, siblings: siblings))
    notes.append(SchemaNote(.create, table.name, nil, table.columnCount))
    notes += table.generated.map { SchemaNote(leavingOut: $0, of: table) }
    for key in table.foreignKeys where !siblings.contains(TableName(key.parent)) {
      notes.append(
        SchemaNote(
          .leaveOut, table.name, nil,
          "FOREIGN KEY (\(key.columns.joined(separator: ", "))) REFERENCES \(key.parent), which is not created along with it"
        ))
    }
    matches[TableName(table.name)] = TableMatch(
      local: table, columns: Array(table.changesetColumns.indices), checkedValues: [])
  }

  /// Plans for a raw changeset, which has no definitions: columns are matched by position, and the key must be the same. There may
  /// be more columns here, behind the others.
  ///
  /// - Throws: `ReplicationError` when a table is missing or does not fit.
  package init(positional tables: [ChangesetTable], local schema: SchemaReader) throws {
    for table in tables {
      let name = TableName(table.name)
      if name.isReservedBySQLite {
        passedOver[name] = Warning(.rowsOfSQLite, name.text)
        continue
      }
      if let refusal = name.refusal {
        throw ReplicationError(.refusedTable, "no diff may change table \"\(name)\": \(refusal)", table: name.text)
      }
      guard let entry = schema.entry(named: name) else {
        throw ReplicationError(
          .missingTable,
          "table \"\(name)\" is missing here, and a raw changeset carries no definition to create it from",
          table: name.text)
      }
      if let warning = Self.warning(onPassingOver: nil, for: entry) {
        passedOver[name] = warning
        continue
      }
      if let refusal = Replicability.refusal(of: entry) {
        throw ReplicationError(.refusedTable, "no diff may change \"\(name)\": \(refusal)", table: name.text)
      }
      let local = try Self.local(entry, in: schema)
      let mayBeShort = local.module == nil
      guard local.changesetColumns.count >= table.columnCount,
        mayBeShort || local.changesetColumns.count == table.columnCount
      else {
        throw ReplicationError(
          .columnsDiffer,
          "table \"\(name)\" has \(local.changesetColumns.count) columns here and \(table.columnCount) in the changeset",
          table: name.text)
      }
      let keyFlags = local.keyFlags
      guard keyFlags.dropFirst(table.columnCount).allSatisfy({ $0 == 0 }),
        zip(keyFlags, table.keyFlags).allSatisfy({ ($0 != 0) == ($1 != 0) })
      else {
        throw ReplicationError(
          .keyDiffers, "table \"\(name)\" has another primary key here than in the changeset", table: name.text)
      }
      matches[name] = TableMatch(local: local, columns: Array(0..<table.columnCount), checkedValues: [])
    }
  }
}

extension SchemaEntry {
  /// True if it is a shadow table.
  fileprivate var isShadow: Bool { if case .shadow = kind { true } else { false } }
}

/// How far a diff may change the local schema.
public enum SchemaMode: String, Sendable, CaseIterable, Codable {
  /// Missing tables are created and missing columns added; nothing is ever dropped or altered.
  case additive
  /// Any difference refuses the diff.
  case exact
  /// Nothing is created: what is unknown here is kept in the database until the application's own upgrade has made a
  /// place for it. The rest is applied.
  case hold
  /// The schema becomes the author's: tables are rebuilt and dropped, and indexes, views and triggers made, by the author's own
  /// statements, in the transaction that applies the changes. What exists here and never was the author's stays, and no row is lost.
  ///
  /// Only for files of one's own replicas and of people who may decide about this database. A file without its author's
  /// statements is applied as with ``additive``.
  case adopt
}

/// One line of a plan: what becomes of an incoming table or column here, and why. A table or column that is the same on both
/// sides has none.
public struct SchemaNote: Hashable, Codable, Sendable, CustomStringConvertible {
  /// What is done.
  public enum Action: String, Codable, Sendable, CaseIterable {
    /// A table is created.
    case create
    /// A column is added.
    case add
    /// Values are written by name into columns that stand in another order here.
    case remap
    /// Values go into a column that has another name here.
    case rename
    /// A column or a property is only here, and stays.
    case keep
    /// Values go into a column of another type.
    case convert
    /// It is kept for the application's own upgrade.
    case hold
    /// A table, index, view or trigger is dropped, as its author has dropped it. Only where the schema is adopted.
    case drop
    /// A table is made again by its author's definition, with the rows it has. Only where the schema is adopted.
    case rebuild
    /// An index, view or trigger is made again by its author's definition. Only where the schema is adopted.
    case replace
    /// A part of a definition is not carried out.
    case leaveOut = "leave-out"
  }

  /// What is done.
  public let action: Action
  /// The table, as the diff calls it.
  public let table: String
  /// The column; nil where it is about the whole table.
  public let column: String?
  /// What about it and why, for people.
  public let detail: String

  init(_ action: Action, _ table: String, _ column: String? = nil, _ detail: String) {
    self.action = action
    self.table = table
    self.column = column
    self.detail = detail
  }

  /// A generated column is not made.
  init(leavingOut column: GeneratedColumn, of table: TableDefinition) {
    self.init(
      .leaveOut, table.name, column.name, "a generated column is computed from its expression, which does not travel")
  }

  /// A line for people.
  public var description: String {
    let subject = column.map { "\(table).\($0)" } ?? table
    let verb = action == .leaveOut ? "leave out" : action.rawValue
    return "\(verb) \(subject)\(detail.isEmpty ? "" : ": \(detail)")"
  }
}

/// One step that makes the local schema fit.
package enum SchemaStep: Equatable, Sendable, CustomStringConvertible {
  /// A table is created. `siblings` are the tables created along with it, the only ones its foreign keys may name.
  case createTable(TableDefinition, siblings: Set<TableName>)
  /// A column is added to a table that is there.
  case addColumn(ColumnDefinition, table: TableName)

  /// The table that it makes or changes.
  package var table: TableName {
    switch self {
    case .createTable(let table, _): TableName(table.name)
    case .addColumn(_, let table): table
    }
  }

  /// The statement that carries it out.
  var sql: String {
    switch self {
    case .createTable(let table, let siblings): return table.createStatement(siblings: siblings)
    case .addColumn(let column, let table):
      return "ALTER TABLE main.\(table.quoted) ADD COLUMN \(column.addClause)"
    }
  }

  /// What it does, for people.
  package var description: String {
    switch self {
    case .createTable(let table, _):
      guard let module = table.module else { return "create table \(table.name) (\(table.columnCount))" }
      return "create virtual table \(table.name) (\(module.name), \(table.columnCount))"
    case .addColumn(let column, let table): return "add column \(table).\(column.name)"
    }
  }
}

extension TableDefinition {
  /// The number of its columns, for people.
  var columnCount: String { columns.count == 1 ? "1 column" : "\(columns.count) columns" }
}
