import SQLiteConnections

extension RewrittenChanges {
  /// The changes of a file, rebased onto those of others: the changes that remain after the others have been applied.
  ///
  /// All files must have been made from the same state. Rows are merged by column; if two changes contradict each
  /// other, the policy decides, and ``rebase`` lists the conflict. Applying the others to that state, and then the
  /// result, meets no conflict.
  ///
  /// ```swift
  /// let options = RebaseOptions(policy: .takeIncoming, remapsKeys: true)
  /// let changes = try RewrittenChanges(rebasing: "mine.bdiff", onto: ["theirs.bdiff"], options: options)
  /// for conflict in changes.rebase?.conflicts ?? [] { print(conflict.table, conflict.kind.rawValue) }
  /// ```
  ///
  /// - Parameters:
  ///   - local: The file with the changes to rebase.
  ///   - incoming: The files that are applied before it, in their order.
  ///   - options: The policy, and the definitions of the tables.
  ///   - poll: Called every few thousand changes. May throw to stop.
  /// - Throws: `BuckiaError` when a file is missing, encrypted or not entirely in order, when one holds a patchset, which has no old values,
  ///   when two files describe one table differently, or the database with the definitions cannot be read; whatever `poll` throws.
  public init(
    rebasing local: String, onto incoming: [String], options: RebaseOptions = RebaseOptions(),
    poll: @escaping () throws -> Void = {}
  ) throws {
    try self.init(rebasing: .path(local), onto: incoming.map { .path($0) }, options: options, poll: poll)
  }

  /// The same for files, and bytes that came without one.
  package init(
    rebasing local: InboundSource, onto incoming: [InboundSource], options: RebaseOptions, progress: Progress? = nil,
    poll: @escaping () throws -> Void = {}
  ) throws {
    var outcome: (report: RebaseReport, warnings: [Warning])?
    try self.init([local] + incoming, keepingSchema: true, progress, poll) { inputs, output, poll in
      let definitions = try RebaseDefinitions(of: inputs, database: options.schema)
      let tables = definitions.rebaseTables
      let others = output.makeEmpty()
      try Changesets.concatenate(inputs.dropFirst().map(\.changeset), into: others, poll: poll)
      var mine = inputs[0].changeset
      var remapped: [RemappedKey] = []
      if options.remapsKeys {
        let renumbered = output.makeEmpty()
        remapped = try Changesets.remapKeys(
          of: mine, inUseBy: others, definitions: tables, into: renumbered, poll: poll)
        mine = renumbered
      }
      let conflicts = try Changesets.rebase(
        mine, onto: others, options.policy, definitions: tables, into: output, poll: poll)
      outcome = (
        RebaseReport(options, conflicts, remapped, definitions),
        definitions.warnings(remapped: remapped, remapsKeys: options.remapsKeys)
      )
      let summary = try ChangesetSummary.of(output, poll: poll)
      return (summary.tables.map { ChangesetReport.Table($0) }, inKeyOrder: [])
    }
    rebase = outcome?.report
    warnings += outcome?.warnings ?? []
  }
}

/// How changes are rebased.
public struct RebaseOptions: Sendable {
  /// The policy for local and incoming changes of a row that contradict each other.
  public var policy: RebasePolicy
  /// True if a local row gets a new key when the incoming changes insert another row with its integer key. Rows of the
  /// local changes that refer to it by declared foreign keys follow.
  public var remapsKeys: Bool
  /// A database with the tables of the changes, if the files do not bring their definitions. It is only read: for the definitions, and for
  /// the keys in use.
  public var schema: String?

  /// Creates options.
  public init(policy: RebasePolicy = .keepLocal, remapsKeys: Bool = false, schema: String? = nil) {
    self.policy = policy
    self.remapsKeys = remapsKeys
    self.schema = schema
  }
}

/// The result of rebasing: the rows on which local and incoming changes do not agree, and the rows that got new keys.
public struct RebaseReport: Hashable, Codable, Sendable {
  /// A row on which local and incoming changes do not agree, and the winner.
  public struct Conflict: Hashable, Codable, Sendable {
    /// The table.
    public let table: String
    /// The columns of the row's key and their values.
    public let key: [ConflictRecord.Cell]
    /// The kind of the disagreement.
    public let kind: RebaseConflict.Kind
    /// The columns that it is about; empty for the whole row.
    public let columns: [String]
    /// The winner.
    public let winner: RebasePolicy
  }

  /// The policy for changes of a row that contradict each other.
  public let policy: RebasePolicy
  /// True if local rows got new keys where the incoming changes insert other rows with their keys.
  public let remapsKeys: Bool
  /// The number of conflicts.
  public let conflictCount: Int
  /// The first ``RebaseConflicts/listLimit`` conflicts.
  public let conflicts: [Conflict]
  /// The rows with new keys.
  public let remappedKeys: [RemappedKey]

  init(
    _ options: RebaseOptions, _ conflicts: RebaseConflicts, _ remappedKeys: [RemappedKey],
    _ definitions: RebaseDefinitions
  ) {
    policy = options.policy
    remapsKeys = options.remapsKeys
    self.remappedKeys = remappedKeys
    conflictCount = conflicts.count
    self.conflicts = conflicts.listed.map { conflict in
      let names = definitions.columns(of: conflict.table)
      func name(_ column: Int) -> String {
        names.flatMap { $0.indices.contains(column) ? $0[column] : nil } ?? "column \(column + 1)"
      }
      return Conflict(
        table: conflict.table,
        key: zip(definitions.keyIndexes(of: conflict.table), conflict.key).map { ConflictRecord.Cell(name($0), $1) },
        kind: conflict.kind, columns: conflict.columns.map(name), winner: conflict.winner)
    }
  }
}

/// The definitions for rebasing: from the files, otherwise from a database.
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
      guard let local = try schema.table(named: name) else { continue }
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

  /// The definitions in the form for rebasing.
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

  /// The columns of a table by name; numbers from 1 without a definition.
  func columns(of table: String) -> [String]? { definitions[TableName(table)]?.changesetColumns }

  /// The indexes of a table's key columns, in column order.
  func keyIndexes(of table: String) -> [Int] {
    guard let table = tables.first(where: { TableName($0.name) == TableName(table) }) else { return [] }
    return table.keyFlags.indices.filter { table.isKey($0) }
  }

  /// Warnings.
  func warnings(remapped: [RemappedKey], remapsKeys: Bool) -> [Warning] {
    var warnings = tables.filter { definitions[TableName($0.name)] == nil }
      .map { Warning(.rebasedWithoutDefinition, $0.name) }
    guard remapsKeys else { return warnings }
    let names = Set(remapped.map { TableName($0.table) })
    for table in tables where names.contains(TableName(table.name)) {
      warnings.append(Warning(.undeclaredReferences, table.name))
      if greatestKeys[TableName(table.name)] == nil { warnings.append(Warning(.newKeysUnchecked, table.name)) }
    }
    return warnings
  }
}

extension TableDefinition {
  /// True if a header is one of this table.
  fileprivate func describes(_ table: ChangesetTable) -> Bool {
    keyFlags.elementsEqual(table.keyFlags) { ($0 != 0) == ($1 != 0) }
  }

  /// The number of columns in a changeset before those of the table.
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
