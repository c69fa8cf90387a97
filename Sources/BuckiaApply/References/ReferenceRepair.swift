import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Sees to it that no reference leads nowhere when a diff has been applied.
///
/// - A row that the diff has deleted, and to which local rows refer, is kept, unless the foreign key declares another
///   action (SET NULL, SET DEFAULT).
/// - A row that the diff has inserted, and that refers to nothing, is parked.
/// - A column that the diff has changed, and that refers to nothing, keeps its value.
struct ReferenceRepair {
  /// The most rows of one table that are recorded one by one.
  private static let limit = 10_000

  let session: ApplySession
  let audit: ForeignKeyAudit
  let decisions: ReferenceDecisions
  let parked: ParkedChildren
  let decider: ConflictDecider
  let indexes: IndexMaintenance?
  let observer: (any RowEffectObserver)?
  let effects: EffectLog?
  private(set) var counts = ApplyCounts()
  var recorded: [TableName: Int] = [:]
  /// The number of rows with broken references, including those that were mended in this run.
  var violations = 0

  /// Mends the references that the changes have broken.
  ///
  /// - Returns: False if the diff has to be rolled back and applied again, with the new decisions.
  /// - Throws: `SQLiteError`; `ReplicationError` with `conflict` when the policy, or the resolver, refuses broken references.
  mutating func run(_ sections: TableSections) throws -> Bool {
    let found = try audit.run(sections, beside: parked.written, after: decisions.lastRowIDs)
    var unknown: [(check: ForeignKeyCheck, row: BrokenRows.Row)] = []
    var rest: [(check: ForeignKeyCheck, row: BrokenRows.Row)] = []
    for broken in found {
      for row in broken.replaced { try report(row, broken.check, isReplaced: true) }
      for row in broken.missing {
        if decider.refusesViolationsUnasked { throw try refusal(of: row, broken.check) }
        if let declared = decisions.declaration(for: broken.check, row) {
          if try !follow(declared, from: row, broken.check) { unknown.append((broken.check, row)) }
        } else if decisions.isDecided(broken.check, row) {
          rest.append((broken.check, row))
        } else if try !row.isTaken && decisions.isNew(row.key, of: broken.name, on: session.connection) {
          rest.append((broken.check, row))
        } else if try !row.isTaken || !broken.check.isToKey || !act(on: row, broken.check, broken.check.key.onDelete) {
          unknown.append((broken.check, row))
        }
      }
    }
    if unknown.isEmpty { unknown = try park(rest) }
    guard unknown.isEmpty else {
      decisions.ask(unknown)
      return false
    }
    try parked.finish { table, key, row in
      counts.inserted += 1
      try didWrite(.insert, key, of: table, before: nil, after: row)
    }
    for (name, count) in recorded.sorted(by: { $0.key.text < $1.key.text }) where count > Self.limit {
      try decider.recordViolation(
        nil, ConflictLayout(name: name, columns: [], key: [], sources: [], isKey: []),
        message:
          "\(count - Self.limit) more rows of table \"\(name)\" refer to rows that are not there or were replaced")
    }
    violations += decisions.count
    if violations > 0 { try decider.decideForeignKeys(violations: violations) }
    return true
  }

  /// Parks rows that the diff has inserted, and rows of the diff that refer to them.
  ///
  /// - Returns: The references without a decision.
  private mutating func park(
    _ references: [(check: ForeignKeyCheck, row: BrokenRows.Row)]
  ) throws -> [(check: ForeignKeyCheck, row: BrokenRows.Row)] {
    var unknown: [(check: ForeignKeyCheck, row: BrokenRows.Row)] = []
    var open = references
    while !open.isEmpty {
      var values: [TableName: [RowCopy]] = [:]
      for (check, row) in open {
        let name = TableName(check.child.name)
        guard try decisions.isNew(row.key, of: name, on: session.connection) else {
          if !decisions.isOld(check, row) { try report(row, check, isReplaced: false) }
          continue
        }
        // The row may have been parked because of another foreign key.
        guard let (copy, wasParked) = try parked.park(row.key, waitingBy: check, row.values) else {
          if !fitsIntoResult(check.child) { try report(row, check, isReplaced: false) }
          continue
        }
        values[name, default: []].append(try RowCopy(record: copy))
        guard !wasParked else { continue }
        if !decisions.isDecided(check, row) { violations += 1 }
        counts.inserted -= 1
        counts.omitted += 1
        try didWrite(.delete, row.key, of: check.child, before: copy, after: nil)
        let waits = session.keepsLedger ? "; it waits for that" : ""
        try record(
          .omitted, check, incoming: copy,
          because: "it refers to \(check.name(ofParent: row.values)), which is not there\(waits)")
      }
      open = []
      for (check, row) in try rows(referringTo: values) {
        let isDecided =
          try decisions.isDecided(check, row)
          || decisions.isNew(row.key, of: TableName(check.child.name), on: session.connection)
        if isDecided { open.append((check, row)) } else { unknown.append((check, row)) }
      }
    }
    return unknown
  }

