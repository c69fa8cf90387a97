import BuckiaApply
import BuckiaBytes
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A table with rows that only their content identifies: one without a primary key, or with NULL in the key of some
/// rows.
///
/// A content is the values of all columns, in the order of the table, except those that shares from here leave out or
/// rewrite.
final class ContentTable {
  let name: TableName
  let counter: ContentCounter
  /// The columns of a content.
  let columns: [String]
  private let definitions: [ColumnDefinition]
  private let isStrict: Bool
  /// The place of each content column in the changeset; nil if it is missing there.
  private let places: [Int?]
  /// The default of each content column, in the format of changesets.
  private let defaults: [[UInt8]]
  /// The places of the key in the changeset; nil for a table without one.
  private let keyPlaces: [Int]?
  private let connection: SQLiteConnection
  /// The columns of a content, in the ledger's form.
  private let document: String
  private var ledger: CountedTable?
  /// The columns of the changeset; nil if a content has all of them.
  private let hiding: [String]?
  /// True if stored values may differ from the sent ones.
  let mayConvert: Bool
  /// The table, the values of a content, and the condition for rows that their content identifies, as SQL.
  private let source: String?
  private let values: [String]
  private let condition: String?

  /// - Parameters:
  ///   - author: The table as it travels.
  ///   - present: The local table; nil if it does not exist yet.
  ///   - scopes: The scopes of all shares from here.
  /// - Returns: nil if a key identifies all rows.
  /// - Throws: `SQLiteError`.
  init?(
    _ author: TableDefinition, _ present: TableDefinition?, _ scopes: [ShareScope],
    on connection: borrowing SQLiteConnection
  ) throws {
    let local = present ?? author
    guard author.isKeyedByRowID == local.isKeyedByRowID, local.module == nil,
      author.isKeyedByRowID || !author.nullableKeyColumns.isEmpty && author.hasSameKey(as: local)
    else { return nil }
    name = TableName(local.name)
    let shared = scopes.compactMap { $0.table(TableName(local.name)) }
    let counted = local.columns.filter { column in
      !shared.contains { table in
        table.omittedColumns(of: local).contains { ASCIIName.matches($0, column.name) }
          || table.rewrittenColumns.keys.contains { ASCIIName.matches($0, column.name) }
      }
    }
    // New columns are added before the changes of their diff are applied.
    let added = author.columns.filter { local.column(named: $0.name) == nil }
    definitions = counted + added
    isStrict = local.isStrict
    columns = definitions.map(\.name)
    document = JSONValue.strings(columns).text()
    let sent = author.changesetColumns
    places = columns.map { name in sent.firstIndex { ASCIIName.matches($0, name) } }
    defaults = try zip(definitions, places).map { column, place in
      try place == nil ? column.encodedAddedValue(isStrict: local.isStrict) : []
    }
    hiding = counted.count < local.columns.count ? sent : nil
    keyPlaces = author.isKeyedByRowID ? nil : author.keyIndexes
    mayConvert = counted.contains { column in
      author.column(named: column.name).map { author.columns[$0].affinity != column.affinity } ?? false
    }
    values =
      try counted.map { SQLText.identifier($0.name) }
      + added.map { try AddedColumnValue.literal(of: $0, isStrict: local.isStrict) }
    source = present.map { "main.\(SQLText.identifier($0.name))" }
    condition = local.hasNullKeySQL
    counter = ContentCounter(of: source, values, where: condition, on: connection)
    self.connection = SQLiteConnection(sharing: connection)
    if local.isKeyedByRowID { counter.parked = try parkedContents() }
  }

  /// The number of parked rows with each content, by its hash. They count as present.
  private func parkedContents() throws -> [Int: Int64] {
    var found: [Int: Int64] = [:]
    for row in try ParkedRows.all(of: name, on: connection) {
      found[try contentMaker(from: row.columns)(row.values).hashValue, default: 0] += 1
    }
    return found
  }

  /// A counter of the rows in a selection.
  func counter(in selection: RowSelection) -> ContentCounter {
    ContentCounter(of: source, values, where: condition, in: selection, on: connection)
  }

  /// True if only its content identifies a row of a change.
  func isCounted(_ row: [ValueSlice]) -> Bool { keyPlaces?.contains { row[$0].kind == .null } ?? true }

  /// The content of a row of a change, in the format of changesets.
  func content(_ row: [ValueSlice], _ bytes: RawSpan) -> [UInt8] {
    var writer = ChangesetWriter()
    for (place, value) in zip(places, defaults) {
      if let place { writer.append(row[place], of: bytes) } else { writer.append(encoded: value) }
    }
    return writer.bytes
  }

