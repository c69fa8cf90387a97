import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The decisions about references that a run of a diff has broken, which one run passes to the next.
///
/// The repair of a reference depends on two rows before the diff: the referenced row and the referring one. If a diff
/// breaks references, the run is rolled back, these rows are looked up, and the diff is applied again. A diff that
/// breaks no reference is applied once, and this stays empty.
final class ReferenceDecisions {
  /// A reference that a run has broken.
  private struct Question: Hashable {
    let child: TableName
    let columns: [String]
    let row: [UInt8]
    let values: [UInt8]
  }

  /// The declared action of a foreign key for removed values.
  typealias Declared = (parent: [UInt8], action: ForeignKey.Action)

  /// The number of runs after which all rows are kept that others may refer to.
  private static let runLimit = 6

  private var asked: Set<Question> = []
  private var pending: [(check: ForeignKeyCheck, row: BrokenRows.Row)] = []
  /// References that were broken before the diff.
  private var old: Set<Question> = []
  /// The declared actions for references to UNIQUE values that the diff removes, if they are to be executed.
  private var declared: [Question: Declared] = [:]
  private var unfollowable: Set<Question> = []
  private var runs = 0
  private var staying: [TableName: StayingRows] = [:]
  /// The rows that the diff inserts and that were not there before it, by table; empty for the first run.
  private(set) var new: [TableName: KeyStore] = [:]
  /// The greatest rowid before the diff of each of its tables without a key that refers to others: rows that it inserts have greater ones.
  private(set) var lastRowIDs: [TableName: Int64] = [:]
  /// The number of rows with broken references that were mended before this run.
  var count: Int { asked.count - old.count }

  /// The rows and values of a table that must stay; nil for most tables.
  func staying(in table: TableName) -> StayingRows? { staying[table] }

  /// The rows that were kept in this run, by table.
  var kept: [(table: TableName, rows: [(local: [UInt8], incoming: [UInt8])])] {
    staying.filter { !$1.kept.isEmpty }.sorted { $0.key.text < $1.key.text }.map { ($0, $1.kept) }
  }

  private func question(_ check: ForeignKeyCheck, _ row: BrokenRows.Row) -> Question {
    Question(child: TableName(check.child.name), columns: check.key.columns, row: row.key, values: row.values)
  }

  /// True if a decision about a reference exists.
  func isDecided(_ check: ForeignKeyCheck, _ row: BrokenRows.Row) -> Bool { asked.contains(question(check, row)) }

  /// True if a reference led nowhere before the diff.
  func isOld(_ check: ForeignKeyCheck, _ row: BrokenRows.Row) -> Bool { old.contains(question(check, row)) }

  /// The declared action for a reference to UNIQUE values that the diff removes; nil if the values are kept instead.
  func declaration(for check: ForeignKeyCheck, _ row: BrokenRows.Row) -> Declared? { declared[question(check, row)] }

  /// Has the next run decide about references, and keep the rows that could not be followed.
  func ask(_ references: [(check: ForeignKeyCheck, row: BrokenRows.Row)]) {
    runs += 1
    for (check, row) in references {
      let question = question(check, row)
      if asked.insert(question).inserted || unfollowable.insert(question).inserted { pending.append((check, row)) }
    }
  }

  // MARK: Before a run

  /// Decides about the references that the previous run has broken, by the rows before the diff.
  ///
  /// - Throws: `SQLiteError`, `ByteStreamError`.
  func beginRun(
    _ sections: @autoclosure () throws -> TableSections, _ matches: [TableName: TableMatch], in session: ApplySession
  ) throws {
    for rows in staying.values { rows.beginRun() }
    new = [:]
    try noteLastRowIDs(matches, in: session)
    guard runs > 0 else { return }
    if runs >= Self.runLimit { try keepAll(matches, in: session) }
    let sections = try sections()
    try noteNewRows(sections, matches, in: session)
    var gone: [TableName: Set<[UInt8]>] = [:]
    for (check, row) in pending { try decide(check, row, &gone, sections, matches, in: session) }
    pending = []
  }

  /// Empties the tables in which the diff's rows are noted.
  func endRun(on connection: borrowing SQLiteConnection) throws {
    for store in new.values { try store.clear(on: connection) }
    new = [:]
  }

  /// Records a row that was not in its table before the diff.
  func noteNew(_ key: [UInt8], of table: TableDefinition, on connection: borrowing SQLiteConnection) throws {
    let insert = try store(for: table, on: connection).insertion(on: connection)
    try ClockKeyRecord(bytes: key).bind(to: insert, from: 0)
    try insert.run()
  }

