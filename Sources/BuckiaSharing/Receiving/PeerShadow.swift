import BuckiaBytes
import BuckiaApply
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The shadow of a share with one person, who has sent a diff: what they say they have, and is so here, need not be sent back.
///
/// A change moves the shadow only where it was taken, or was so already. What was left out, held or refused leaves it as it is: else
/// the next share would quietly revert its author.
final class PeerShadow {
  private let connection: SQLiteConnection
  private let entries: [TableName: ShadowEntry]
  private let scope: ShareScope
  private let share: Int64
  /// The columns that the shadow has: others may have come since the last share.
  private var present: [TableName: [String]] = [:]
  /// Reads rows of a table in the columns of a changeset; those that were not sent are NULL.
  private typealias RowQuery = (columns: [String], isSent: [Bool], sql: String)
  private var rowQueries: [TableName: RowQuery] = [:]
  /// Statements that are put together once for each table.
  private var lookups: [TableName: String] = [:]
  private var insertions: [TableName: Insertion] = [:]
  private var hashedRows: [TableName: ShadowRows] = [:]
  /// The columns that the sums of the stream are of.
  private var hashedColumns: [TableName: [String]] = [:]
  /// The keys of rows that have been followed.
  private var followed: [TableName: ScopePrints.ChangedKeys] = [:]

  /// - Parameter isBeforeSnapshot: True for what was sent before the snapshot that is being made.
  /// - Throws: `SQLiteError`; `ReplicationError` when the scope in the ledger is damaged.
  init(of share: ShareEntry, isBeforeSnapshot: Bool = false, on connection: borrowing SQLiteConnection) throws {
    self.connection = SQLiteConnection(sharing: connection)
    let former = try isBeforeSnapshot ? ShadowEntry.former(of: share.number, on: connection) : []
    let found = try former + ShadowEntry.all(of: share.number, on: connection)
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

  /// Follows a change that has been applied, as far as it has been taken.
  ///
  /// - Parameters:
  ///   - isForgotten: True if the row of an INSERT is not here because it was deleted, of which its author does not know. The shadow has
  ///     it then, and so the next share tells of it.
  ///   - isKept: True if the row of a DELETE is here still because others refer to it. The shadow has it no more, so the next share
  ///     sends it.
  ///   - edited: The places in the changeset of columns that the change has set and that were edited here, which counts as later: the next
  ///     share tells of that.
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
    let rows = hashedRows[table.name] ?? ShadowRows(entry, columns: columns, on: connection)
    hashedRows[table.name] = rows
    let before = try rows.hash(row, bytes, of: table)
    try move(change, reader, bytes, of: table, in: entry, isForgotten: isForgotten, isKept: isKept, beside: edited)
    let after = try rows.hash(row, bytes, of: table)
    guard before != after else { return }
    // The stream has not said so.
    let asides = AsideRows(of: share, table.name)
    let key = table.key(row, bytes)
    let said = try asides.row(key, on: connection) ?? RowState(before)
    try asides.note(said == RowState(after) ? nil : said, key, on: connection)
  }

  private func move(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, in entry: ShadowEntry,
    isForgotten: Bool, isKept: Bool, beside edited: Set<Int>
  ) throws {
    let shadow = "main.\(entry.name.quoted)"
    noteKey(change.operation == .insert ? reader.new : reader.old, bytes, of: table)
    switch change.operation {
    case .insert where !edited.isEmpty:
      try update(reader.new, reader, bytes, of: table, in: shadow, beside: edited)
    case .insert:
      try insert(reader.new, bytes, of: table, into: shadow, isForgotten: isForgotten)
      // What both have had before, and only some of it was taken.
      if try connection.cachedInteger("SELECT changes()") == 0 {
        try update(reader.new, reader, bytes, of: table, in: shadow, beside: edited)
      }
    case .update: try update(reader.old, reader, bytes, of: table, in: shadow, beside: edited)
    case .delete:
      guard try isKept || !table.finds(table.lookup, reader.old, bytes, on: connection) else { return }
      try connection.run(
        cached: "DELETE FROM \(shadow) WHERE \(table.condition(from: 1))", table.keyValues(reader.old), bytes)
    }
  }

  /// To be called behind the last change.
  ///
  /// - Throws: `SQLiteError`.
  func finish() throws {
    for (table, keys) in followed {
      if let shadow = entries[table]?.number { try ScopePrints.forget(keys, of: shadow, on: connection) }
    }
    followed = [:]
  }

  private func noteKey(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) {
    var keys = followed.removeValue(forKey: table.name) ?? ScopePrints.ChangedKeys()
    if table.keyPlaces.count == 1, VouchEntry.hasBlocks(for: table.local), row[table.keyPlaces[0]].kind == .integer {
      keys.add(row[table.keyPlaces[0]].integer(in: bytes))
    } else {
      keys.add(table.key(row, bytes))
    }
    followed[table.name] = keys
  }

