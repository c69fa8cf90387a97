import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// The plan for applying one diff to this database. It is made from admitted changes, and valid for one transaction.
///
/// Plan and apply in the same transaction, because the plan refers to the schema that was read.
package struct ApplyPlan {
  let admitted: AdmittedChanges
  let settings: ApplySettings
  /// The plan for the schema; empty if the author's schema is adopted first.
  let schema: SchemaPlan
  /// The steps to the author's schema, if it is adopted and differs from the local one.
  private let adoption: SchemaAdoption?
  private let session: ApplySession
  /// True if the session is for this plan alone, which begins and ends it.
  private let ownsSession: Bool

  var incoming: IncomingChanges { admitted.changes }

  /// The steps that make the schema fit.
  package var steps: [SchemaStep] { schema.steps }
  /// What becomes of every table and column that is not the same on both sides.
  package var notes: [SchemaNote] { (adoption?.notes ?? []) + schema.notes }
  /// True if the schema will change.
  var changesSchema: Bool { adoptsSchema || !schema.steps.isEmpty }
  /// True if it becomes the author's.
  var adoptsSchema: Bool { adoption != nil }

  /// Plans how to apply changes.
  ///
  /// - Parameters:
  ///   - admitted: The changes.
  ///   - settings: How to apply.
  ///   - session: The session of a connection with an open transaction.
  ///   - ownsSession: True if the session is for this plan alone, which begins and ends it then.
  /// - Throws: `ReplicationError` when the diff cannot or may not be applied, `SQLiteError` when the schema cannot be read,
  ///   `ChangesetError` when the changes are damaged. Nothing has been changed.
  init(_ admitted: AdmittedChanges, settings: ApplySettings, session: ApplySession, ownsSession: Bool = false) throws {
    self.admitted = admitted
    self.settings = settings
    self.session = session
    self.ownsSession = ownsSession
    adoption =
      if settings.schema == .adopt, let author = admitted.changes.author {
        try SchemaAdoption(
          of: Self.withTables(author, of: admitted.changes),
          renames: session.renames(of: admitted.changes.key.sender, and: admitted.changes.renames),
          local: session.schema())
      } else { nil }
    // Some statements change a schema without reading the rows. A merge has looked at the database itself.
    if adoption != nil, admitted.changes.key.sender != LedgerKey.mergeSender {
      try session.connection.requireUndamagedPages()
    }
    // Once the schema is the author's, it is seen how the changes fit it.
    schema = try adoption == nil ? Self.match(admitted.changes, settings, session) : SchemaPlan()
  }

  /// The author's schema, unless it has no tables, like that of an empty file.
  private static func withTables(_ author: AuthorSchema, of changes: IncomingChanges) throws -> AuthorSchema {
    // A merge has looked at both files itself.
    guard changes.key.sender != LedgerKey.mergeSender, !author.statements.contains(where: { $0.kind == .table }),
      let dropped = author.replacedTables.first
    else { return author }
    throw ReplicationError(
      .refusedDefinition,
      "the author's database has no tables any more, as an empty file has none: all tables here would be dropped",
      table: dropped.text)
  }

  /// The matches between the changes and the present schema.
  private static func match(
    _ incoming: IncomingChanges, _ settings: ApplySettings, _ session: ApplySession
  ) throws -> SchemaPlan {
    let mode = settings.schema == .adopt ? .additive : settings.schema
    let renames = try session.renames(of: incoming.key.sender, and: incoming.renames)
    let schema: SchemaPlan
    if let definitions = incoming.definitions {
      // Of a merge, either side may have given a table another key.
      let replaced =
        incoming.key.sender == LedgerKey.mergeSender
        ? Set(definitions.map { TableName($0.name) }) : incoming.author?.replacedTables ?? []
      schema = try session.plan(for: definitions, mode: mode, renames: renames, replaced: replaced)
    } else {
      schema = try SchemaPlan(positional: incoming.feed.summary().tables.map(\.table), local: session.schema())
    }
    // Tables of changes that still arrive are checked as they come, unless all changes are needed to plan.
    let hasChecks = schema.matches.values.contains { !$0.checkedValues.isEmpty }
    guard incoming.feed.isAllThere || hasChecks || !schema.held.isEmpty else { return schema }
    let summary = try incoming.feed.summary()
    for table in summary.tables { try incoming.requireDefinition(of: table.table) }
    return try ValueCompatibilityCheck(schema: schema, mode: mode, renames: renames, session: session)
      .run(incoming, summary)
  }

  /// Carries the plan out inside a transaction that the application has open on its own connection.
  ///
  /// When this throws, everything is unchanged: rows, schema, ledger, and the connection's settings. A transaction of
  /// the application stays open with its own work, and can go on. There is one exception. When the disk is full or
  /// fails, SQLite can roll back the whole transaction
  /// (<https://sqlite.org/lang_transaction.html#response_to_errors_within_a_transaction>); a trigger can, too. The
  /// application's own work is then lost, and the error has the code `transactionLost`.
  ///
  /// It takes a savepoint, for which SQLite copies each changed page. The owner of the transaction needs none: see
  /// ``apply(in:)``.
  ///
  /// - Returns: The result.
  /// - Throws: `ReplicationError` with `conflict` under the policy `abort`, with `transactionLost` as said above; `SQLiteError`
  ///   when the database fails; what the resolver or `progress` throws.
  package consuming func apply() throws -> ApplyResult {
    let session = session
    guard session.connection.isInTransaction else {
      throw SQLiteError(code: 21, message: "apply needs an open transaction", path: session.connection.path)
    }
    let savepoint = try SQLiteTransaction(on: session.connection)
    let result: ApplyResult
    do {
      result = try apply(in: savepoint)
    } catch {
      let session = session
      guard session.connection.isInTransaction else { throw ReplicationError.transactionLost(error) }
      throw error
    }
    try savepoint.commit()
    return result
  }

  /// Carries the plan out inside a transaction, or savepoint, of the caller's, which takes everything back on failure.
  ///
  /// Triggers are off meanwhile, unless the settings turn them on, and are restored afterwards, whatever happens; the
  /// same holds for the deferral of foreign keys.
  ///
  /// - Parameter transaction: A transaction of the plan's connection in which nothing else has been written. Commit it
  ///   when this returns, and roll it back when this throws. It begins again if rows refer to left-out rows.
  /// - Returns: The result.
  /// - Throws: `ReplicationError` with `conflict` under the policy `abort`; `SQLiteError` when the database fails; what the
  ///   resolver or `progress` throws.
  package consuming func apply(in transaction: borrowing SQLiteTransaction) throws -> ApplyResult {
    let mark = try session.mark()
    do {
      guard ownsSession else { return try carryOut(in: transaction, since: mark) }
      return try session.whileReady { try carryOut(in: transaction, since: mark) }
    } catch {
      // The cached schema and statements may refer to a schema that is rolled back.
      session.rollBack(to: mark)
      throw error
    }
  }

  private func carryOut(
    in transaction: borrowing SQLiteTransaction, since mark: ApplySession.Mark
  ) throws -> ApplyResult {
    let effects = settings.observer?.mark ?? 0
    var refused: RefusedRows?
    while true {
      switch try carryOut(knowing: refused) {
      case .applied(let result): return result
      case .refersToRefused(let found):
        refused = found
        try transaction.restart()
        session.rollBack(to: mark)
        settings.observer?.rewind(to: effects)
      }
    }
  }

  /// Carries the plan out once, inside a transaction in which other things have been done, too. It must be rolled back, and with
  /// it the session, unless the changes are applied.
  ///
  /// - Throws: As ``apply(in:)``.
  func carryOutOnce() throws -> ApplyEnd { try carryOut(knowing: nil) }

  private func carryOut(knowing refused: RefusedRows?) throws -> ApplyEnd {
    try session.requireLedger()
    var schema = schema
    var adopted: [String] = []
    let run = adoption.map { AdoptionRun($0, on: session.connection) }
    if let run {
      adopted = try run.begin()
      schema = try Self.match(incoming, settings, session)
    }
    for step in schema.steps { try session.carryOut(step) }
    if session.isRehearsal { try session.requireStatementRollback() }
    try session.requireClocks(for: schema.matches, settings.policies, of: incoming)
    try session.keepRenames(of: incoming, at: settings.time)
    // Held parts of earlier diffs come first, because the schema may have a place for them now.
    let released = try HeldRelease(settings, session).run()
    let execution = ApplyExecution(
      admitted: admitted, schema: schema, settings: settings, session: session, hasAdoptedSchema: adoptsSchema)
    let end = try execution.run(knowing: refused)
    guard case .applied(var result) = end else { return end }
    if let run, let adoption {
      result.warnings += try run.finish()
      result.changedTables += adoption.changedTables.map(\.text).filter { !result.changedTables.contains($0) }
    }
    result.schemaChanges = adopted + schema.steps.map(\.description)
    result.released = released
    return .applied(result)
  }
}
