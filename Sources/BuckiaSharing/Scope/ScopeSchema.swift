import BuckiaBytes
import BuckiaDiff
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// A scope applied to the schema of a database: which tables take part, and which references are followed.
struct ScopeSchema {
  /// How the shared rows of a table are determined.
  enum Rows: Equatable {
    /// All are shared.
    case all
    /// The rows that meet the condition. No other row depends on them.
    case condition
    /// Rows that are gathered one by one.
    case gathered
  }

  /// A table that takes part.
  struct Table {
    let definition: TableDefinition
    /// The shared rows and columns.
    var selected: SharedTable
    /// True if the scope names it; else it takes part only because others refer to it.
    let isNamed: Bool
    /// The columns that identify a row, as SQL: the rowid, or the key of a WITHOUT ROWID table.
    let identity: [String]
    var rows: Rows

    /// The table in the scope; nil if the scope does not name it.
    var shared: SharedTable? { isNamed ? selected : nil }
    var name: TableName { TableName(definition.name) }
    var sql: String { "main.\(SQLText.identifier(definition.name))" }
  }

  /// Rows of a table that refer to others.
  struct Reference {
    /// The place of the table among ``ScopeSchema/tables``.
    let child: Int
    let columns: [String]
    /// The table that is referred to.
    let parentName: TableName
    /// The place of that table; nil if it does not take part, and shared rows must not refer to it.
    let parent: Int?
    let parentColumns: [String]
    /// True if the child has an index that finds the rows that refer to a row and compares values as the parent does.
    let findsChildren: Bool
    /// True if the parent has an index that finds the row that is referred to. A foreign key always has one.
    let findsParents: Bool
    /// The affinities and collating sequences of the parent's columns, by which both sides are compared.
    let affinities: [Affinity]
    let collations: [String]
    /// True if rows of the child are shared because they refer to the parent.
    let bringsChildren: Bool
  }

  var tables: [Table] = []
  private(set) var references: [Reference] = []
  private var places: [TableName: Int] = [:]
  /// The columns of unnamed tables to which rows refer, with folded case.
  private var referredColumns: [TableName: Set<String>] = [:]

  /// - Throws: `ReplicationError` with `invalidScope`, `noSuchTable` or `invalidSelection`; `SQLiteError`.
  init(_ scope: ShareScope, _ schema: SchemaReader, on connection: borrowing SQLiteConnection) throws {
    guard !scope.tables.isEmpty else { throw ReplicationError.invalidScope("the scope names no table") }
    for name in scope.excludedTables {
      try Self.requireTable(name, schema)
      if scope.table(name) != nil {
        throw ReplicationError.invalidScope("table \"\(name)\" is both shared and excluded", table: name)
      }
    }
    for shared in scope.tables { try add(shared, schema, on: connection) }
    let named = (tables, places)
    while true {
      let known = referredColumns
      var next = 0
      while next < tables.count {
        try addReferences(of: next, scope, schema)
        next += 1
      }
      // A referenced column may be part of a foreign key itself.
      if known == referredColumns { break }
      (tables, places) = named
      references = []
    }
    try requireReferences(scope)
    chooseRows()
  }

  // MARK: Tables

  @discardableResult
  private static func requireTable(_ name: TableName, _ schema: SchemaReader) throws -> SchemaEntry {
    guard let entry = schema.entry(named: name) else {
      throw ReplicationError(.noSuchTable, "the scope names table \"\(name)\", which does not exist", table: name.text)
    }
    return entry
  }

  private mutating func add(
    _ shared: SharedTable, _ schema: SchemaReader, on connection: borrowing SQLiteConnection
  ) throws {
    let entry = try Self.requireTable(shared.name, schema)
    guard places[shared.name] == nil else {
      throw ReplicationError.invalidScope("the scope names table \"\(shared.name)\" twice", table: shared.name)
    }
    if let reason = try Self.refusal(of: entry, schema) {
      throw ReplicationError.invalidScope("table \"\(shared.name)\" cannot be shared: \(reason)", table: shared.name)
    }
    let definition = try schema.definition(of: entry)
    let shared = try shared.resolved(for: definition)
    for condition in [shared.condition, shared.childCondition].compactMap({ $0 }) {
      try RowSelection(where: condition, shared.parameters).validate(
        for: shared.name, on: connection, of: "the scope", allowingOthers: true)
    }
    try requireParameters(of: shared, on: connection)
    let selection = shared.selection(where: nil)
    try RowSelection.requireColumns(of: [selection], in: [definition])
    try selection.requireUse(on: definition)
    guard shared.depth ?? 1 >= 1 else {
      throw ReplicationError.invalidScope("the depth for table \"\(shared.name)\" is less than 1", table: shared.name)
    }
    guard !shared.parents.isEmpty || shared.childCondition == nil && shared.depth == nil else {
      throw ReplicationError.invalidScope(
        "the scope limits the children in table \"\(shared.name)\", but does not say of which tables they are children",
        table: shared.name)
    }
    try append(definition, shared, isNamed: true)
  }