  private func store(for table: TableDefinition, on connection: borrowing SQLiteConnection) throws -> KeyStore {
    let name = TableName(table.name)
    if let known = new[name] { return known }
    let made = try KeyStore("new_\(new.count)", for: table, table.primaryKey, on: connection)
    new[name] = made
    return made
  }

  /// True if a row was not in its table before the diff.
  func isNew(_ key: [UInt8], of table: TableName, on connection: borrowing SQLiteConnection) throws -> Bool {
    if let last = lastRowIDs[table], case .integer(let rowID)? = try ChangesetValue.record(key).first, rowID > last {
      return true
    }
    guard let store = new[table] else { return false }
    let lookup = try store.lookup(on: connection)
    try ClockKeyRecord(bytes: key).bind(to: lookup, from: 0)
    return try lookup.step()
  }

  private func noteLastRowIDs(_ matches: [TableName: TableMatch], in session: ApplySession) throws {
    lastRowIDs = [:]
    for (name, match) in matches where match.local.isKeyedByRowID && match.local.rowIDName != nil {
      guard try session.references().isChild(name) else { continue }
      lastRowIDs[name] = try session.greatestRowID(of: match.local)
    }
  }

  private func noteNewRows(
    _ sections: TableSections, _ matches: [TableName: TableMatch], in session: ApplySession
  ) throws {
    let references = try session.references()
    for (name, match) in matches where references.isChild(name) {
      let local = match.local
      let places = local.keyIndexes.compactMap { match.columns.firstIndex(of: $0) }
      guard places.count == local.keyIndexes.count, sections.table(named: name) != nil else { continue }
      let store = try store(for: local, on: session.connection)
      let values = places.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
      let equal = local.keySQL.enumerated().map { "\($1) = ?\($0 + 1)" }.joined(separator: " AND ")
      let insert = try session.connection.prepare(
        """
        INSERT OR IGNORE INTO \(store.qualifiedName) SELECT \(values)
        WHERE NOT EXISTS (SELECT 1 FROM main.\(name.quoted) WHERE \(equal))
        """, isPersistent: true)
      try sections.forEachChange(of: name) { change, bytes in
        guard change.operation == .insert, !change.hasNullKey else { return }
        for (index, place) in places.enumerated() { try insert.bind(change.new(place), in: bytes, at: index) }
        try insert.run()
      }
    }
  }

  // MARK: Decisions

  private func rows(of table: TableName) -> StayingRows {
    let rows = staying[table] ?? StayingRows()
    staying[table] = rows
    return rows
  }

  private func decide(
    _ check: ForeignKeyCheck, _ row: BrokenRows.Row, _ gone: inout [TableName: Set<[UInt8]>],
    _ sections: TableSections, _ matches: [TableName: TableMatch], in session: ApplySession
  ) throws {
    let question = question(check, row)
    if let parent = try check.parentKey(of: row.values) {
      let name = TableName(check.parent.name)
      declared[question] = nil
      if !check.isToKey, !unfollowable.contains(question) {
        let isDeleted = try deletions(from: name, &gone, sections, matches, in: session).contains(parent)
        let action = isDeleted ? check.key.onDelete : check.key.onUpdate
        if action == .setNull || action == .setDefault || action == .cascade && !isDeleted {
          declared[question] = (parent, action)
          return
        }
      }
      try keep(parent, check, referredToBy: row.key, &gone, sections, matches, in: session)
    } else if let before = try check.values(ofRow: row.key), before == row.values {
      old.insert(question)
    } else if check.childColumns.allSatisfy({ $0 >= 0 }) {
      try rows(of: TableName(check.child.name)).keep(
        check.childColumns.map { $0 + check.child.columnOffset }, of: row.key,
        because:
          "it would refer to \(check.name(ofParent: row.values)), which is not there; it refers to what it did before")
    }
  }

  /// Keeps all rows that others may refer to, because a diff whose rows are left out one after the other would be
  /// applied too often.
  private func keepAll(_ matches: [TableName: TableMatch], in session: ApplySession) throws {
    let references = try session.references()
    let schema = try session.schema()
    for name in matches.keys where references.isParent(name) {
      guard let parent = try schema.table(named: name) else { continue }
      var places: Set<Int> = []
      for child in schema.entries(named: references.children(of: name)) where child.kind == .table {
        for key in try schema.definition(of: child).foreignKeys where TableName(key.parent) == name {
          places.formUnion(parent.columns(referredToBy: key).map { $0 + parent.columnOffset })
        }
      }
      rows(of: name).referredPlaces = places
    }
  }

