import BuckiaBytes
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Takes back what a diff did to the rows here.
///
/// Its effects are inverted and applied like a diff: a column that has been changed since keeps its value, and a row that has been
/// changed since is a conflict. So it has an entry of its own in the ledger, and can be taken back, too.
package struct DiffUndo {
  /// The diff that is taken back.
  package let diff: AppliedDiff
  /// What it did, as one changeset.
  private let effects: TemporaryBuffer
  /// The tables of each part of it.
  private let parts: [[AppliedEffects.Table]]

  /// Looks up what a diff did.
  ///
  /// - Throws: `ReplicationError` with `alreadyUndone`, or with `notKept` when it is not known any more what the diff did;
  ///   `SQLiteError`, `LedgerError`.
  package init(of diff: AppliedDiff, on connection: borrowing SQLiteConnection) throws {
    self.diff = diff
    if try AppliedEffects.undo(of: diff.entry, on: connection) != nil {
      throw ReplicationError(.alreadyUndone, "\(diff.name) has been undone before")
    }
    var reader = EffectReader()
    let effects = TemporaryBuffer()
    var parts: [[AppliedEffects.Table]] = []
    let isKept = try reader.forEachPiece(of: diff.entry, on: connection) { piece in
      try effects.write(piece.changes)
      if let tables = piece.tables { parts.append(tables) }
    }
    self.effects = effects
    self.parts = parts
    guard isKept, !parts.isEmpty else {
      throw ReplicationError(
        .notKept,
        "what \(diff.name) did here is no longer on record: it was too large or too old to be kept, or changed the schema"
      )
    }
  }

  /// Takes the diff back.
  ///
  /// - Parameters:
  ///   - id: The id of the undo.
  ///   - digest: The digest by which the ledger knows it: of the changes that it makes.
  ///   - settings: How to apply: what to do about rows that have been changed since.
  ///   - session: That of the connection.
  ///   - transaction: The transaction of the undo, in which nothing else has been done. It must be rolled back when this throws.
  /// - Returns: What was done.
  /// - Throws: `ReplicationError` when the schema has changed since so that the rows do not fit it, and as ``ApplyPlan``.
  package func run(
    as id: KSUID, digest: (TemporaryBuffer) throws -> [UInt8], settings: ApplySettings, session: ApplySession,
    in transaction: borrowing SQLiteTransaction
  ) throws -> ApplyResult {
    let tables = try tables()
    var changes = TemporaryBuffer()
    try Changesets.invert(effects, into: changes, poll: { try settings.progress(0) })
    let undone = try AppliedEffects.undone(before: diff.entry, on: session.connection)
    if !undone.isEmpty {
      let bytes = try changes.allBytes()
      let values = try UndoneValues(of: undone, for: bytes, tables, on: session.connection)
      changes = TemporaryBuffer(try values.replaced(in: bytes, tables))
    }
    let schema = try session.schema()
    let incoming = try IncomingChanges(
      key: LedgerKey(sender: LedgerEntries.ownSender, id: id, digest: digest(changes), isRaw: false),
      file: LedgerEntry.undoPrefix + diff.name,
      definitions: tables.map { try $0.definition(in: schema, for: diff.name) },
      changeset: changes)
    let entry = try LedgerEntries.nextNumber(on: session.connection)
    let again = try AppliedEffects.undone(by: diff.entry, on: session.connection)
    let plan = try ApplyPlan(
      ReceiverGate.admit(incoming, takingBack: diff), settings: settings, session: session)
    let result = try plan.apply(in: transaction)
    try session.effects.write(on: session.connection)
    try AppliedEffects.recordUndo(entry, of: diff.entry, on: session.connection)
    try diff.note("undone by \(id)", on: session.connection)
    if let again { try again.note(nil, on: session.connection) }
    return result
  }

  /// The tables of all parts.
  private func tables() throws -> [AppliedEffects.Table] {
    var tables: [TableName: AppliedEffects.Table] = [:]
    var ordered: [AppliedEffects.Table] = []
    for part in parts {
      for table in part {
        let known = tables.updateValue(table, forKey: TableName(table.name))
        guard known == nil || known == table else {
          throw ReplicationError(
            .columnsDiffer,
            "\(diff.name) was applied in parts, before and after table \"\(table.name)\" got other columns, and cannot be undone as a whole",
            table: table.name)
        }
        if known == nil { ordered.append(table) }
      }
    }
    return ordered
  }
}

extension AppliedEffects.Table {
  /// The local table, with the columns that the changes have.
  ///
  /// - Parameter diff: The name of the diff that has made them, for messages.
  /// - Throws: `ReplicationError` when the table has other columns now, or another key; `SQLiteError`.
  package func definition(in schema: SchemaReader, for diff: String) throws -> TableDefinition {
    guard let entry = schema.entry(named: TableName(name)), entry.kind == .table else {
      throw ReplicationError(
        .missingTable, "\(diff) changed table \"\(name)\", which is not here any more", table: name)
    }
    let local = try schema.definition(of: entry)
    let names = local.isKeyedByRowID ? Array(columns.dropFirst()) : columns
    let places = try names.map { column in
      guard let place = local.column(named: column) else {
        throw ReplicationError(
          .columnsDiffer, "\(diff) changed \"\(name).\(column)\", and there is no such column any more",
          table: name, column: column)
      }
      return place
    }
    let key = try local.primaryKey.map { column in
      guard let place = places.firstIndex(of: column) else {
        throw ReplicationError(
          .keyDiffers, "table \"\(name)\" has got another primary key since \(diff)", table: name)
      }
      return place
    }
    var definition = TableDefinition(
      name: local.name, columns: places.map { local.columns[$0] }, primaryKey: key)
    definition.isWithoutRowID = local.isWithoutRowID
    definition.isStrict = local.isStrict
    definition.module = local.module
    return definition
  }
}
