import BuckiaBytes
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Resolves recorded conflicts: writes the version that a person has chosen for each row, and records the resolution.
///
/// A row that matches none of the recorded versions is not overwritten. One conflict that cannot be resolved does not
/// stop the others.
package struct ConflictSettlement {
  /// A request to resolve conflicts.
  package struct Request {
    /// The answer to all of them.
    package let answer: ConflictAnswer
    /// The values in columns of incoming rows that refer to a row with another key here. An incoming row whose own key
    /// another row has here gets a new one.
    package let references: [String: ChangesetValue]
    /// The name of the person who has decided.
    package let decidedBy: String
    /// The time, in milliseconds since 1970.
    package let time: Int64
    /// True to overwrite rows that were changed since, and to allow broken references.
    package let isForced: Bool
    /// True to keep the answer as a rule.
    package let isRemembered: Bool
    /// The conflicts that left out a row, by the conflicts of rows that refer to it.
    package let causes: [Int64: Int64]
    /// An observer of written rows.
    package let observer: (any RowEffectObserver)?
    /// The most resolved and the most refused conflicts that the result lists; nil for all.
    package let limit: Int?
    /// Called every few hundred conflicts; may throw to stop.
    package let poll: () throws -> Void

    /// Creates a request.
    package init(
      _ answer: ConflictAnswer, references: [String: ChangesetValue] = [:], decidedBy: String, time: Int64,
      isForced: Bool, isRemembered: Bool, causes: [Int64: Int64], observer: (any RowEffectObserver)?, limit: Int? = nil,
      polling poll: @escaping () throws -> Void
    ) {
      self.answer = answer
      self.references = references
      self.decidedBy = decidedBy
      self.time = time
      self.isForced = isForced
      self.isRemembered = isRemembered
      self.causes = causes
      self.observer = observer
      self.limit = limit
      self.poll = poll
    }
  }

  /// The result.
  package struct Result {
    /// Adds the result for other conflicts.
    package mutating func add(_ others: Result) {
      conflicts += others.conflicts
      counts.add(others.counts)
      changedTables += others.changedTables.filter { !changedTables.contains($0) }
      violations += others.violations
      warnings += others.warnings.filter { !warnings.contains($0) }
    }

    /// The listed conflicts, in the order given.
    package fileprivate(set) var conflicts: [ResolvedConflict] = []
    /// The counts of all conflicts.
    package fileprivate(set) var counts = ResolveCounts()
    /// The rules that were made of the answers.
    package fileprivate(set) var rules: [ConflictRule] = []
    /// The tables that were changed.
    package fileprivate(set) var changedTables: [String] = []
    /// Sentences about references that were broken by writing.
    package fileprivate(set) var violations: [String] = []
    /// Warnings.
    package fileprivate(set) var warnings: [Warning] = []
  }

  private let request: Request
  private let session: ApplySession
  private let log: ConflictLog
  private var indexes: IndexMaintenance?
  private var rows: [TableName: LocalRows] = [:]
  private var parents: [TableName: ParentLookup] = [:]
  private var changedTables: [TableName] = []
  private var writtenCount = 0

  private init(_ request: Request, in session: ApplySession) {
    self.request = request
    self.session = session
    log = ConflictLog(entry: 0, on: session.connection)
  }

  /// Resolves conflicts in the transaction that is open, which must be rolled back when this throws.
  ///
  /// - Parameters:
  ///   - conflicts: The numbers of the conflicts.
  ///   - request: The request.
  ///   - session: A session that has begun.
  /// - Throws: `SQLiteError`; `ChangesetError` when a record is damaged; `ReplicationError`.
  package static func run(_ conflicts: [Int64], _ request: Request, in session: ApplySession) throws -> Result {
    var settlement = ConflictSettlement(request, in: session)
    let tables = try settlement.tables(of: conflicts)
    if try session.hasVirtualTables() { settlement.indexes = try IndexMaintenance.begin(over: tables, in: session) }
    do {
      var result = try settlement.resolveAll(conflicts, of: tables)
      if let indexes = settlement.indexes {
        result.warnings += try indexes.rebuildIncompleteIndexes(
          changed: settlement.changedTables, rowCount: settlement.writtenCount)
        result.warnings += try indexes.end()
      }
      return result
    } catch {
      throw cleaningUp(after: error) { _ = try settlement.indexes?.end() }
    }
  }

  /// The existing tables of the conflicts.
  private func tables(of conflicts: [Int64]) throws -> Set<TableName> {
    let query =
      "SELECT table_name FROM main.buckia_conflict CROSS JOIN main.buckia_layout USING (layout) WHERE conflict = ?1"
    let tables = try conflicts.enumerated().compactMap { index, conflict in
      if index % 256 == 0 { try request.poll() }
      return try session.connection.first(ofCached: query, conflict) { TableName($0.text(at: 0) ?? "") }
    }
    let schema = try session.schema()
    return Set(tables).filter { schema.entry(named: $0) != nil }
  }

  private mutating func resolveAll(_ conflicts: [Int64], of tables: Set<TableName>) throws -> Result {
    // TEMP triggers record all writes.
    let watch = try ForeignKeyWatch(changed: tables, seesTriggers: true, session)
    var result = Result()
    var reported = ReportedConflicts(limit: request.limit)
    var rules: [Int64: ConflictRule] = [:]
    var pending = conflicts
    // One row can block another, or be the row that another refers to. As long as any row is written, the others are
    // tried again.
    while !pending.isEmpty {
      var refused: [Int64] = []
      for (index, conflict) in pending.enumerated() {
        if index % 256 == 0 { try request.poll() }
        let resolved = try resolve(conflict)
        reported.note(resolved)
        if let rule = resolved.rule { rules[rule.id] = rule }
        if resolved.refusal?.mayPass == true { refused.append(conflict) } else { result.counts.add(resolved) }
      }
      if refused.count == pending.count {
        result.counts.refused += refused.count
        break
      }
      pending = refused
    }
    result.conflicts = reported.inOrder(of: conflicts)
    result.rules = rules.values.sorted { $0.id < $1.id }
    result.changedTables = changedTables.map(\.text)
    result.violations = try violations(watch)
    try watch.stop()
    return result
  }

  /// Sentences about references that were broken by writing.
  private func violations(_ watch: ForeignKeyWatch) throws -> [String] {
    let nothing = TemporaryBuffer([])
    let audit = ForeignKeyAudit(session: session, changed: [:], watch: watch, collisions: nil)
    return try audit.run(TableSections(ChangesetSummary.of(nothing), of: nothing), beside: [:], after: [:]).flatMap {
      broken in
      try broken.missing.map { "it refers to \(try broken.check.name(ofParent: $0.values)), which is not there" }
    }
  }

  // MARK: One conflict

  private mutating func resolve(_ conflict: Int64) throws -> ResolvedConflict {
    var resolved = ResolvedConflict(id: conflict)
    do {
      guard let record = try RecordedConflict.read(conflict, on: session.connection) else {
        throw ReplicationError(.noSuchConflict, "there is no conflict with the number \(conflict)")
      }
      resolved.table = record.table
      try resolve(record, &resolved)
    } catch let error as ReplicationError {
      resolved.refusal = .init(code: error.code, reason: error.message)
    }
    return resolved
  }

  private mutating func resolve(_ record: RecordedConflict, _ resolved: inout ResolvedConflict) throws {
    let rows = try rows(of: record)
    let columns = rows.table.changesetColumns
    let versions: RowVersions
    do { versions = try RowVersions(record, in: rows.table) } catch let error as ReplicationError
      where error.code == .keyDiffers && request.answer == .local && record.outcome == .omitted && record.local == nil
      && record.resolution == nil
    {
      // Nothing was written, and nothing has to be.
      return try log.recordResolution(
        of: record.id, request.answer.kind, by: request.decidedBy, at: request.time,
        RecordedRowLayout(table: TableName(record.table), columns: columns, key: rows.table.keyIndexes),
        before: nil, after: nil)
    }
    resolved.key = rows.table.keyIndexes.map { .init(columns[$0], versions.key[$0]?.value) }
    resolved.lostColumns = versions.lostColumns
    let current = try rows.row(with: versions.key)
    if request.answer == .same, record.kind != .constraint || record.operation != .insert {
      throw ReplicationError(
        .unresolvable, "only an incoming row whose UNIQUE value a local row has can be the same as that one",
        table: record.table)
    }
    if request.answer == .both {
      return try insert(versions.missing(besides: current), beside: current, record, rows, &resolved)
    }
    let leftOut = try request.references.isEmpty ? nil : versions.insertedRow(with: request.references)
    if let leftOut, current != nil, !versions.isLike(current, leftOut) {
      return try insert(leftOut, beside: current, record, rows, &resolved)
    }
    resolved.before = Self.cells(current, columns)
    let isChanged = !versions.isKnown(current)
    let wanted = try leftOut ?? versions.wanted(by: request.answer, current: current, isChanged: isChanged)
    if isChanged, !request.isForced, !versions.isLike(current, wanted) {
      resolved.refusal = Self.refusal(of: current, versions)
      return
    }
    if !request.isForced, record.kind == .foreignKey, request.answer == .incoming, let wanted {
      try requireParents(of: wanted, record, rows.table)
    }
    if !request.isForced, record.kind == .conflict, request.answer == .incoming, let current,
      !versions.isLike(current, wanted),
      let referring = try rowsReferring(to: current, of: rows.table)
    {
      throw ReplicationError(
        .repointsRows,
        "\(referring) to the row that is here, and would refer to the incoming one; "
          + (ClockKey(of: rows.table).isRowID ? "keep both, or force it" : "force it"),
        table: record.table)
    }
    if let message = try rows.write(versions.key, from: current, to: wanted) {
      let words = message.isEmpty ? "a constraint refuses the row" : message
      throw ReplicationError(.rowRefused, words, table: record.table)
    }
    let after = try rows.row(with: versions.key)
    resolved.after = Self.cells(after, columns)
    if current == nil, let wanted {
      resolved.unknownColumns = columns.indices.filter { wanted[$0] == nil }.map { columns[$0] }
    }
    if resolved.hasChanged {
      let name = TableName(rows.table.name)
      noteWritten(name)
      let key = rows.table.keyIndexes.flatMap { versions.key[$0]?.bytes ?? [] }
      try DecidedRows.note(key, of: name, at: request.time, on: session.connection)
      if after != nil { try Tombstones.remove(key, of: name, on: session.connection) }
    }
    try log.recordResolution(
      of: record.id, request.answer.kind, by: request.decidedBy, at: request.time,
      RecordedRowLayout(table: TableName(record.table), columns: columns, key: rows.table.keyIndexes),
      before: Self.record(current), after: Self.record(after))
    if request.isRemembered, case .version(let version) = request.answer, let question = versions.question {
      resolved.rule = try ConflictRule.add(
        version, to: question, by: request.decidedBy, at: request.time, of: record.id, on: session.connection)
    }
  }

  /// Inserts one of two rows with the same key, with a free key.
  private mutating func insert(
    _ row: RowVersions.Row, beside current: RowVersions.Row?, _ record: RecordedConflict, _ rows: LocalRows,
    _ resolved: inout ResolvedConflict
  ) throws {
    let table = rows.table
    var added = row
    guard let place = table.keyIndexes.first, table.keyIndexes.count == 1, ClockKey(of: table).isRowID else {
      throw ReplicationError(
        .unresolvable, "only rows with an integer key can both be kept: SQLite gives out no other keys",
        table: table.name)
    }
    let key = StoredValue(.integer(try newRowID(in: table)))
    added[place] = key
    if let message = try rows.write([place: key], from: nil, to: added) {
      throw ReplicationError(
        .rowRefused, message.isEmpty ? "a constraint refuses the row" : message, table: record.table)
    }
    let columns = table.changesetColumns
    resolved.key = [.init(columns[place], key.value)]
    resolved.after = Self.cells(try rows.row(with: [place: key]), columns)
    noteWritten(TableName(table.name))
    try log.recordResolution(
      of: record.id, .both, by: request.decidedBy, at: request.time,
      RecordedRowLayout(table: TableName(record.table), columns: columns, key: table.keyIndexes),
      before: Self.record(current), after: Self.record(current))
  }

  private mutating func noteWritten(_ table: TableName) {
    writtenCount += 1
    if !changedTables.contains(table) { changedTables.append(table) }
  }

  /// A key greater than all in the table, and than all earlier ones if the table records them.
  private func newRowID(in table: TableDefinition) throws -> Int64 {
    let name = SQLText.identifier(table.name)
    var last = try session.connection.integer("SELECT max(rowid) FROM main.\(name)") ?? 0
    if table.isAutoIncrement {
      let literal = SQLText.literal(table.name)
      let given = "SELECT seq FROM main.sqlite_sequence WHERE name = \(literal) COLLATE NOCASE"
      last = max(last, try session.connection.integer(given) ?? 0)
    }
    guard last < .max else {
      throw ReplicationError(.noIDsLeft, "table \"\(table.name)\" has no key left to give out", table: table.name)
    }
    return max(last, 0) + 1
  }

  /// The rows of a conflict's table.
  private mutating func rows(of record: RecordedConflict) throws -> LocalRows {
    let name = TableName(record.table)
    if record.isOfUnknownColumns {
      throw ReplicationError(
        .unresolvable, "the record only keeps values of columns that were unknown here when the change came",
        table: record.table)
    }
    if let known = rows[name] { return known }
    guard let entry = try session.schema().entry(named: name) else {
      throw ReplicationError(.noSuchTable, "there is no table \"\(name)\" here any more", table: record.table)
    }
    guard entry.kind.hasOwnRows else {
      throw ReplicationError(.unresolvable, "\"\(name)\" is no table with rows of its own now", table: record.table)
    }
    let made = try LocalRows(
      session.schema().definition(of: entry), in: session, keeping: indexes, reportingTo: request.observer)
    rows[name] = made
    return made
  }

  /// Requires that the rows to which a row refers exist, and are those that its author means.
  private mutating func requireParents(
    of row: RowVersions.Row, _ record: RecordedConflict, _ table: TableDefinition
  ) throws {
    if let cause = request.causes[record.id], try !RecordedConflict.isTaken(cause, on: session.connection) {
      throw ReplicationError(
        .brokenReference, "the row refers to one that was left out by conflict \(cause); resolve that one first",
        table: record.table)
    }
    let name = TableName(table.name)
    let lookup = try parents[name] ?? ParentLookup(of: table, in: session)
    parents[name] = lookup
    guard let parent = try lookup.missingParent(of: row) else { return }
    throw ReplicationError(.brokenReference, "the row refers to \(parent), which is not there", table: record.table)
  }

  // MARK: Results

  private static func refusal(of current: RowVersions.Row?, _ versions: RowVersions) -> ResolvedConflict.Refusal {
    let known = versions.lastKnown(besides: current)
    let columns = versions.table.changesetColumns
    let differences = versions.differences(of: current, from: known).map { place in
      ResolvedConflict.Difference(column: columns[place], known: known?[place]?.value, present: current?[place]?.value)
    }
    let reason =
      if current == nil {
        "the row is not here any more: it was deleted since the conflict was met"
      } else if known == nil {
        "a row with this key is here now, and there was none when the conflict was met"
      } else {
        "the row was changed since the conflict was met"
      }
    return ResolvedConflict.Refusal(code: .rowChanged, reason: reason, differences: differences)
  }

  private static func cells(_ row: RowVersions.Row?, _ columns: [String]) -> [ConflictRecord.Cell]? {
    row.map { zip(columns, $0).map { .init($0, $1?.value) } }
  }

  private static func record(_ row: RowVersions.Row?) -> [UInt8]? {
    row.map { $0.flatMap { $0?.bytes ?? [ValueKind.undefined.rawValue] } }
  }
}

