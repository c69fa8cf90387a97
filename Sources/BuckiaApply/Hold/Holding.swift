import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// What is held while one diff is applied, and what becomes of what was held before.
struct Holding {
  /// The changes that are known here.
  let known: AdmittedChanges
  /// The keys of tables some of whose columns are kept: what a conflict leaves out is not kept either.
  let keys: [TableName: RowKey]

  private let entry: Int64
  private let plan: SchemaPlan
  private let session: ApplySession
  private let store: HeldParts
  /// Tables of which earlier diffs have something kept.
  private let earlier: Set<TableName>

  /// Keeps what is unknown of a diff.
  ///
  /// - Parameters:
  ///   - admitted: The diff's changes.
  ///   - plan: How they fit the local schema.
  ///   - resumed: The held part of an earlier diff that the changes are; nil for a new diff.
  ///   - entry: The diff's ledger entry.
  init(
    _ admitted: AdmittedChanges, _ plan: SchemaPlan, resuming resumed: HeldPart?, entry: Int64, in session: ApplySession
  ) throws {
    self.entry = entry
    self.plan = plan
    self.session = session
    store = HeldParts(of: entry, on: session.connection)
    // Of what is held of columns, nothing deletes a row.
    earlier = try resumed?.isWhole == false ? [] : session.heldTables()
    guard !plan.held.isEmpty || resumed != nil else {
      known = admitted
      keys = [:]
      return
    }
    var defaults: [Int: [UInt8]]?
    if let resumed, !resumed.isWhole { defaults = try Self.defaults(of: resumed, plan, on: session.connection) }
    var split = HoldingSplit(plan.held, into: store, resumingFrom: defaults, of: admitted.changes.changeset)
    known = admitted.replaced(by: try split.run(admitted.changes))
    var keys: [TableName: RowKey] = [:]
    for table in try known.changes.feed.summary().tables {
      let name = TableName(table.table.name)
      if plan.held[name] != nil { keys[name] = RowKey(of: table.table) }
    }
    self.keys = keys
  }

  /// What rows hold in columns that an upgrade has given them, as changeset bytes by column of the changeset: the default,
  /// where it is known.
  private static func defaults(
    of part: HeldPart, _ plan: SchemaPlan, on connection: borrowing SQLiteConnection
  ) throws -> [Int: [UInt8]] {
    guard let local = plan.matches[TableName(part.table)]?.local else { return [:] }
    let offset = part.definition.isKeyedByRowID ? 1 : 0
    var defaults: [Int: [UInt8]] = [:]
    for index in part.columns {
      guard let place = local.column(named: part.definition.columns[index].name) else { continue }
      let column = local.columns[place]
      if column.hasExpressionDefault || column.defaultValue?.isTimeDependent == true { continue }
      var writer = ChangesetWriter()
      let literal = try AddedColumnValue.literal(of: column, isStrict: local.isStrict)
      try connection.forEachRow(of: "SELECT \(literal)") { writer.append(column: 0, of: $0) }
      defaults[index + offset] = writer.bytes
    }
    return defaults
  }

  /// Forgets what is no longer wanted, once the known changes have been applied.
  ///
  /// - Returns: What is kept of this diff.
  func finish(after decider: ConflictDecider) throws -> [HeldSummary] {
    for omission in decider.omissions {
      for change in try store.remove(omission.key, of: omission.table) {
        try record(change, omission, with: decider)
      }
    }
    let shrunk = try earlier.isEmpty ? [] : forgetRowsThatAreGone()
    try HeldParts.removeEmpty(store.emptyParts.union(shrunk), on: session.connection)
    let held = store.held.filter { $0.changes > 0 }
    session.noteHeld(held.map { TableName($0.table.definition.name) })
    return held.map { table, changes in
      HeldSummary(
        table: table.definition.name,
        columns: table.isWhole ? [] : table.columns.map { table.definition.columns[$0].name },
        changes: changes, reason: table.reason)
    }
  }

  /// Writes down what a change that was left out says of unknown columns.
  private func record(_ change: [UInt8], _ omission: ConflictDecider.Omission, with decider: ConflictDecider) throws {
    guard let held = plan.held[omission.table] else { return }
    let definition = held.definition
    let table = ChangesetTable(name: definition.name, keyFlags: definition.keyFlags)
    let offset = definition.isKeyedByRowID ? 1 : 0
    let columns = definition.keyIndexes.sorted() + held.columns.map { $0 + offset }
    var values = ChangesetWriter()
    change.withRawSpan { bytes in
      guard let place = ChangePlace(at: 0, in: bytes) else { return }
      let decoded = DecodedChange(of: table)
      decoded.read(place, in: bytes)
      for column in columns {
        values.append(table.isKey(column) ? decoded.row(column) : decoded.new(column), of: bytes)
      }
    }
    let names = definition.changesetColumns
    try decider.record(
      omission, columns: columns.map { names[$0] }, key: Set(definition.keyIndexes.indices), values: values.bytes)
  }

  /// Deletes what is held of earlier diffs for rows that this one has deleted: it must not be applied to a later row of the
  /// same key.
  ///
  /// - Returns: The parts that have lost changes.
  private func forgetRowsThatAreGone() throws -> Set<Int64> {
    var shrunk: Set<Int64> = []
    let summary = try known.changes.feed.summary()
    let sections = TableSections(summary, of: known.changes.changeset)
    for table in summary.tables where table.deleted > 0 {
      let name = TableName(table.table.name)
      guard earlier.contains(name), let match = plan.matches[name] else { continue }
      // Any of them says whether the row is there.
      let statements = try session.statements(for: match, header: table.table)
      guard let select = try statements.selection.get().first else { continue }
      let key = RowKey(of: table.table)
      try sections.forEachChange(of: name) { change, bytes in
        guard change.operation == .delete, !change.hasNullKey else { return }
        try statements.bindKey(of: change, bytes, to: select)
        let isThere = try select.statement.step()
        select.statement.reset()
        if isThere { return }
        shrunk.formUnion(
          try HeldParts.remove(key.bytes(of: change, bytes), of: name, before: entry, on: session.connection))
      }
      select.statement.clearBindings()
    }
    return shrunk
  }
}
