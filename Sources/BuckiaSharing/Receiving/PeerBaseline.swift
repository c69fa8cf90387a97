import BuckiaBytes
import BuckiaApply
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The baseline of a share with the sender of a diff alone. Values that the sender has sent, and that were accepted here,
/// need not be sent back.
///
/// A change moves the baseline only as far as it was accepted or already present. If the baseline followed a refused
/// change, the next share would not send the difference, and both sides would stay different.
final class PeerBaseline {
  private let connection: SQLiteConnection
  private let entries: [TableName: BaselineEntry]
  private let scope: ShareScope
  private let share: Int64
  /// The columns of the baseline. The table may have more, added since the last share.
  private var present: [TableName: [String]] = [:]
  /// Reads rows of a table in the columns of a changeset; columns that were not sent are NULL.
  private typealias RowQuery = (columns: [String], isSent: [Bool], sql: String)
  private var rowQueries: [TableName: RowQuery] = [:]
  /// Statements, built once for each table.
  private var lookups: [TableName: String] = [:]
  private var insertions: [TableName: Insertion] = [:]
  private var hashedRows: [TableName: BaselineRows] = [:]
  /// The columns that the state digests of the stream cover.
  private var hashedColumns: [TableName: [String]] = [:]
  /// The keys of rows that changes have moved.
  private var followed: [TableName: ScopePageDigests.ChangedKeys] = [:]

  /// - Parameter isBeforeSnapshot: True for the rows that were sent before the snapshot being made.
  /// - Throws: `SQLiteError`; `ReplicationError` when the scope in the ledger is damaged.
  init(of share: ShareEntry, isBeforeSnapshot: Bool = false, on connection: borrowing SQLiteConnection) throws {
    self.connection = SQLiteConnection(sharing: connection)
    let former = try isBeforeSnapshot ? BaselineEntry.former(of: share.number, on: connection) : []
    let found = try former + BaselineEntry.all(of: share.number, on: connection)
    entries = Dictionary(found.map { ($0.table, $0) }) { first, _ in first }
    scope = try ShareScope(json: share.scope)
    self.share = share.number
    for (table, entry) in entries {
      let query = "SELECT name FROM pragma_table_info(?1, 'main')"
      present[table] = try connection.rows(of: query, entry.name.text) { $0.text(at: 0) ?? "" }
    }
    for state in try StateEntry.all(of: .share(share.number), stream: share.stream, on: connection) {
      hashedColumns[state.table] = try TableState(state, at: connection.path).columns
    }
  }

  /// Moves the baseline by an applied change, as far as it was accepted.
  ///
  /// - Parameters:
  ///   - isForgotten: True if the row of an INSERT is missing because it was deleted, which its author does not know.
  ///     The baseline gets the row, and the next share sends the deletion.
  ///   - isKept: True if the row of a DELETE stays because others refer to it. The baseline loses the row, and the next
  ///     share sends it.
  ///   - edited: The places of columns that the change has set and whose unsent local edits are later. The next share
  ///     sends them.
  /// - Throws: `SQLiteError`.
  func follow(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, isForgotten: Bool = false,
    isKept: Bool = false, beside edited: Set<Int> = []
  ) throws {
    guard let entry = entries[table.name] else { return }
    let row = change.operation == .insert ? reader.new : reader.old
    guard let columns = hashedColumns[table.name], table.hasKey(row) else {
      try move(change, reader, bytes, of: table, in: entry, isForgotten: isForgotten, isKept: isKept, beside: edited)
      return
    }
    let rows = hashedRows[table.name] ?? BaselineRows(entry, columns: columns, on: connection)
    hashedRows[table.name] = rows
    let before = try rows.hash(row, bytes, of: table)
    try move(change, reader, bytes, of: table, in: entry, isForgotten: isForgotten, isKept: isKept, beside: edited)
    let after = try rows.hash(row, bytes, of: table)
    guard before != after else { return }
    // The stream has another version.
    let asides = RowNotes(.aside, of: table.name, for: share)
    let key = table.foldedKey(row, bytes)
    let said = try asides.state(of: key, on: connection) ?? RowState(before)
    try asides.note(said == RowState(after) ? nil : said, of: key, on: connection)
  }