  /// The rows that refer to rows which have been parked.
  private func rows(
    referringTo values: [TableName: [RowCopy]]
  ) throws -> [(check: ForeignKeyCheck, row: BrokenRows.Row)] {
    let references = try session.references()
    let schema = try session.schema()
    var found: [(check: ForeignKeyCheck, row: BrokenRows.Row)] = []
    for (parent, rows) in values.sorted(by: { $0.key.text < $1.key.text }) {
      for entry in schema.entries(named: references.children(of: parent)) where entry.kind == .table {
        let child = try schema.definition(of: entry)
        for key in child.foreignKeys where TableName(key.parent) == parent {
          guard let check = try ForeignKeyCheck(key, of: child, in: schema, session) else { continue }
          let store = try KeyStore("left", for: check.parent, check.parentColumns, on: session.connection)
          let insert = try store.insertion(on: session.connection)
          for row in rows {
            for (index, column) in check.parentColumns.enumerated() {
              try row.bind(column + check.parent.columnOffset, to: insert, at: index)
            }
            try insert.run()
          }
          var broken = BrokenRows(check)
          try check.orphaned(notedIn: store, &broken)
          try store.clear(on: session.connection)
          found += broken.missing.map { (check, $0) }
        }
      }
    }
    return found
  }

  // MARK: Rows that gave way

  /// Makes the rows that refer to a parked row refer to the row that has its UNIQUE value now.
  mutating func follow(_ gaveWay: [TableName: [TableApplier.GivenWay]]) throws {
    let references = try session.references()
    let schema = try session.schema()
    for (name, rows) in gaveWay.sorted(by: { $0.key.text < $1.key.text }) where !rows.isEmpty {
      for entry in schema.entries(named: references.children(of: name)) where entry.kind == .table {
        let child = try schema.definition(of: entry)
        for key in child.foreignKeys where TableName(key.parent) == name {
          guard let check = try ForeignKeyCheck(key, of: child, in: schema, session) else { continue }
          for row in rows { try follow(row, check) }
        }
      }
    }
  }

  private mutating func follow(_ gaveWay: TableApplier.GivenWay, _ check: ForeignKeyCheck) throws {
    guard let winner = try TableRows(check.parent, in: session.connection).row(gaveWay.winner) else { return }
    let columns = check.parentColumns.map { $0 + check.parent.columnOffset }
    let values = try RowCopy(record: winner).record(of: columns)
    let store = try KeyStore("left", for: check.parent, check.parentColumns, on: session.connection)
    let insert = try store.insertion(on: session.connection)
    let row = try RowCopy(record: gaveWay.row)
    for (index, column) in columns.enumerated() { try row.bind(column, to: insert, at: index) }
    try insert.run()
    var broken = BrokenRows(check)
    try check.orphaned(notedIn: store, &broken)
    try store.clear(on: session.connection)
    let reason = "gave way to another row with its UNIQUE value; the reference follows"
    for row in broken.missing where try !refer(row, check, to: values, because: reason) {
      try move(row, check, to: values, because: reason)
    }
  }