  /// Requires that each parameter is used: a misspelled one would share other rows than intended.
  private func requireParameters(of shared: SharedTable, on connection: borrowing SQLiteConnection) throws {
    let conditions = [shared.condition, shared.childCondition].compactMap { $0 }
    var used: Set<String> = []
    for condition in conditions {
      let query = try connection.prepare("SELECT 1 FROM main.\(shared.name.quoted) WHERE (\(condition)\n)")
      used.formUnion(
        (0..<query.parameterCount).compactMap { query.parameterName(at: $0).map { String($0.dropFirst()) } })
    }
    if let name = shared.parameters.keys.sorted().first(where: { !used.contains($0) }) {
      throw ReplicationError.invalidScope(
        "no condition for table \"\(shared.name)\" has a parameter \"\(name)\"", table: shared.name)
    }
  }

  private mutating func append(_ definition: TableDefinition, _ shared: SharedTable, isNamed: Bool) throws {
    var identity = definition.keySQL
    if !definition.isWithoutRowID {
      guard let rowID = definition.rowIDName else {
        throw ReplicationError.invalidScope(
          "table \"\(definition.name)\" cannot be shared: its columns hide the rowid", table: TableName(definition.name)
        )
      }
      identity = [rowID]
    }
    places[TableName(definition.name)] = tables.count
    tables.append(
      Table(
        definition: definition, selected: shared, isNamed: isNamed, identity: identity, rows: .gathered))
  }

  /// The shared columns of a table that the scope does not name: the key, referenced columns, columns of the scope's
  /// references, and columns that must have a value.
  private func columnsOfParents(in definition: TableDefinition, _ scope: ShareScope) -> SharedTable {
    let name = TableName(definition.name)
    // Rows without a key are identified by all their values.
    guard !definition.isKeyedByRowID else { return SharedTable(name) }
    var named = referredColumns[name] ?? []
    for reference in scope.references where reference.table == name {
      named.formUnion(reference.columns.map { ASCIIName.folded($0) })
    }
    let required = definition.columns.filter { column in
      column.isNotNull && column.defaultValue == nil && !column.hasExpressionDefault
        || named.contains(ASCIIName.folded(column.name))
    }
    var table = SharedTable(name)
    table.columns = required.map(\.name)
    table.omittedColumns = table.omittedColumns(of: definition)
    table.columns = nil
    return table
  }

  private static func refusal(of entry: SchemaEntry, _ schema: SchemaReader) throws -> String? {
    if let reason = Replicability.refusal(of: entry) { return reason }
    guard entry.kind == .table else { return "it is no ordinary table" }
    return Replicability.refusal(of: try schema.definition(of: entry))
  }

  // MARK: References

  private mutating func addReferences(of child: Int, _ scope: ShareScope, _ schema: SchemaReader) throws {
    let table = tables[child]
    let declared = scope.references.filter { $0.table == table.name }.map {
      ForeignKey(columns: $0.columns, parent: $0.parent.text, parentColumns: $0.parentColumns)
    }
    for key in table.definition.foreignKeys + declared {
      // A column that is left out or rewritten refers to nothing.
      if key.columns.contains(where: { table.selected.hides($0) }) { continue }
      let isExcluded = scope.excludedTables.contains(TableName(key.parent))
      let entry = isExcluded ? nil : schema.entry(named: TableName(key.parent))
      guard let entry, try Self.refusal(of: entry, schema) == nil else {
        try append(key, of: child, to: nil, [], schema)
        continue
      }
      if places[entry.name] == nil {
        let definition = try schema.definition(of: entry)
        try append(definition, columnsOfParents(in: definition, scope), isNamed: false)
      }
      guard let parent = places[entry.name] else { continue }
      referredColumns[entry.name, default: []].formUnion(key.parentColumns.map { ASCIIName.folded($0) })
      let definition = tables[parent].definition
      let columns =
        key.parentColumns.isEmpty ? definition.primaryKey.map { definition.columns[$0].name } : key.parentColumns
      try append(key, of: child, to: columns.count == key.columns.count ? parent : nil, columns, schema)
    }
  }

  private mutating func append(
    _ key: ForeignKey, of child: Int, to parent: Int?, _ parentColumns: [String], _ schema: SchemaReader
  ) throws {
    let table = tables[child].definition
    let parentName = TableName(key.parent)
    var (findsChildren, findsParents) = (false, false)
    var (affinities, collations) = ([Affinity](), [String]())
    if let parent {
      let theirs = tables[parent].definition
      let comparesAlike = zip(key.columns, parentColumns).allSatisfy { mine, other in
        guard let mine = table.column(named: mine), let other = theirs.column(named: other) else { return false }
        return ASCIIName.matches(table.columns[mine].collation, theirs.columns[other].collation)
          && table.affinity(at: mine) == theirs.affinity(at: other)
      }
      findsChildren = try comparesAlike && schema.hasIndex(on: table, ofOneOf: key.columns)
      findsParents = try schema.hasIndex(on: theirs, ofOneOf: parentColumns)
      let places = parentColumns.map { theirs.column(named: $0) }
      affinities = places.map { $0.map { theirs.affinity(at: $0) } ?? .integer }
      collations = places.map { $0.map { theirs.columns[$0].collation } ?? "BINARY" }
    }
    references.append(
      Reference(
        child: child, columns: key.columns, parentName: parentName, parent: parent, parentColumns: parentColumns,
        findsChildren: findsChildren, findsParents: findsParents, affinities: affinities, collations: collations,
        bringsChildren: parent != nil && tables[child].shared?.parents.contains(parentName) == true))
  }