  /// The hashes of all values of a content but one, for each of the values.
  func hashesWithoutOneValue(of content: [UInt8]) -> Set<Int> {
    content.withRawSpan { bytes in
      let values = ValueSlice.values(columns.count, of: bytes).map { bytes.array($0.encoded) }
      return Set(values.indices.map { place in [Array(values[..<place]), Array(values[(place + 1)...])].hashValue })
    }
  }

  /// One of the rows with a content, by the columns of the changeset, in the format of changesets.
  ///
  /// - Parameter number: The number of the row among those with the content, from 0.
  /// - Returns: nil if the content has all columns.
  /// - Throws: `SQLiteError`.
  func row(_ content: [UInt8], number: Int64) throws -> [UInt8]? {
    guard let hiding else { return nil }
    // The rowid of a row without a key has no meaning at other replicas.
    let results = hiding.map { keyPlaces == nil && $0 == TableDefinition.rowIDColumn ? "NULL" : SQLText.identifier($0) }
    return try counter.row(content, number: number, results)
  }

  /// The ledger's entry for the table's contents; nil if there is none.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  func counted() throws -> CountedTable? {
    if let ledger { return ledger }
    ledger = try CountedTable(name, on: connection)
    if let known = ledger, known.columns != document {
      try changeColumns(of: known)
      ledger = try CountedTable(name, on: connection)
    }
    return ledger
  }

  /// The ledger's entry for the table's contents, which is created if it is missing.
  ///
  /// - Throws: As ``counted()``.
  func makeCounted() throws -> CountedTable {
    let found = try counted() ?? CountedTable(making: name, columns: document, on: connection)
    ledger = found
    return found
  }

  /// The contents that some holders have or have had and that are deleted here, with one row each.
  ///
  /// - Throws: As ``counted()``.
  func deleted(heldBy holders: Set<String>) throws -> [[UInt8]: Int64] {
    guard let ledger = try counted() else { return [:] }
    var found: [[UInt8]: Int64] = [:]
    try ledger.forEachContent(heldBy: holders) { row in
      guard try counter.count(row) == 0, let known = try ledger.content(row),
        known.counts.present == 0 || known.absent < known.counts.present
      else { return }
      found[row] = 1
    }
    return found
  }

  /// The rows that the recipients of a share have and that the next difference must consider.
  ///
  /// - Parameters:
  ///   - brought: How many rows with each content a recipient has brought. The table's columns must not have changed
  ///     since.
  ///   - areForOne: True if the share has one recipient. Others may lack a row that one recipient has brought, so that it
  ///     is considered only if there are more or fewer of it here.
  /// - Returns: The number of rows with each content, 0 for rows that the recipient has deleted. A parked row is not
  ///   deleted.
  /// - Throws: `SQLiteError`.
  func held(_ brought: [[UInt8]: Int64], areForOne: Bool) throws -> [[UInt8]: Int64] {
    var found: [[UInt8]: Int64] = [:]
    for (content, rows) in brought where try areForOne || counter.count(content) != rows {
      found[content] = max(0, rows - (counter.parked[content.hashValue] ?? 0))
    }
    return found
  }

  /// The senders of a row; empty if rows with its content were inserted here.
  ///
  /// - Parameters:
  ///   - identity: The values that identify the row.
  ///   - columns: The columns with these values, as SQL.
  /// - Throws: As ``counted()``.
  func senders(ofRow identity: [ChangesetValue], identifiedBy columns: [String]) throws -> Set<String> {
    guard let source, let ledger = try counted() else { return [] }
    let isSame = columns.enumerated().map { "\($1) = ?\($0 + 1)" }.joined(separator: " AND ")
    let query = try connection.prepare("SELECT \(values.joined(separator: ", ")) FROM \(source) WHERE \(isSame)")
    for (place, value) in identity.enumerated() { try query.bind(value, at: place) }
    guard try query.step() else { return [] }
    let row = query.record(of: 0..<values.count)
    guard let known = try ledger.content(row) else { return [] }
    let own = try ReplicaIdentity.read(on: connection).map { known.counts.present(of: $0.incarnation) } ?? 0
    return try counter.count(row) > known.counts.present - own ? [] : ledger.holders(of: known)
  }

  /// Calls `body` with the rows of a holder: as many equal ones as other replicas have inserted.
  ///
  /// - Parameter results: The result columns, as SQL.
  /// - Throws: As ``counted()``; what `body` throws.
  func forEachRow(
    _ results: String, heldBy holder: String, _ body: (borrowing SQLiteStatement) throws -> Void
  ) throws {
    guard let source, let ledger = try counted() else { return }
    let own = try ReplicaIdentity.read(on: connection)?.incarnation
    var left: [Int: Int64] = [:]
    let count = try connection.prepare("SELECT \(results) FROM \(source)").columnCount
    let query = try connection.prepare(
      "SELECT \(results), \(values.joined(separator: ", ")) FROM \(source)\(condition.map { " WHERE \($0)" } ?? "")")
    while try query.step() {
      let row = query.record(of: count..<count + values.count)
      let hash = row.hashValue
      if left[hash] == nil {
        let known = try ledger.content(row).flatMap { try ledger.isHeld($0, by: holder) ? $0.counts : nil }
        left[hash] = known.map { counts in counts.present - (own.map { counts.present(of: $0) } ?? 0) } ?? 0
      }
      guard let rows = left[hash], rows > 0 else { continue }
      left[hash] = rows - 1
      try body(query)
    }
  }

  /// True if the table has, or had, rows that their content identifies.
  ///
  /// - Throws: As ``counted()``.
  func hasRows() throws -> Bool {
    try keyPlaces == nil || counted() != nil || counter.hasRows()
  }

  /// Counts all rows of the table.
  ///
  /// - Parameters:
  ///   - origin: The incarnation or dataset that has inserted the uncounted rows.
  ///   - holder: The holder of the rows.
  /// - Throws: As ``counted()``.
  func countAll(insertedBy origin: [UInt8], heldBy holder: String) throws {
    guard try hasRows() else { return }
    try counter.forEachContent { try count($0, insertedBy: origin, heldBy: holder) }
  }

  /// Counts the rows with a content, with the insertions and deletions made here since the last count.
  ///
  /// - Parameters: As those of ``countAll(insertedBy:heldBy:)``.
  /// - Throws: As ``counted()``.
  @discardableResult
  func count(_ row: [UInt8], insertedBy origin: [UInt8], heldBy holder: String) throws -> CopyCounts {
    let ledger = try makeCounted()
    let known = try ledger.content(row) ?? ledger.make(row)
    var content = known
    content.note(try counter.count(row), insertedBy: origin)
    try ledger.write(content, over: known)
    try ledger.note(content, at: holder)
    return content.counts
  }

  /// Adds the values of new columns to the contents, and removes those of dropped columns.
  private func changeColumns(of known: CountedTable) throws {
    guard case .array(let names)? = try? JSONParser.parse(Array(known.columns.utf8)) else {
      throw LedgerError(alteredAt: connection.path)
    }
    try known.setColumns(
      document, contentMaker(from: names.map { if case .string(let name) = $0 { name } else { "" } }))
  }

  /// A function that makes contents from rows with some columns, both in the format of changesets.
  private func contentMaker(from before: [String]) throws -> ([UInt8]) -> [UInt8] {
    let sources = try definitions.map { column -> (place: Int?, value: [UInt8]) in
      if let place = before.firstIndex(where: { ASCIIName.matches($0, column.name) }) { return (place, []) }
      return (nil, try column.encodedAddedValue(isStrict: isStrict))
    }
    return { row in
      row.withRawSpan { bytes in
        let values = ValueSlice.values(before.count, of: bytes)
        var writer = ChangesetWriter()
        for source in sources {
          if let place = source.place {
            writer.append(values[place], of: bytes)
          } else {
            writer.append(encoded: source.value)
          }
        }
        return writer.bytes
      }
    }
  }
}