  /// Keeps a row that others refer to, and what it refers to itself, as far as the diff deletes it.
  private func keep(
    _ key: [UInt8], _ check: ForeignKeyCheck, referredToBy child: [UInt8], _ gone: inout [TableName: Set<[UInt8]>],
    _ sections: TableSections, _ matches: [TableName: TableMatch], in session: ApplySession
  ) throws {
    let schema = try session.schema()
    var open = [(key, check, child)]
    while let (key, check, child) = open.popLast() {
      let name = TableName(check.parent.name)
      let reason = "\(try check.name(ofChild: child)) refers to it, so it stays"
      if !check.isToKey {
        rows(of: name).keep(check.parentColumns.map { $0 + check.parent.columnOffset }, of: key, because: reason)
      }
      guard rows(of: name).keep(key, because: reason) else { continue }
      guard try deletions(from: name, &gone, sections, matches, in: session).contains(key) else { continue }
      for reference in check.parent.foreignKeys {
        guard let next = try ForeignKeyCheck(reference, of: check.parent, in: schema, session),
          let values = try next.values(ofRow: key), let parent = try next.parentKey(of: values),
          try deletions(from: TableName(next.parent.name), &gone, sections, matches, in: session).contains(parent)
        else { continue }
        open.append((parent, next, key))
      }
    }
  }

  /// The keys of the rows of a table that the diff deletes.
  private func deletions(
    from table: TableName, _ gone: inout [TableName: Set<[UInt8]>], _ sections: TableSections,
    _ matches: [TableName: TableMatch], in session: ApplySession
  ) throws -> Set<[UInt8]> {
    if let known = gone[table] { return known }
    var keys: Set<[UInt8]> = []
    if let match = matches[table], let header = sections.table(named: table), sections.takeAway(from: table) {
      let statements = try session.statements(for: match, header: header)
      try sections.forEachChange(of: table) { change, bytes in
        guard change.operation == .delete, let row = try statements.copyOfRow(of: change, bytes) else { return }
        keys.insert(row.record(of: match.local.keyIndexes))
      }
    }
    gone[table] = keys
    return keys
  }
}

extension RowCopy {
  /// The values at some places, in the format of changesets.
  func record(of places: [Int]) -> [UInt8] {
    var writer = ChangesetWriter()
    record.withRawSpan { bytes in
      for place in places { writer.append(values[place], of: bytes) }
    }
    return writer.bytes
  }
}

/// The rows of one table that a diff must not change, or only in part, because a reference would break.
final class StayingRows {
  /// What stays of a row.
  struct Row {
    /// True if other rows refer to the row, which must not be deleted.
    var isReferredTo = false
    /// The places in the local layout of the columns that keep their values.
    var places: Set<Int> = []
    /// Why, for people.
    var reason: [UInt8]
  }

  /// The places of referenced columns, if no row may lose their values or be deleted; nil for most tables.
  var referredPlaces: Set<Int>?

  /// The part of a row that stays; nil if everything may be changed.
  subscript(key: [UInt8]) -> Row? {
    guard let referredPlaces else { return rows[key] }
    return Row(
      isReferredTo: true, places: referredPlaces.union(rows[key]?.places ?? []),
      reason: rows[key]?.reason ?? Array("rows here may refer to it, so it stays".utf8))
  }

  /// The rows, by the values of their keys in the format of changesets.
  private var rows: [[UInt8]: Row] = [:]
  /// The keys of rows that were kept in this run: the local ones, and those of the changes.
  private(set) var kept: [(local: [UInt8], incoming: [UInt8])] = []
  private var recorded: Set<[UInt8]> = []

  /// Discards the records of the last run.
  func beginRun() {
    kept = []
    recorded = []
  }

  /// Keeps a row.
  ///
  /// - Returns: True if it was not kept before.
  @discardableResult
  func keep(_ key: [UInt8], because reason: @autoclosure () throws -> String) rethrows -> Bool {
    if rows[key]?.isReferredTo == true { return false }
    if rows[key] == nil { rows[key] = Row(reason: Array(try reason().utf8)) }
    rows[key]?.isReferredTo = true
    return true
  }

  /// Keeps the values of some columns of a row.
  func keep(_ places: [Int], of key: [UInt8], because reason: @autoclosure () throws -> String) rethrows {
    if rows[key] == nil { rows[key] = Row(reason: Array(try reason().utf8)) }
    rows[key]?.places.formUnion(places)
  }

  /// Records that a row was kept which a change was to delete.
  func noteKept(_ local: [UInt8], as incoming: [UInt8]) { kept.append((local, incoming)) }

  /// Records that a row has a conflict record. Returns false if it had one before.
  ///
  /// - Returns: True if none was recorded for it in this run.
  func noteRecorded(_ key: [UInt8]) -> Bool { recorded.insert(key).inserted }
}