  /// Requires that the references of the scope can be followed.
  private func requireReferences(_ scope: ShareScope) throws {
    for reference in scope.references {
      guard let child = places[reference.table] else {
        throw ReplicationError.invalidScope(
          "the scope declares a reference of table \"\(reference.table)\", which is not shared", table: reference.table)
      }
      let columns = tables[child].definition.columns
      if let column = reference.columns.first(where: { name in !columns.contains { ASCIIName.matches($0.name, name) } })
      {
        throw ReplicationError.invalidScope(
          "the scope declares a reference by column \"\(reference.table).\(column)\", which does not exist",
          table: reference.table, column: column)
      }
      let found = references.first {
        $0.child == child && $0.parentName == reference.parent && $0.columns == reference.columns
      }
      guard let found, !reference.columns.isEmpty else { continue }
      let parent = found.parent.map { tables[$0].definition }
      guard let parent, found.parentColumns.allSatisfy({ parent.column(named: $0) != nil }) else {
        if scope.excludedTables.contains(reference.parent) { continue }
        throw ReplicationError.invalidScope(
          "the scope declares a reference from table \"\(reference.table)\" to columns that table \"\(reference.parent)\" does not have",
          table: reference.table)
      }
    }
    for table in tables {
      guard let shared = table.shared else { continue }
      for parent in shared.parents {
        guard let place = places[parent], tables[place].shared != nil else {
          throw ReplicationError.invalidScope(
            "rows of table \"\(shared.name)\" are shared as children of table \"\(parent)\", of which the scope chooses none",
            table: shared.name)
        }
        guard references.contains(where: { $0.child == places[shared.name] && $0.parent == place }) else {
          throw ReplicationError.invalidScope(
            "no foreign key of table \"\(shared.name)\" refers to table \"\(parent)\"; declare the reference in the scope",
            table: shared.name)
        }
      }
    }
  }

  /// Gathers rows only if other rows depend on them.
  private mutating func chooseRows() {
    for place in tables.indices where tables[place].shared?.isWhole == true { tables[place].rows = .all }
    for place in tables.indices where tables[place].rows == .gathered {
      guard let shared = tables[place].shared, shared.parents.isEmpty else { continue }
      let isReferredTo = references.contains { $0.parent == place }
      let bringsOthers = references.contains { reference in
        reference.child == place && reference.parent.map { tables[$0].rows != .all } ?? false
      }
      if !isReferredTo, !bringsOthers { tables[place].rows = .condition }
    }
  }
}

extension SharedTable {
  /// The columns of a table that are left out.
  func omittedColumns(of table: TableDefinition) -> [String] {
    guard let columns else { return omittedColumns }
    let kept = columns + rewrittenColumns.keys + table.primaryKey.map { table.columns[$0].name }
    return (table.columns.map(\.name) + table.generated.map(\.name)).filter { name in
      !kept.contains { ASCIIName.matches($0, name) }
    }
  }

  /// The table with a list of omitted columns, also if the scope lists the shared ones.
  ///
  /// - Throws: `ReplicationError` with `invalidScope`.
  fileprivate func resolved(for table: TableDefinition) throws -> SharedTable {
    if let column = match.first(where: { table.column(named: $0) == nil }) {
      throw ReplicationError.invalidScope(
        "the scope matches rows by column \"\(name).\(column)\", which does not exist", table: name, column: column)
    }
    guard let columns else { return self }
    guard omittedColumns.isEmpty else {
      throw ReplicationError.invalidScope(
        "the scope names both columns of table \"\(name)\" that are shared and columns that are left out", table: name)
    }
    let known = table.columns.map(\.name) + table.generated.map(\.name)
    if let column = columns.first(where: { name in !known.contains { ASCIIName.matches($0, name) } }) {
      throw ReplicationError.invalidScope(
        "the scope shares column \"\(name).\(column)\", which does not exist", table: name, column: column)
    }
    var resolved = self
    resolved.omittedColumns = omittedColumns(of: table)
    resolved.columns = nil
    return resolved
  }

  /// True if all rows are shared.
  var isWhole: Bool { condition == nil && parents.isEmpty }

  /// True if recipients do not get the value of a column.
  func hides(_ column: String) -> Bool {
    omittedColumns.contains { ASCIIName.matches($0, column) }
      || rewrittenColumns.keys.contains { ASCIIName.matches($0, column) }
  }

  /// The rows and columns of the table that are compared.
  ///
  /// - Parameters:
  ///   - condition: An SQL condition for the rows; nil for all rows.
  ///   - parameters: The values of its parameters.
  func selection(where condition: String?, _ parameters: [String: ChangesetValue] = [:]) -> RowSelection {
    RowSelection(where: condition, parameters, omitting: omittedColumns, rewriting: rewrittenColumns)
  }
}