  private func move(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, in entry: BaselineEntry,
    isForgotten: Bool, isKept: Bool, beside edited: Set<Int>
  ) throws {
    let baseline = "main.\(entry.name.quoted)"
    noteKey(change.operation == .insert ? reader.new : reader.old, bytes, of: table)
    switch change.operation {
    case .insert where !edited.isEmpty:
      try update(reader.new, reader, bytes, of: table, in: baseline, beside: edited)
    case .insert:
      try insert(reader.new, bytes, of: table, into: baseline, isForgotten: isForgotten)
      // Both have had the row before, and the change was accepted in part.
      if try connection.cachedInteger("SELECT changes()") == 0 {
        try update(reader.new, reader, bytes, of: table, in: baseline, beside: edited)
      }
    case .update: try update(reader.old, reader, bytes, of: table, in: baseline, beside: edited)
    case .delete:
      // The row may be here with its key spelled otherwise: that is an INSERT of its own.
      guard try isKept || !table.finds(table.exactLookup, reader.old, bytes, on: connection) else { return }
      try connection.run(
        cached: "DELETE FROM \(baseline) WHERE \(table.condition(from: 1))", table.keyValues(reader.old), bytes)
    }
  }

  /// Ends the work. Call it after the last change.
  ///
  /// - Throws: `SQLiteError`.
  func finish() throws {
    for (table, keys) in followed {
      if let baseline = entries[table]?.number { try ScopePageDigests.forget(keys, of: baseline, on: connection) }
    }
    followed = [:]
  }

  private func noteKey(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) {
    var keys = followed.removeValue(forKey: table.name) ?? ScopePageDigests.ChangedKeys()
    if table.keyPlaces.count == 1, ProvenanceEntry.hasBlocks(for: table.local), row[table.keyPlaces[0]].kind == .integer
    {
      keys.add(row[table.keyPlaces[0]].integer(in: bytes))
    } else {
      keys.add(table.key(row, bytes))
    }
    followed[table.name] = keys
  }

