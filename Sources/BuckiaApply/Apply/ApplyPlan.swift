import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Changes that have been verified and may be planned: what a diff file or a raw changeset comes down to.
package struct IncomingChanges {
  /// What the ledger knows them by.
  package let key: LedgerKey
  /// The name of the file, without its folder.
  package let file: String
  /// The definitions of their tables; nil for a raw changeset, whose columns go by position.
  package let definitions: [TableDefinition]?
  /// Columns that their author has renamed.
  package let renames: [ColumnRename]
  /// The changes.
  package let changeset: ChangesetSpool
  /// How far the changes are there and checked.
  package let feed: ChangesetFeed
  /// Where each table stands among the definitions.
  private let places: [TableName: Int]

  /// Says that the changes have been verified: digests, structure and sender.
  ///
  /// - Parameter summary: What the walk that has checked the changes found in these very bytes.
  package init(
    key: LedgerKey, file: String, definitions: [TableDefinition]?, renames: [ColumnRename] = [],
    changeset: ChangesetSpool, summary: ChangesetSummary
  ) {
    self.init(
      key: key, file: file, definitions: definitions, renames: renames, changeset: changeset,
      feed: ChangesetFeed(summary))
  }

  /// Speaks of changes that are still being verified by another thread.
  ///
  /// Only for whoever owns the transaction and rolls all of it back when applying throws what the feed has failed with.
  package init(
    key: LedgerKey, file: String, definitions: [TableDefinition]?, renames: [ColumnRename] = [],
    changeset: ChangesetSpool, feed: ChangesetFeed
  ) {
    self.key = key
    self.file = file
    self.definitions = definitions
    self.renames = renames
    self.changeset = changeset
    self.feed = feed
    places = Dictionary((definitions ?? []).enumerated().map { (TableName($1.name), $0) }) { first, _ in first }
  }

  /// The definition of a table; nil when there is none.
  func definition(of name: TableName) -> TableDefinition? {
    guard let definitions, let place = places[name] else { return nil }
    return definitions[place]
  }

  /// Checks the structure of changes whose digest and sender have been verified.
  ///
  /// - Throws: `ChangesetError` when they are damaged, `ChangesetSpool.Failure` when the spool cannot be read.
  package init(key: LedgerKey, file: String, definitions: [TableDefinition]?, changeset: ChangesetSpool) throws {
    self.init(
      key: key, file: file, definitions: definitions, changeset: changeset,
      summary: try changeset.withBytes { try ChangesetSummary.of($0, releasing: changeset) })
  }
}

/// How to apply.
package struct ApplySettings {
  /// What to do about conflicts.
  package var policy: ConflictPolicy
  /// Is asked about each conflict, before the policy.
  package var resolver: ConflictResolver?
  /// How far the schema may change.
  package var schema: SchemaMode
  /// Whether the local triggers fire. Off, because the changes already hold what the author's triggers did; full-text and
  /// R-tree indexes that they keep are kept all the same.
  package var firesTriggers: Bool
  /// Whether both versions of each conflict are written down. If not, only their number is, in the ledger: the resolver
  /// and the policy decide, and what they decide against is gone.
  package var recordsConflicts: Bool
  /// The time for the ledger, in milliseconds since 1970.
  package var time: Int64
  /// Is told how many changes have been applied, now and then. May throw to stop; everything is then rolled back.
  package var progress: (Int) throws -> Void

  /// Makes settings.
  package init(
    policy: ConflictPolicy = .keepLocal, resolver: ConflictResolver? = nil, schema: SchemaMode = .additive,
    firesTriggers: Bool = false, recordsConflicts: Bool = true, time: Int64,
    progress: @escaping (Int) throws -> Void = { _ in }
  ) {
    self.policy = policy
    self.resolver = resolver
    self.schema = schema
    self.firesTriggers = firesTriggers
    self.recordsConflicts = recordsConflicts
    self.time = time
    self.progress = progress
  }
}