/// The listed conflicts.
private struct ReportedConflicts {
  private let limit: Int
  private var reported: [Int64: ResolvedConflict] = [:]
  private var resolved = 0
  private var refused = 0

  init(limit: Int?) { self.limit = limit ?? .max }

  /// Records the result for a conflict, which may have been refused before.
  mutating func note(_ conflict: ResolvedConflict) {
    if let before = reported.removeValue(forKey: conflict.id) {
      if before.refusal == nil { resolved -= 1 } else { refused -= 1 }
    }
    let isResolved = conflict.refusal == nil
    guard (isResolved ? resolved : refused) < limit else { return }
    if isResolved { resolved += 1 } else { refused += 1 }
    reported[conflict.id] = conflict
  }

  func inOrder(of conflicts: [Int64]) -> [ResolvedConflict] { conflicts.compactMap { reported[$0] } }
}

extension ResolvedConflict.Refusal {
  /// True if another conflict's resolution can make this one succeed.
  fileprivate var mayPass: Bool { code == .rowRefused || code == .brokenReference }
}

/// The rows that refer to another one.
extension ConflictSettlement {
  /// The numbers of rows, by table, that refer to a row, for people; nil for none.
  ///
  /// - Throws: `SQLiteError`.
  private func rowsReferring(to row: RowVersions.Row, of table: TableDefinition) throws -> String? {
    let schema = try session.schema()
    var counts: [(table: String, count: Int64)] = []
    for entry in schema.entries where entry.kind == .table {
      let child = try schema.definition(of: entry)
      for link in try ReferenceLink.all(of: .init(unchanged: child), in: schema)
      where TableName(link.parent.name) == TableName(table.name) {
        let values = link.parentColumns.map { row[$0 + table.columnOffset]?.value ?? .null }
        let names = child.changesetColumns
        let terms = link.childColumns.enumerated().map { "\(SQLText.identifier(names[$1])) = ?\($0 + 1)" }
        let query = try session.connection.prepare(
          "SELECT count(*) FROM main.\(SQLText.identifier(child.name)) WHERE \(terms.joined(separator: " AND "))")
        for (index, value) in values.enumerated() { try query.bind(value, at: index) }
        if try query.step(), query.integer(at: 0) > 0 { counts.append((child.name, query.integer(at: 0))) }
      }
    }
    guard !counts.isEmpty else { return nil }
    let words = counts.map { "\($0.count) row\($0.count == 1 ? "" : "s") of table \"\($0.table)\"" }
    let isOne = counts.count == 1 && counts[0].count == 1
    return "\(words.joined(separator: " and ")) refer\(isOne ? "s" : "")"
  }
}
