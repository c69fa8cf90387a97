import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds the foreign keys that a diff has broken, after it was applied with enforcement off.
///
/// Enforcement is off while applying on a connection of ours, because the changes already hold what the author's
/// foreign-key actions did; a second cascade here would take rows that only exist here. So what the changes have broken
/// is looked up and reported. Only rows they wrote, and rows that referred to what they took away, are looked at:
/// violations that were there before are nobody's news, and the rest of the database is not read.
struct ForeignKeyAudit {
  /// The most rows that are written down for one table.
  private static let limit = 10_000

  /// The tables that were changed, with how their columns meet those of the changes.
  let changed: [TableName: TableMatch]

  /// Looks at every foreign key whose table or parent was changed, and has each row recorded that it is broken in.
  ///
  /// Rows are handed on one at a time; only keys are remembered, so that none is recorded twice.
  ///
  /// - Returns: How many rows were recorded.
  /// - Throws: `SQLiteError`; `EngineError` with `conflict` when violations are refused unasked.
  func recordViolations(
    _ summary: ChangesetSummary, in bytes: RawSpan, _ decider: ConflictDecider, _ session: ApplySession,
    on connection: borrowing SQLiteConnection
  ) throws -> Int {
    let sections = TableSections(summary)
    let referring = try referringTables(sections, session, on: connection)
    guard !referring.isEmpty else { return 0 }
    let box = try session.schema(on: connection)
    var count = 0
    for entry in box.schema.entries where entry.kind == .table && referring.contains(entry.name) {
      let child = try box.schema.definition(of: entry, on: connection)
      var found = BrokenRows(of: child, limit: Self.limit, decider)
      for key in child.foreignKeys {
        let parentName = TableName(key.parent)
        guard changed[entry.name] != nil || changed[parentName] != nil,
          let check = try ForeignKeyCheck(key, of: child, in: box.schema, on: connection)
        else { continue }
        found.message =
          "a row of table \"\(entry.name)\" refers to a row of \"\(parentName)\" that is not there"
        if let match = changed[entry.name] {
          try check.written(match, sections, in: bytes, &found, on: connection)
        }
        if let match = changed[parentName], sections.takeAway(from: parentName) {
          try check.orphaned(match, sections, in: bytes, &found, on: connection)
        }
      }
      count += found.count
    }
    return count
  }

  /// The tables that have a foreign key and were changed, or whose parent may have lost a row they refer to.
  private func referringTables(
    _ sections: TableSections, _ session: ApplySession, on connection: borrowing SQLiteConnection
  ) throws -> Set<TableName> {
    var tables: Set<TableName> = []
    for reference in try session.references(on: connection) {
      let losesParents = changed[reference.parent] != nil && sections.takeAway(from: reference.parent)
      if changed[reference.child] != nil || losesParents { tables.insert(reference.child) }
    }
    return tables
  }
}

/// Takes the rows of one table that refer to others that are not there, each once.
private struct BrokenRows {
  var message = ""
  private(set) var count = 0
  private let limit: Int
  private let layout: ConflictLayout
  private let decider: ConflictDecider
  /// The keys of the rows seen, encoded.
  private var keys: Set<[UInt8]> = []

  init(of child: TableDefinition, limit: Int, _ decider: ConflictDecider) {
    layout = ConflictLayout(child)
    self.limit = limit
    self.decider = decider
  }

  var isFull: Bool { count >= limit }

  /// Records the row that the statement stands on.
  ///
  /// - Throws: `SQLiteError`; `EngineError` with `conflict` when violations are refused unasked.
  mutating func add(_ prepared: TableStatements.Prepared, on connection: borrowing SQLiteConnection) throws {
    var key = ChangesetWriter()
    for place in layout.key { key.append(column: place, of: prepared.statement) }
    // NULL in the key tells rows apart as little as none: such a row is known by all its values.
    if layout.key.contains(where: { prepared.statement.isNull(at: $0) }) {
      for place in layout.columns.indices { key.append(column: place, of: prepared.statement) }
    }
    guard !isFull, keys.insert(key.bytes).inserted else { return }
    if decider.refusesViolationsUnasked {
      throw EngineError(
        .conflict, "\(message); under the policy \"abort\" nothing of this file is applied", table: layout.name.text)
    }
    count += 1
    try decider.recordViolation(StandingRow(prepared), layout, message: message, on: connection)
  }
}

/// How one foreign key is checked.
///
/// Keys that SQLite itself could not enforce (no such parent, no unique index on its columns) are the schema's fault and
/// are not checked: <https://sqlite.org/foreignkeys.html#fk_indexes>.
private struct ForeignKeyCheck {
  private let child: TableDefinition
  private let parent: TableDefinition
  private let parentColumns: [Int]
  /// The local row: its columns as SQL, in the order of the layout.
  private let layout: [String]
  private let references: [String]
  private let isMissing: String

  init?(
    _ key: ForeignKey, of child: TableDefinition, in schema: borrowing SchemaReader,
    on connection: borrowing SQLiteConnection
  ) throws {
    guard let entry = schema.entry(named: TableName(key.parent)), entry.kind == .table else { return nil }
    let parent = try schema.definition(of: entry, on: connection)
    let columns =
      key.parentColumns.isEmpty ? parent.primaryKey : key.parentColumns.compactMap { parent.column(named: $0) }
    let isUnique = ([parent.primaryKey] + parent.unique).contains { Set($0) == Set(columns) }
    guard columns.count == key.columns.count, !columns.isEmpty, isUnique else { return nil }
    self.child = child
    self.parent = parent
    parentColumns = columns
    layout = child.changesetColumnsSQL
    references = key.columns.map { "c.\(SQLText.identifier($0))" }
    // The parent stands on the left, because its collating sequence decides. So does its affinity: the plus takes the
    // child's away, which would also keep the parent's index from being used.
    let equal = zip(columns, references).map { "p.\(SQLText.identifier(parent.columns[$0].name)) = +\($1)" }
    isMissing =
      "NOT EXISTS (SELECT 1 FROM main.\(SQLText.identifier(parent.name)) AS p WHERE \(equal.joined(separator: " AND ")))"
  }