/// The tables of a diff with rows that their content identifies.
final class ContentTables {
  private var tables: [TableName: ContentTable] = [:]
  /// The table that was used last, because the changes of a table are adjacent.
  private var last: (header: ChangesetTable, table: ContentTable?)?

  /// - Parameters:
  ///   - definitions: The tables as they travel.
  ///   - schema: The schema of the database.
  ///   - needsRows: True to include only tables that have such rows, or had.
  /// - Throws: `SQLiteError`, `ReplicationError`.
  init(
    _ definitions: [TableDefinition], _ schema: SchemaReader, needsRows: Bool = false,
    on connection: borrowing SQLiteConnection
  ) throws {
    let candidates = definitions.filter { $0.isKeyedByRowID || !$0.nullableKeyColumns.isEmpty }
    guard !candidates.isEmpty else { return }
    let scopes = try ShareEntry.all(on: connection).map { try ShareScope(json: $0.scope) }
    for definition in candidates {
      let name = TableName(definition.name)
      let entry = schema.entry(named: name)
      guard entry?.kind ?? .table == .table,
        let table = try ContentTable(definition, entry.map { try schema.definition(of: $0) }, scopes, on: connection),
        try !needsRows || table.hasRows()
      else { continue }
      tables[name] = table
    }
  }

  var isEmpty: Bool { tables.isEmpty }

