import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Undoes the effects of a diff on local rows.
///
/// The effects are inverted and applied like a diff: a column that was changed since keeps its value, and a row that
/// was changed since is a conflict. The undo has an entry of its own in the ledger, and can be undone, too.
package struct DiffUndo {
  /// The diff to undo.
  package let diff: AppliedDiff
  /// The effects of the diff, as one changeset.
  private let effects: TemporaryBuffer
  /// The tables of each part.
  private let parts: [[AppliedEffects.Table]]

  /// Reads the effects of a diff.
  ///
  /// - Parameter poll: Called for each piece of them; may throw to stop.
  /// - Throws: `ReplicationError` with `alreadyUndone`, or with `notKept` if the effects are no longer recorded;
  ///   `SQLiteError`, `LedgerError`.
  package init(
    of diff: AppliedDiff, polling poll: () throws -> Void, on connection: borrowing SQLiteConnection
  ) throws {
    self.diff = diff
    if try AppliedEffects.undo(of: diff.entry, on: connection) != nil {
      throw ReplicationError(.alreadyUndone, "\(diff.name) has been undone before")
    }
    var reader = EffectReader()
    let effects = TemporaryBuffer()
    var parts: [[AppliedEffects.Table]] = []
    let isKept = try reader.forEachPiece(of: diff.entry, on: connection) { piece in
      try poll()
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

  /// Undoes the diff.
  ///
  /// - Parameters:
  ///   - id: The id of the undo.
  ///   - digest: The digest of the undo in the ledger: that of its changes.
  ///   - settings: The settings for applying, with the policies for rows that were changed since.
  ///   - session: The session of the connection.
  ///   - transaction: The transaction of the undo, in which nothing else has been written. It must be rolled back when
  ///     this throws.
  /// - Returns: The result.
  /// - Throws: `ReplicationError` if the rows no longer fit the schema, and as ``ApplyPlan``.
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
    let plan = try ApplyPlan(ReceiverGate.admit(incoming, takingBack: diff), settings: settings, session: session)
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
  /// - Parameter diff: The name of the diff, for messages.
  /// - Throws: `ReplicationError` when the table has other columns now, or another key; `SQLiteError`.
  package func definition(in schema: SchemaReader, for diff: String) throws -> TableDefinition {
    guard let local = try schema.table(named: TableName(name)) else {
      throw ReplicationError(
        .missingTable, "\(diff) changed table \"\(name)\", which is not here any more", table: name)
    }
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
        throw ReplicationError(.keyDiffers, "table \"\(name)\" has got another primary key since \(diff)", table: name)
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

/// Values of earlier diffs that were undone after a later diff had replaced them. Undoing the later diff must not
/// restore them: the value before them comes back instead.
struct UndoneValues {
  /// A column of a row, identified by names and the values of the key.
  private struct Cell: Hashable {
    let table: TableName
    let key: [UInt8]
    let column: String
  }

  /// For each undone diff, the newest first: the values that it set, and the values before.
  private var replaced: [[Cell: (new: [UInt8], old: [UInt8])]] = []

  /// Collects such values.
  ///
  /// - Parameters:
  ///   - undone: The ledger entries of undone diffs, the newest first.
  ///   - changes: The changes that undo a later diff.
  ///   - tables: The columns of its tables.
  /// - Throws: `SQLiteError`; `LedgerError`, `ChangesetError` if the recorded effects are damaged.
  init(
    of undone: [Int64], for changes: [UInt8], _ tables: [AppliedEffects.Table],
    on connection: borrowing SQLiteConnection
  ) throws {
    var wanted: Set<Cell> = []
    try Self.forEachCell(of: changes, tables) { cell, _, new in if new != nil { wanted.insert(cell) } }
    var effects = EffectReader()
    for entry in undone {
      var values: [Cell: (new: [UInt8], old: [UInt8])] = [:]
      for part in try effects.parts(of: entry, on: connection) {
        try Self.forEachCell(of: part.changes, part.tables) { cell, old, new in
          guard let old, let new, wanted.contains(cell) else { return }
          // If a column was changed twice, the value before the first change counts.
          values[cell] = (new, values[cell]?.old ?? old)
        }
      }
      if !values.isEmpty { replaced.append(values) }
    }
  }

  /// The changes with such values replaced by the values before them.
  func replaced(in changes: [UInt8], _ tables: [AppliedEffects.Table]) throws -> [UInt8] {
    var writer = ChangesetWriter()
    try Self.forEachChange(of: changes, tables) { change, reader, columns, bytes in
      guard let table = reader.table else { return }
      if change.startsTable { writer.append(reader.headerRange, of: bytes) }
      guard change.operation != .delete else { return writer.append(change.range, of: bytes) }
      let key = Self.key(reader, columns, of: change, bytes)
      writer.beginChange(change.operation, isIndirect: change.isIndirect)
      if change.operation == .update { for value in reader.old { writer.append(value, of: bytes) } }
      for (place, value) in reader.new.enumerated() {
        guard value.isDefined, !table.isKey(place) else {
          writer.append(value, of: bytes)
          continue
        }
        let cell = Cell(table: TableName(table.name), key: key, column: columns[place])
        writer.append(encoded: earlier(than: Self.encoded(value, bytes), in: cell))
      }
    }
    return writer.bytes
  }

  private func earlier(than value: [UInt8], in cell: Cell) -> [UInt8] {
    replaced.reduce(value) { value, diff in
      guard let known = diff[cell], known.new == value else { return value }
      return known.old
    }
  }

  // MARK: Reading

  /// Calls `body` with the old and the new value of each column outside the key that has them.
  private static func forEachCell(
    of changes: [UInt8], _ tables: [AppliedEffects.Table], _ body: (Cell, _ old: [UInt8]?, _ new: [UInt8]?) -> Void
  ) throws {
    try forEachChange(of: changes, tables) { change, reader, columns, bytes in
      guard let table = reader.table else { return }
      let key = key(reader, columns, of: change, bytes)
      for place in columns.indices where !table.isKey(place) {
        let (old, new) = (reader.old[place], reader.new[place])
        guard old.isDefined || new.isDefined else { continue }
        body(
          Cell(table: TableName(table.name), key: key, column: columns[place]),
          old.isDefined ? encoded(old, bytes) : nil, new.isDefined ? encoded(new, bytes) : nil)
      }
    }
  }

  private static func forEachChange(
    of changes: [UInt8], _ tables: [AppliedEffects.Table],
    _ body: (Change, ChangesetReader, _ columns: [String], RawSpan) throws -> Void
  ) throws {
    var columns: [TableName: [String]] = [:]
    for table in tables { columns[TableName(table.name)] = table.columns.map { ASCIIName.folded($0) } }
    try changes.withRawSpan { bytes in
      var reader = ChangesetReader()
      while let change = try reader.next(in: bytes) {
        guard let table = reader.table, let names = columns[TableName(table.name)],
          names.count == table.columnCount
        else { continue }
        try body(change, reader, names, bytes)
      }
    }
  }

  /// The values of the key, in the order of the column names, because not all changesets have the order of the key.
  private static func key(
    _ reader: ChangesetReader, _ columns: [String], of change: Change, _ bytes: RawSpan
  ) -> [UInt8] {
    guard let table = reader.table else { return [] }
    let row = change.operation == .insert ? reader.new : reader.old
    let places = columns.indices.filter { table.isKey($0) }.sorted { columns[$0] < columns[$1] }
    return places.flatMap { encoded(row[$0], bytes) }
  }

  private static func encoded(_ value: ValueSlice, _ bytes: RawSpan) -> [UInt8] {
    bytes.extracting(value.encoded).withUnsafeBytes { Array($0) }
  }
}