  /// True if the shadow has a row.
  func has(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> Bool {
    guard let entry = entries[table.name] else { return false }
    let lookup =
      lookups[table.name] ?? "SELECT 1 FROM main.\(entry.name.quoted) WHERE \(table.condition(from: 1))"
    lookups[table.name] = lookup
    return try table.finds(lookup, row, bytes, on: connection)
  }

  /// What the stream of the share has said of a row; nil where that is what the shadow has.
  func aside(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> RowState? {
    try AsideRows(of: share, table.name).row(table.key(row, bytes), on: connection)
  }

  /// A row as it was sent.
  struct SentRow {
    /// Its values in the columns of a changeset, in its format: nil for those that were not sent.
    let values: [[UInt8]?]
    /// The sum of the hashes of what was sent in other columns.
    let otherColumns: UInt64
  }

  /// A row as it was sent; nil where it was not.
  ///
  /// - Throws: `SQLiteError`.
  func sentRow(_ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable) throws -> SentRow? {
    guard let entry = entries[table.name], let values = try values(row, bytes, of: table) else { return nil }
    let others = (present[table.name] ?? []).filter { name in
      !table.columns.contains { ASCIIName.matches($0, name) }
    }
    guard !others.isEmpty else { return SentRow(values: values, otherColumns: 0) }
    let rows = ShadowRows(entry, columns: others, on: connection)
    return SentRow(values: values, otherColumns: try rows.hash(row, bytes, of: table) ?? 0)
  }

  /// The values that a row was sent with, in the columns of a changeset and in its format: nil for those that were not sent.
  ///
  /// - Returns: nil where the row was not sent.
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

  /// True if the scope says that rows refer to others by a column.
  func declaresReference(by column: String, of table: TableName) -> Bool {
    scope.references.contains { $0.table == table && $0.columns.contains { ASCIIName.matches($0, column) } }
  }

  /// The places in a changeset of the columns that others get as they are here.
  func placesSentAsTheyAre(of table: KeyedTable) -> Set<Int> { Set(columns(of: table).compactMap(\.place)) }

  /// Reads the columns of a changeset of a row that was sent.
  private func rowQuery(of table: KeyedTable, in entry: ShadowEntry) -> RowQuery {
    if let query = rowQueries[table.name], query.columns == table.columns { return query }
    let present = Set((present[table.name] ?? []).map { ASCIIName.folded($0) })
    let isSent = table.columns.map { present.contains(ASCIIName.folded($0)) }
    let results = zip(table.columns, isSent).map { $1 ? SQLText.identifier($0) : "NULL" }.joined(separator: ", ")
    let sql = "SELECT \(results) FROM main.\(entry.name.quoted) WHERE \(table.condition(from: 1))"
    let query = (table.columns, isSent, sql)
    rowQueries[table.name] = query
    return query
  }

  /// The columns that others get as they are here, with their places in the changeset; nil where the diff does not have all of them.
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

  /// How a row of a table gets into the shadow: the columns of the changeset, the places of those that are bound, what copies the row
  /// from the table if it is there with these values, and what inserts the values themselves.
  private typealias Insertion = (columns: [String], places: [Int], copy: String, insert: String)

  private func insert(
    _ row: [ValueSlice], _ bytes: RawSpan, of table: KeyedTable, into shadow: String, isForgotten: Bool
  ) throws {
    guard table.hasKey(row), let insertion = insertion(of: table, into: shadow) else { return }
    let values = insertion.places.map { row[$0] }
    if isForgotten { return try connection.run(cached: insertion.insert, values, bytes) }
    try connection.run(cached: insertion.copy, values + table.keyValues(row), bytes)
  }

  /// - Returns: nil where others do not get all columns as the changeset has them.
  private func insertion(of table: KeyedTable, into shadow: String) -> Insertion? {
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
    let insert = "INSERT OR REPLACE INTO \(shadow)(\(names))"
    let copy = """
      \(insert) SELECT \(results.joined(separator: ", ")) FROM \(table.sql) \
      WHERE \(table.condition(from: places.count + 1)) AND \(terms.joined(separator: " AND "))
      """
    let made = (table.columns, places, copy, "\(insert) VALUES (\(values.joined(separator: ", ")))")
    insertions[table.name] = made
    return made
  }

  private func update(
    _ row: [ValueSlice], _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable, in shadow: String,
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
      "UPDATE \(shadow) SET \(assignments.joined(separator: ", ")) WHERE \(table.condition(from: changed.count + 1))"
    try connection.run(cached: sql, changed.map { reader.new[$0.1] } + table.keyValues(row), bytes)
  }

  /// True if a column has the value of a parameter, by storage class and bytes.
  private static func isSame(_ column: String, _ parameter: Int) -> String {
    "(\(column) IS ?\(parameter) COLLATE BINARY AND typeof(\(column)) = typeof(?\(parameter)))"
  }
}