  /// Moves a row whose key contains the reference to the key with other values. If a row with that key or one of its
  /// UNIQUE values exists, that one stays alone. What refers to the row follows.
  private mutating func move(
    _ row: BrokenRows.Row, _ check: ForeignKeyCheck, to values: [UInt8], because reason: String
  ) throws {
    let rows = TableRows(check.child, keeping: indexes, in: session.connection)
    let key = ClockKeyRecord(bytes: row.key)
    guard !check.child.isKeyedByRowID, !check.childColumns.contains(-1), let before = try rows.row(key) else { return }
    let old = try RowCopy(record: before)
    let new = try RowCopy(record: values)
    func record(of places: some Sequence<Int>) -> [UInt8] {
      var writer = ChangesetWriter()
      for place in places {
        if let index = check.childColumns.firstIndex(where: { $0 + check.child.columnOffset == place }) {
          new.record.withRawSpan { writer.append(new.values[index], of: $0) }
        } else {
          old.record.withRawSpan { writer.append(old.values[place], of: $0) }
        }
      }
      return writer.bytes
    }
    let after = record(of: old.values.indices)
    let target = record(of: check.child.keyIndexes)
    guard try rows.write(nil, to: key) == nil else { return }
    counts.deleted += 1
    try didWrite(.delete, row.key, of: check.child, before: before, after: nil)
    var winner: ClockKeyRecord? = ClockKeyRecord(bytes: target)
    if try rows.row(ClockKeyRecord(bytes: target)) == nil {
      if try rows.write(after, to: ClockKeyRecord(bytes: target)) == nil {
        counts.inserted += 1
        try didWrite(.insert, target, of: check.child, before: nil, after: after)
      } else {
        winner = try blockingRow(rows.lastMessage, after, of: check.child)
      }
    }
    try self.record(
      .reported, check, local: before,
      because: "\(check.name(ofParent: row.values)), which it refers to, \(reason)")
    if let winner { try follow([TableName(check.child.name): [(before, winner)]]) }
  }

  /// The row that has a UNIQUE value of a refused one; nil for none.
  private func blockingRow(
    _ message: [UInt8], _ row: [UInt8], of table: TableDefinition
  ) throws -> ClockKeyRecord? {
    let header = ChangesetTable(name: table.name, keyFlags: table.keyFlags)
    let statements = try session.statements(for: TableMatch(unchanged: table), header: header)
    return try BlockingRows(statements).find(message, row: row).first
  }

  // MARK: Declared actions

  /// Executes the declared action of a foreign key for removed UNIQUE values.
  ///
  /// - Returns: False if that cannot be done.
  private mutating func follow(
    _ declared: ReferenceDecisions.Declared, from row: BrokenRows.Row, _ check: ForeignKeyCheck
  ) throws -> Bool {
    guard declared.action == .cascade else { return try act(on: row, check, declared.action) }
    let rows = TableRows(check.parent, in: session.connection)
    guard let record = try rows.row(ClockKeyRecord(bytes: declared.parent)) else { return false }
    let values = try RowCopy(record: record).record(of: check.parentColumns.map { $0 + check.parent.columnOffset })
    return try refer(row, check, to: values, because: "has other values now; the reference follows")
  }

  /// Executes the declared action of a foreign key for a deleted row.
  ///
  /// - Returns: False if the foreign key forbids the deletion, or its action cannot be executed.
  private mutating func act(
    on row: BrokenRows.Row, _ check: ForeignKeyCheck, _ action: ForeignKey.Action
  ) throws -> Bool {
    guard action == .setNull || action == .setDefault else { return false }
    var values = ChangesetWriter()
    var isNull = false
    for column in check.childColumns {
      guard action == .setDefault, column >= 0 else {
        isNull = true
        values.appendNull()
        continue
      }
      let definition = check.child.columns[column]
      if definition.hasExpressionDefault { return false }
      let query = try session.connection.prepare("SELECT \(definition.defaultValue?.sql ?? "NULL")")
      guard try query.step() else { return false }
      if query.isNull(at: 0) { isNull = true }
      values.append(column: 0, of: query)
    }
    if try !isNull && check.parentKey(of: values.bytes) == nil { return false }
    return try refer(
      row, check, to: values.bytes,
      because: "is not there any more; the reference becomes \(action == .setNull ? "NULL" : "its default")")
  }