  private func select(where condition: String) -> String {
    let results = layout.map { "c.\($0)" }.joined(separator: ", ")
    let isSet = references.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")
    return "SELECT \(results) FROM main.\(SQLText.identifier(child.name)) AS c "
      + "WHERE \(condition) AND \(isSet) AND \(isMissing)"
  }

  /// Rows that the changes wrote and that refer to nothing.
  func written(
    _ match: TableMatch, _ sections: TableSections, in bytes: RawSpan, _ found: inout BrokenRows,
    on connection: borrowing SQLiteConnection
  ) throws {
    let key = child.keyPlaces
    let columns = key.compactMap { match.columns.firstIndex(of: $0) }
    guard var walk = sections.walk(of: TableName(child.name)) else { return }
    let change = walk.change
    var lookups: [[Bool]: TableStatements.Prepared] = [:]
    var nullKeys: Set<[UInt8]> = []
    while !found.isFull, walk.next(in: bytes) {
      guard change.operation != .delete else { continue }
      let isNull = columns.map { change.row($0).kind == .null }
      if isNull.contains(true) {
        // Rows with NULL in the key are told apart by content: all that share the key are found at once.
        var writer = ChangesetWriter()
        for column in columns { writer.append(change.row(column), of: bytes) }
        guard nullKeys.insert(writer.bytes).inserted else { continue }
      }
      let lookup: TableStatements.Prepared
      if let known = lookups[isNull] {
        lookup = known
      } else {
        // `IS ?` would find NULL, too, but not by an index: each row would cost a scan of the table.
        let terms = zip(key, isNull).enumerated().map { index, part in
          "c.\(layout[part.0]) \(part.1 ? "IS NULL" : "= ?\(index + 1)")"
        }
        lookup = TableStatements.Prepared(
          try connection.prepare(select(where: terms.joined(separator: " AND ")), isPersistent: true))
        lookups[isNull] = lookup
      }
      for (index, column) in columns.enumerated() where !isNull[index] {
        try lookup.statement.bind(change.row(column), in: bytes, at: index)
      }
      while try lookup.statement.step() { try found.add(lookup, on: connection) }
      lookup.statement.reset()
    }
  }

  /// Rows that refer to what the changes took away.
  func orphaned(
    _ match: TableMatch, _ sections: TableSections, in bytes: RawSpan, _ found: inout BrokenRows,
    on connection: borrowing SQLiteConnection
  ) throws {
    let offset = parent.goesByRowID ? 1 : 0
    let columns = parentColumns.compactMap { match.columns.firstIndex(of: $0 + offset) }
    guard columns.count == parentColumns.count else { return }
    let names = columns.indices.map { "k\($0)" }.joined(separator: ", ")
    let values = columns.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
    try connection.execute("CREATE TEMP TABLE IF NOT EXISTS buckia_removed_\(columns.count)(\(names))")
    try connection.execute("DELETE FROM temp.buckia_removed_\(columns.count)")
    let insert = try connection.prepare(
      "INSERT INTO temp.buckia_removed_\(columns.count) VALUES (\(values))", isPersistent: true)
    let parentKey = parent.goesByRowID ? [] : parent.primaryKey
    let key = parentKey.compactMap { match.columns.firstIndex(of: $0) }
    let isSame = parentKey.enumerated().map {
      "\(SQLText.identifier(parent.columns[$0.element].name)) = ?\($0.offset + 1)"
    }
    let unchanged = try connection.prepare(
      "SELECT \(parentColumns.map { SQLText.identifier(parent.columns[$0].name) }.joined(separator: ", ")) "
        + "FROM main.\(SQLText.identifier(parent.name)) WHERE \(isSame.isEmpty ? "0" : isSame.joined(separator: " AND "))"
    )
    guard var walk = sections.walk(of: TableName(parent.name)) else { return }
    let change = walk.change
    var isEmpty = true
    while walk.next(in: bytes) {
      let isGone =
        change.operation == .delete
        || change.operation == .update && columns.contains { change.new($0).isDefined }
      guard isGone else { continue }
      if columns.contains(where: { !change.old($0).isDefined }) {
        // An UPDATE tells old values only of what it changed; the rest of the parent's key is still in the row.
        for (index, column) in key.enumerated() { try unchanged.bind(change.old(column), in: bytes, at: index) }
        defer { unchanged.reset() }
        guard try unchanged.step() else { continue }
        for index in columns.indices { try insert.bind(column: index, of: unchanged, at: index) }
      }
      for (index, column) in columns.enumerated() where change.old(column).isDefined {
        try insert.bind(change.old(column), in: bytes, at: index)
      }
      try insert.run()
      isEmpty = false
    }
    guard !isEmpty else { return }
    let condition =
      "(\(references.joined(separator: ", "))) IN (SELECT \(names) FROM temp.buckia_removed_\(columns.count))"
    let orphans = TableStatements.Prepared(try connection.prepare(select(where: condition)))
    while !found.isFull, try orphans.statement.step() { try found.add(orphans, on: connection) }
    orphans.statement.reset()
    // The connection may be the application's, and stay open for days.
    try connection.execute("DELETE FROM temp.buckia_removed_\(columns.count)")
  }
}