  subscript(name: TableName) -> ContentTable? { tables[name] }

  /// The table of a changed row that only its content identifies; nil for other changes.
  func table(of header: ChangesetTable, _ row: [ValueSlice]) -> ContentTable? {
    if tables.isEmpty { return nil }
    if last?.header != header { last = (header, tables[TableName(header.name)]) }
    return last?.table.flatMap { $0.isCounted(row) ? $0 : nil }
  }
}

/// Counts the rows of a table by their content.
///
/// The first few contents are searched. After that all rows are read once, and the hash and the count of each content
/// are kept. The hash is keyed with a secret of the process, which keeps senders from choosing contents that collide.
final class ContentCounter {
  /// The number of searches before all rows are read.
  private static let searchLimit = 8

  private let all: String
  private let exists: Bool
  private let search: String?
  private let bindParameters: (borrowing SQLiteStatement) throws -> Void
  private let connection: SQLiteConnection
  private var counts: [Int: Int64] = [:]
  private var isComplete: Bool
  /// The number of parked rows with each content, by its hash.
  fileprivate(set) var parked: [Int: Int64] = [:]

  /// - Parameters:
  ///   - table: The table, as SQL; nil for one without rows.
  ///   - values: The values of a content, as SQL.
  ///   - condition: An SQL condition for the rows; nil for all rows.
  ///   - selection: A further selection of rows; nil for all.
  init(
    of table: String?, _ values: [String], where condition: String?, in selection: RowSelection? = nil,
    on connection: borrowing SQLiteConnection
  ) {
    let terms = [condition, selection?.condition].compactMap { $0.map { "(\($0)\n)" } }
    let isSame = values.enumerated().map { place, value in
      "\(value) IS ?\(place + 1) COLLATE BINARY AND typeof(\(value)) = typeof(?\(place + 1))"
    }
    func chosen(by terms: [String]) -> String {
      "FROM \(table ?? "")\(terms.isEmpty ? "" : " WHERE ")\(terms.joined(separator: " AND "))"
    }
    all = "SELECT \(values.joined(separator: ", ")) \(chosen(by: terms))"
    // A search cannot have the parameters of a selection.
    search = selection == nil ? chosen(by: isSame + terms) : nil
    bindParameters = { try selection?.bindParameters(to: $0) }
    exists = table != nil
    isComplete = table == nil
    self.connection = SQLiteConnection(sharing: connection)
  }

  /// The number of rows with a content.
  ///
  /// - Throws: `SQLiteError`.
  func count(_ content: [UInt8]) throws -> Int64 {
    try inTable(content) + (parked[content.hashValue] ?? 0)
  }

  private func inTable(_ content: [UInt8]) throws -> Int64 {
    let hash = content.hashValue
    if let known = counts[hash] { return known }
    if isComplete { return 0 }
    guard let search, counts.count < Self.searchLimit else {
      try countAll()
      return counts[hash] ?? 0
    }
    let query = try connection.prepare("SELECT count(*) \(search)")
    try find(content, by: query)
    let count = query.integer(at: 0)
    counts[hash] = count
    return count
  }

  /// One of the rows with a content; nil if there are fewer rows.
  func row(_ content: [UInt8], number: Int64, _ results: [String]) throws -> [UInt8]? {
    guard let search else { return nil }
    let query = try connection.prepare("SELECT \(results.joined(separator: ", ")) \(search) LIMIT 1 OFFSET \(number)")
    return try find(content, by: query) ? query.record(of: 0..<query.columnCount) : nil
  }

  @discardableResult
  private func find(_ content: [UInt8], by query: borrowing SQLiteStatement) throws -> Bool {
    try content.withRawSpan { bytes in
      var (position, place) = (0, 0)
      while position < bytes.byteCount {
        try query.bind(ValueSlice(verified: bytes, at: &position), in: bytes, at: place)
        place += 1
      }
      return try query.step()
    }
  }

  private func countAll() throws {
    counts = [:]
    isComplete = true
    try forEachContent { counts[$0.hashValue, default: 0] += 1 }
  }

  /// True if there are any rows.
  ///
  /// - Throws: `SQLiteError`.
  func hasRows() throws -> Bool {
    guard exists else { return false }
    let query = try connection.prepare(all + " LIMIT 1")
    try bindParameters(query)
    return try query.step()
  }

  /// Calls `body` with the content of each row.
  ///
  /// - Throws: `SQLiteError`; what `body` throws.
  func forEachContent(_ body: ([UInt8]) throws -> Void) throws {
    guard exists else { return }
    let query = try connection.prepare(all)
    try bindParameters(query)
    while try query.step() { try body(query.record(of: 0..<query.columnCount)) }
  }
}