/// What applying did.
package struct ApplyResult: Sendable {
  /// What of the diff is kept until there is a place for it.
  package internal(set) var held: [HeldSummary] = []
  /// What had been kept of earlier diffs and has been applied now.
  package internal(set) var released: [ReleasedDiff] = []
  /// The numbers.
  package let counts: ApplyCounts
  /// The tables that changed.
  package let changedTables: [String]
  /// What was created and added.
  package let schemaChanges: [String]
  /// Remarks: indexes that could not be kept up to date.
  package internal(set) var warnings: [String]
}

/// What is kept of one table of a diff.
package struct HeldSummary: Sendable {
  /// The table.
  package let table: String
  /// The columns; empty where it is the whole table.
  package let columns: [String]
  /// How many changes.
  package let changes: Int
  /// Why, for people.
  package let reason: String
}

/// What will be done to this database by one diff: made from verified changes, good for one transaction.
///
/// Plan and apply in one transaction; the plan speaks of the schema as it was read.
package struct ApplyPlan {
  let incoming: IncomingChanges
  let settings: ApplySettings
  let schema: SchemaPlan
  let session: ApplySession?
  /// The kept part of an earlier diff that this is, if it is one.
  let resumed: HeldPart?

  /// The steps that make the schema fit.
  package var steps: [SchemaStep] { schema.steps }
  /// What becomes of every table and column that is not the same on both sides.
  package var notes: [SchemaNote] { schema.notes }

  /// Plans how to apply changes.
  ///
  /// - Parameters:
  ///   - incoming: The verified changes.
  ///   - connection: The database, with a transaction open.
  ///   - settings: How to apply.
  ///   - session: What is kept from one diff to the next; nil to begin afresh.
  /// - Throws: `EngineError` when the diff cannot or may not be applied, `SQLiteError` when the schema cannot be read,
  ///   `ChangesetError` when the changes are damaged. Nothing has been changed.
  package init(
    _ incoming: IncomingChanges, on connection: borrowing SQLiteConnection, settings: ApplySettings,
    session: ApplySession? = nil
  ) throws {
    self.incoming = incoming
    self.settings = settings
    self.session = session
    resumed = nil
    let schema: SchemaPlan
    let isCached = session != nil && incoming.renames.isEmpty
    let renames =
      isCached ? ColumnRenames() : ColumnRenames(try KnownRenames.all(on: connection) + incoming.renames)
    if let definitions = incoming.definitions {
      if isCached, let session {
        schema = try session.plan(for: definitions, mode: settings.schema, on: connection)
      } else {
        schema = try SchemaPlan(
          definitions: definitions, mode: settings.schema, renames: renames, local: SchemaReader(connection),
          on: connection)
      }
    } else if let session {
      let tables = try incoming.feed.summary().tables.map(\.table)
      schema = try SchemaPlan(positional: tables, local: session.schema(on: connection).schema, on: connection)
    } else {
      let tables = try incoming.feed.summary().tables.map(\.table)
      schema = try SchemaPlan(positional: tables, local: SchemaReader(connection), on: connection)
    }
    // What is still arriving is looked at when it is there; all of it at once where each value has to be, or some are kept.
    let hasChecks = schema.matches.values.contains { !$0.checkedValues.isEmpty }
    guard incoming.feed.isAllThere || hasChecks || !schema.held.isEmpty else {
      self.schema = schema
      return
    }
    let summary = try incoming.feed.summary()
    for table in summary.tables { try Self.requireDefinition(of: table.table, among: incoming) }
    self.schema = try AlteredValues(schema, settings.schema, renames)
      .settled(incoming, summary, on: connection)
  }

  /// Plans how to apply what was kept of an earlier diff, in the mode `hold`.
  init(
    resuming part: HeldPart, _ incoming: IncomingChanges, schema: SchemaPlan, settings: ApplySettings,
    session: ApplySession
  ) {
    self.incoming = incoming
    self.settings = settings
    self.schema = schema
    self.session = session
    resumed = part
  }

  /// Refuses changes of a table that is not defined, or is defined otherwise.
  static func requireDefinition(of table: ChangesetTable, among incoming: IncomingChanges) throws {
    guard incoming.definitions != nil else { return }
    guard let definition = incoming.definition(of: TableName(table.name)) else {
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
}