  /// Changes the referring values of a row.
  ///
  /// - Returns: False if that cannot be done.
  private mutating func refer(
    _ row: BrokenRows.Row, _ check: ForeignKeyCheck, to values: [UInt8], because reason: String
  ) throws -> Bool {
    guard check.childColumns.allSatisfy({ $0 >= 0 && !check.child.primaryKey.contains($0) }) else { return false }
    let new = try RowCopy(record: values)
    let rows = TableRows(check.child, keeping: indexes, in: session.connection)
    let key = ClockKeyRecord(bytes: row.key)
    guard let before = try rows.row(key) else { return false }
    let keyPlaces = check.child.keyIndexes
    let keys = try RowCopy(record: row.key)
    var record = ChangesetWriter()
    for place in check.child.changesetColumns.indices {
      if let index = check.childColumns.firstIndex(where: { $0 + check.child.columnOffset == place }) {
        new.record.withRawSpan { record.append(new.values[index], of: $0) }
      } else if let index = keyPlaces.firstIndex(of: place) {
        keys.record.withRawSpan { record.append(keys.values[index], of: $0) }
      } else {
        record.appendUndefined()
      }
    }
    guard try rows.write(record.bytes, to: key) == nil else { return false }
    counts.updated += 1
    if !decisions.isDecided(check, row) { violations += 1 }
    try session.watcher?.didWriteIndirectly(row.key, of: TableName(check.child.name))
    try didWrite(.update, row.key, of: check.child, before: before, after: rows.row(key))
    try self.record(
      .reported, check, local: before,
      because: "\(check.name(ofParent: row.values)), which it refers to, \(reason)")
    return true
  }

  // MARK: Recording

  private func refusal(of row: BrokenRows.Row, _ check: ForeignKeyCheck) throws -> ReplicationError {
    ReplicationError(
      .conflict,
      "it refers to \(try check.name(ofParent: row.values)), which is not there; under the policy \"abort\" nothing of this file is applied",
      table: check.child.name)
  }

  /// True if one query can return all columns of a row. SQLite cannot do that for the widest tables.
  private func fitsIntoResult(_ table: TableDefinition) -> Bool {
    table.changesetColumns.count <= session.connection.columnLimit
  }

  /// Records a row whose reference cannot be mended.
  private mutating func report(_ row: BrokenRows.Row, _ check: ForeignKeyCheck, isReplaced: Bool) throws {
    let local =
      try fitsIntoResult(check.child)
      ? TableRows(check.child, in: session.connection).row(ClockKeyRecord(bytes: row.key)) : nil
    let parent = try check.name(ofParent: row.values)
    if !isReplaced, !decisions.isDecided(check, row) { violations += 1 }
    try record(
      .reported, check, local: local,
      because: isReplaced
        ? "it refers to \(parent), which is another row now: it was replaced"
        : "it refers to \(parent), which is not there")
  }

  private mutating func record(
    _ outcome: ConflictOutcome, _ check: ForeignKeyCheck, local: [UInt8]? = nil, incoming: [UInt8]? = nil,
    because reason: String
  ) throws {
    let name = TableName(check.child.name)
    counts.conflicts += 1
    recorded[name, default: 0] += 1
    guard recorded[name, default: 0] <= Self.limit else { return }
    try decider.record(
      .foreignKey, outcome, ConflictLayout(check.child).recorded, base: nil, local: local, incoming: incoming,
      because: Array(reason.utf8))
  }

  private func didWrite(
    _ operation: ChangeOperation, _ key: [UInt8], of table: TableDefinition, before: [UInt8]?, after: [UInt8]?
  ) throws {
    let effect = RowEffect(
      table: TableName(table.name), operation: operation, cause: .change, key: key, before: before, after: after)
    try effects?.write(effect, of: table)
    guard let observer else { return }
    if observer.wantsRows { return try observer.didWrite(effect) }
    try observer.didWrite(
      RowEffect(table: effect.table, operation: operation, cause: .change, key: key, before: nil, after: nil))
  }
}

extension BrokenRows {
  /// The table whose rows these are.
  fileprivate var name: TableName { TableName(check.child.name) }
}
