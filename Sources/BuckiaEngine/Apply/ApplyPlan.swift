import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Changes that have been verified and may be planned: what a diff file or a raw changeset comes down to.
public struct IncomingChanges {
  /// What the ledger knows them by.
  public let key: LedgerKey
  /// The name of the file, without its folder.
  public let file: String
  /// The definitions of their tables; nil for a raw changeset, whose columns go by position.
  public let definitions: [TableDefinition]?
  /// The changes.
  public let changeset: ChangesetSpool

  /// Says that the changes have been verified: digests, structure and sender.
  public init(key: LedgerKey, file: String, definitions: [TableDefinition]?, changeset: ChangesetSpool) {
    self.key = key
    self.file = file
    self.definitions = definitions
    self.changeset = changeset
  }
}

/// How to apply.
public struct ApplySettings {
  /// What to do about conflicts.
  public var policy: ConflictPolicy
  /// Is asked about each conflict, before the policy.
  public var resolver: ConflictResolver?
  /// How far the schema may change.
  public var schema: SchemaMode
  /// Whether the local triggers fire. Off, because the changes already hold what the author's triggers did; full-text and
  /// R-tree indexes that they keep are kept all the same.
  public var firesTriggers: Bool
  /// The time for the ledger, in milliseconds since 1970.
  public var time: Int64
  /// Is told how many changes have been applied, now and then. May throw to stop; everything is then rolled back.
  public var progress: (Int) throws -> Void

  /// Makes settings.
  public init(
    policy: ConflictPolicy = .keepLocal, resolver: ConflictResolver? = nil, schema: SchemaMode = .additive,
    firesTriggers: Bool = false, time: Int64, progress: @escaping (Int) throws -> Void = { _ in }
  ) {
    self.policy = policy
    self.resolver = resolver
    self.schema = schema
    self.firesTriggers = firesTriggers
    self.time = time
    self.progress = progress
  }
}

/// Numbers of what was done.
public struct ApplyCounts: Equatable, Sendable {
  /// Rows inserted.
  public var inserted = 0
  /// Rows updated.
  public var updated = 0
  /// Rows deleted.
  public var deleted = 0
  /// Conflicts met.
  public var conflicts = 0
  /// Changes not written because of a conflict.
  public var omitted = 0
  /// Changes that were there already: the local row was equal, or gone.
  public var unchanged = 0
}

/// What applying did.
public struct ApplyResult: Sendable {
  /// The numbers.
  public let counts: ApplyCounts
  /// The tables that changed.
  public let changedTables: [String]
  /// What was created and added.
  public let schemaChanges: [String]
  /// Remarks: indexes that could not be kept up to date.
  public internal(set) var warnings: [String]
}

/// What will be done to this database by one diff: made from verified changes, good for one transaction.
///
/// Plan and apply in one transaction; the plan speaks of the schema as it was read.
public struct ApplyPlan {
  let incoming: IncomingChanges
  let settings: ApplySettings
  let schema: SchemaPlan

  /// The steps that make the schema fit.
  public var steps: [SchemaStep] { schema.steps }

  /// Plans how to apply changes.
  ///
  /// - Parameters:
  ///   - incoming: The verified changes.
  ///   - connection: The database, with a transaction open.
  ///   - settings: How to apply.
  /// - Throws: `EngineError` when the diff cannot or may not be applied, `SQLiteError` when the schema cannot be read,
  ///   `ChangesetError` when the changes are damaged. Nothing has been changed.
  public init(
    _ incoming: IncomingChanges, on connection: borrowing SQLiteConnection, settings: ApplySettings
  ) throws {
    self.incoming = incoming
    self.settings = settings
    let local = try SchemaReader(connection)
    let tables = try incoming.changeset.withBytes { bytes in try Self.tables(in: bytes) }
    if let definitions = incoming.definitions {
      let known = Dictionary(definitions.map { (TableName($0.name), $0) }) { first, _ in first }
      for table in tables {
        guard let definition = known[TableName(table.name)] else {
          throw EngineError(
            .missingTable, "the changes name table \"\(table.name)\", whose definition is not in the file",
            table: table.name)
        }
        guard zip(definition.keyFlags, table.keyFlags).allSatisfy({ ($0 != 0) == ($1 != 0) }),
          definition.keyFlags.count == table.columnCount
        else {
          throw EngineError(
            .columnsDiffer, "the changes and the definition of table \"\(table.name)\" contradict each other",
            table: table.name)
        }
      }
      schema = try SchemaPlan(definitions: definitions, mode: settings.schema, local: local, on: connection)
    } else {
      schema = try SchemaPlan(positional: tables, local: local, on: connection)
    }
    try incoming.changeset.withBytes { bytes in try requireUnalteredValues(in: bytes) }
  }

  private static func tables(in bytes: RawSpan) throws -> [ChangesetTable] {
    var reader = ChangesetReader()
    var tables: [ChangesetTable] = []
    var known: Set<TableName> = []
    while let change = try reader.next(in: bytes) {
      if change.startsTable, let table = reader.table, known.insert(TableName(table.name)).inserted {
        tables.append(table)
      }
    }
    return tables
  }

  /// Refuses the first value that its column here would store as something else.
  private func requireUnalteredValues(in bytes: RawSpan) throws {
    guard schema.matches.values.contains(where: { !$0.checkedValues.isEmpty }) else { return }
    var reader = ChangesetReader()
    var match: TableMatch?
    while let change = try reader.next(in: bytes) {
      if change.startsTable { match = reader.table.flatMap { schema.matches[TableName($0.name)] } }
      for check in match?.checkedValues ?? [] where change.operation != .delete {
        let value = reader.new[check.column]
        if TypeCompatibility.alters(value, in: bytes, affinity: check.affinity), let match {
          let column = match.local.changesetColumns[match.columns[check.column]]
          throw EngineError(
            .incompatibleType,
            "column \"\(match.local.name).\(column)\" has an incompatible type here (\(check.affinity.rawValue)): "
              + "it would alter incoming values",
            table: match.local.name, column: column)
        }
      }
    }
  }
}