  /// True if the baseline has a row.
  func has(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> Bool {
    guard let entry = entries[table.name] else { return false }
    let lookup =
      lookups[table.name] ?? "SELECT 1 FROM main.\(entry.name.quoted) WHERE \(table.condition(from: 1))"
    lookups[table.name] = lookup
    return try table.finds(lookup, row, bytes, on: connection)
  }

  /// The stream's version of a row; nil if it is that of the baseline.
  func aside(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> RowState? {
    try RowNotes(.aside, of: table.name, for: share).state(of: table.foldedKey(row, bytes), on: connection)
  }

  /// The sent version of a row.
  struct SentRow {
    /// The values in the format of changesets, by the columns of a changeset; nil for columns that were not sent.
    let values: [[UInt8]?]
    /// The sum of the hashes of the values in other columns.
    let otherColumns: UInt64
  }

  /// The sent version of a row; nil if it was not sent.
  ///
  /// - Throws: `SQLiteError`.
  func sentRow(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> SentRow? {
    guard let entry = entries[table.name], let values = try values(row, bytes, of: table) else { return nil }
    let others = (present[table.name] ?? []).filter { name in
      !table.columns.contains { ASCIIName.matches($0, name) }
    }
    guard !others.isEmpty else { return SentRow(values: values, otherColumns: 0) }
    let rows = BaselineRows(entry, columns: others, on: connection)
    return SentRow(values: values, otherColumns: try rows.hash(row, bytes, of: table) ?? 0)
  }

  /// The sent values of a row in the format of changesets, by the columns of a changeset; nil for columns that were not
  /// sent.
  ///
  /// - Returns: nil if the row was not sent.
  func values(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> [[UInt8]?]? {
    guard let entry = entries[table.name] else { return nil }
    let query = rowQuery(of: table, in: entry)
    let prepared = try connection.cached(query.sql)
    defer {
      prepared.statement.reset()
      prepared.statement.clearBindings()
    }
    try table.bindKey(row, bytes, to: prepared.statement)
    guard try prepared.statement.step() else { return nil }
    return query.isSent.enumerated().map { index, isSent in
      isSent ? prepared.statement.record(of: index..<index + 1) : nil
    }
  }

  /// The hash of the sent version of a row; nil if the row was not sent, or not all columns of a changeset were.
  func contentHash(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> UInt64? {
    guard let sent = try values(row, bytes, of: table), sent.allSatisfy({ $0 != nil }) else { return nil }
    return sent.flatMap { $0 ?? [] }.withRawSpan { table.contentHash(ValueSlice.values(sent.count, of: $0), $0) }
  }

  /// True if the scope declares a reference by a column.
  func declaresReference(by column: String, of table: TableName) -> Bool {
    scope.references.contains { $0.table == table && $0.columns.contains { ASCIIName.matches($0, column) } }
  }

  /// The places of the columns that recipients get with their local values.
  func placesSentAsTheyAre(of table: KeyedTable) -> Set<Int> { Set(columns(of: table).compactMap(\.place)) }

  /// The query for the sent version of a row, in the columns of a changeset.
  private func rowQuery(of table: KeyedTable, in entry: BaselineEntry) -> RowQuery {
    if let query = rowQueries[table.name], query.columns == table.columns { return query }
    let present = Set((present[table.name] ?? []).map { ASCIIName.folded($0) })
    let isSent = table.columns.map { present.contains(ASCIIName.folded($0)) }
    let results = zip(table.columns, isSent).map { $1 ? SQLText.identifier($0) : "NULL" }.joined(separator: ", ")
    let sql = "SELECT \(results) FROM main.\(entry.name.quoted) WHERE \(table.condition(from: 1))"
    let query = (table.columns, isSent, sql)
    rowQueries[table.name] = query
    return query
  }

  /// The columns that recipients get with their local values, with their places in the changeset; nil if the diff lacks
  /// any of them.
  private func columns(of table: KeyedTable) -> [(name: String, place: Int?)] {
    let shared = scope.table(table.name)
    let present = present[table.name] ?? []
    let omitted = shared?.omittedColumns(of: table.local) ?? []
    return table.local.columns.filter { column in
      guard present.contains(where: { ASCIIName.matches($0, column.name) }) else { return false }
      return !omitted.contains { ASCIIName.matches($0, column.name) }
    }.map { column in
      let isRewritten = shared?.rewrittenColumns.keys.contains { ASCIIName.matches($0, column.name) } == true
      return (column.name, isRewritten ? nil : table.columns.firstIndex { ASCIIName.matches($0, column.name) })
    }
  }

  /// How a row is written to the baseline: the columns of the changeset, the places of bound values, a statement that
  /// copies the row from the table if it has these values, and one that inserts the values themselves.
  private typealias Insertion = (columns: [String], places: [Int], copy: String, insert: String)

  private func insert(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, into baseline: String, isForgotten: Bool
  ) throws {
    guard table.hasKey(row), let insertion = insertion(of: table, into: baseline) else { return }
    let values = insertion.places.map { row[$0] }
    if isForgotten { return try connection.run(cached: insertion.insert, values, bytes) }
    try connection.run(cached: insertion.copy, values + table.keyValues(row), bytes)
  }

  /// - Returns: nil if recipients do not get all columns of the changeset.
  private func insertion(of table: KeyedTable, into baseline: String) -> Insertion? {
    if let known = insertions[table.name], known.columns == table.columns { return known }
    let columns = columns(of: table)
    let rewritten = scope.table(table.name)?.rewrittenColumns ?? [:]
    var results: [String] = []
    var terms: [String] = []
    var places: [Int] = []
    var values: [String] = []
    for column in columns {
      let name = SQLText.identifier(column.name)
      if let place = column.place {
        places.append(place)
        terms.append(Self.isSame(name, places.count))
        results.append(name)
        values.append("?\(places.count)")
      } else if let value = rewritten.first(where: { ASCIIName.matches($0.key, column.name) })?.value {
        results.append(value.literal)
        values.append(value.literal)
      } else {
        return nil
      }
    }
    let names = columns.map { SQLText.identifier($0.name) }.joined(separator: ", ")
    let insert = "INSERT OR REPLACE INTO \(baseline)(\(names))"
    let copy = """
      \(insert) SELECT \(results.joined(separator: ", ")) FROM \(table.sql) \
      WHERE \(table.condition(from: places.count + 1)) AND \(terms.joined(separator: " AND "))
      """
    let made = (table.columns, places, copy, "\(insert) VALUES (\(values.joined(separator: ", ")))")
    insertions[table.name] = made
    return made
  }

  private func update(
    _ row: [ValueSlice], _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, in baseline: String,
    beside edited: Set<Int>
  ) throws {
    let changed = columns(of: table).compactMap { column in
      column.place.flatMap { reader.new[$0].isDefined ? (SQLText.identifier(column.name), $0) : nil }
    }
    guard !changed.isEmpty else { return }
    let assignments = changed.enumerated().map { index, column in
      if edited.contains(column.1) { return "\(column.0) = ?\(index + 1)" }
      let isTaken = "SELECT \(Self.isSame("m.\(column.0)", index + 1)) FROM \(table.sql) AS m"
      let key = table.condition(from: changed.count + 1, in: "m")
      return "\(column.0) = CASE WHEN (\(isTaken) WHERE \(key)) THEN ?\(index + 1) ELSE \(column.0) END"
    }
    let sql =
      "UPDATE \(baseline) SET \(assignments.joined(separator: ", ")) WHERE \(table.condition(from: changed.count + 1))"
    try connection.run(cached: sql, changed.map { reader.new[$0.1] } + table.keyValues(row), bytes)
  }

  /// True if a column has the value of a parameter, by storage class and bytes.
  private static func isSame(_ column: String, _ parameter: Int) -> String {
    "(\(column) IS ?\(parameter) COLLATE BINARY AND typeof(\(column)) = typeof(?\(parameter)))"
  }
}
