import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections

extension SchemaReader {
  /// The statements that made the database, by kind and then in the order in which they were made: without those of SQLite, of
  /// Buckia, of what a module keeps inside, and of indexes that constraints have.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  package func statements() throws -> [SchemaStatement] {
    var found: [SchemaStatement] = []
    let query = """
      SELECT type, name, tbl_name, sql FROM main.sqlite_schema
      WHERE sql IS NOT NULL AND tbl_name NOT LIKE 'buckia\\_%' ESCAPE '\\' ORDER BY rowid
      """
    try connection.forEachRow(of: query) { row in
      guard let statement = SchemaStatement(row), (1..<4).allSatisfy({ row.isWellFormedText(at: $0) }) else { return }
      if statement.name.refusal != nil || statement.table.refusal != nil { return }
      if case .shadow? = entry(named: statement.table)?.kind { return }
      found.append(statement)
    }
    return AuthorSchema.order.flatMap { kind in found.filter { $0.kind == kind } }
  }

  /// What the rows of a table come to; nil where it has none of its own.
  ///
  /// - Throws: `SQLiteError` when the table cannot be read.
  package func content(of entry: SchemaEntry) throws -> AuthorSchema.TableContent? {
    guard entry.kind.hasOwnRows else { return nil }
    let table = try definition(of: entry)
    let columns = table.columns.map { SQLText.identifier($0.name) }.joined(separator: ", ")
    return try content(of: "SELECT \(columns) FROM main.\(entry.name.quoted)")
  }

  /// True if the rows of a table without a primary key can have got other rowids in another state of the database, as VACUUM gives them:
  /// a row that is gone from its rowid is found under another one. Also where no rowid is left for new rows.
  ///
  /// - Throws: `SQLiteError` when the table cannot be read.
  package func mayHaveMovedRows(of table: TableDefinition, in other: SchemaReader) throws -> Bool {
    guard let rowID = table.rowIDName, let entry = other.entry(named: TableName(table.name)), entry.kind == .table,
      case let definition = try other.definition(of: entry), !definition.isWithoutRowID,
      let otherRowID = definition.rowIDName
    else { return false }
    let names = ColumnLookup(definition.columns)
    let columns = table.columns.map(\.name).filter { names[$0] != nil }.map(SQLText.identifier)
    func rows(_ rowID: String) -> String {
      "SELECT \(([rowID] + columns).joined(separator: ", ")) FROM main.\(TableName(table.name).quoted) ORDER BY \(rowID)"
    }
    let mine = try connection.prepare(rows(rowID))
    let others = try other.connection.prepare(rows(otherRowID))
    var (gone, come): (Set<UInt64>, Set<UInt64>) = ([], [])
    var last: Int64 = 0
    var (hasMine, hasOthers) = (try mine.step(), try others.step())
    while hasMine || hasOthers {
      let isMineFirst = hasMine && (!hasOthers || mine.integer(at: 0) <= others.integer(at: 0))
      let isOthersFirst = hasOthers && (!hasMine || others.integer(at: 0) <= mine.integer(at: 0))
      let before = isMineFirst ? rowHash(mine, from: 1) : nil
      let after = isOthersFirst ? rowHash(others, from: 1) : nil
      last = isMineFirst ? mine.integer(at: 0) : others.integer(at: 0)
      if before != after {
        if let before { gone.insert(before) }
        if let after { come.insert(after) }
      }
      if isMineFirst { hasMine = try mine.step() }
      if isOthersFirst { hasOthers = try others.step() }
    }
    return last == .max || !gone.isDisjoint(with: come)
  }

  private func content(of query: String) throws -> AuthorSchema.TableContent {
    var rows: Int64 = 0
    var sum: UInt64 = 0
    try connection.forEachRow(of: query) { row in
      rows += 1
      sum &+= rowHash(row)
    }
    return AuthorSchema.TableContent(rows: rows, hash: sum)
  }

  /// The columns that triggers of other tables set to a count, and those that any trigger sets to the time.
  ///
  /// - Throws: `SQLiteError` when the schema cannot be read.
  package func columnsKeptByTriggers() throws -> [(table: String, column: String, isTime: Bool)] {
    var found: [(table: String, column: String, isTime: Bool)] = []
    let query = "SELECT tbl_name, sql FROM main.sqlite_schema WHERE type = 'trigger' ORDER BY tbl_name, name"
    try connection.forEachRow(of: query) { row in
      let table = TableName(row.text(at: 0) ?? "")
      for statement in TriggerDefinition(parsing: row.text(at: 1) ?? "")?.statements ?? [] {
        guard let target = statement.target else { continue }
        let counts = target == table ? [] : statement.countedColumns.map { ($0, false) }
        for (column, isTime) in counts + statement.timedColumns.map({ ($0, true) })
        where !found.contains(where: { TableName($0.table) == target && ASCIIName.matches($0.column, column) }) {
          found.append((target.text, column, isTime))
        }
      }
    }
    return found
  }

  /// What the rows of a table come to that do not travel. Of a virtual table whose rows cannot be read back, those of the tables that
  /// it keeps inside; nil where rows follow from other tables, or there are none.
  ///
  /// - Throws: `SQLiteError` when the table cannot be read.
  package func contentStaying(of entry: SchemaEntry) throws -> AuthorSchema.TableContent? {
    switch entry.kind {
    case .view, .shadow, .virtual(_, .keptByTriggers), .virtual(_, .external): return nil
    case .table, .virtual(_, .own): return try content(of: "SELECT * FROM main.\(entry.name.quoted)")
    case .virtual(let module, _):
      let content = VirtualTableDefinition(parsing: entry.sql)?.option("content")
      let readsRows = ["fts3", "fts4"].contains(ASCIIName.folded(module))
      if readsRows, content?.isEmpty == false { return nil }
      let query = "SELECT rowid, * FROM main.\(entry.name.quoted)"
      if readsRows, content == nil, try connection.failure(ofPreparing: query) == nil {
        return try self.content(of: query)
      }
      let insides = entries.filter { $0.kind == .shadow(of: entry.name.text) }
      let contents = try insides.map { try self.content(of: "SELECT * FROM main.\($0.name.quoted)") }
      guard !contents.isEmpty else { return nil }
      return AuthorSchema.TableContent(
        rows: contents.reduce(0) { $0 + $1.rows }, hash: contents.reduce(0) { $0 &+ $1.hash })
    }
  }

  /// The values of a table that another definition of it does not keep: those of columns that it has not, and those that the type of a
  /// column would make other values of.
  ///
  /// - Parameters:
  ///   - newer: The other definition.
  ///   - older: The definition that it replaces, of a database which need not be this one.
  ///   - renames: Columns that have another name in one of them.
  ///   - base: The database with the older definition, to look there for the values.
  /// - Returns: What they come to, with the keys of their rows, and the names of the columns; nil where there are none. `areKnown` is true
  ///   if each of them is in the row with the same key of `base`.
  /// - Throws: `SQLiteError` when the table cannot be read.
  package func valuesLost(
    in newer: TableDefinition, since older: TableDefinition, _ renames: ColumnRenames, knownTo base: SchemaReader? = nil
  ) throws -> (content: AuthorSchema.TableContent, columns: [String], areKnown: Bool)? {
    guard newer.module == nil, older.module == nil, let entry = entry(named: TableName(older.name)),
      entry.kind == .table
    else { return nil }
    let local = try definition(of: entry)
    let (names, newNames) = (ColumnLookup(local.columns), ColumnLookup(newer.columns))
    func place(of column: ColumnDefinition, in lookup: ColumnLookup) -> Int? {
      if let found = lookup[column.name] { return found }
      return renames.otherNames(of: column.name, in: entry.name).lazy.compactMap { lookup[$0] }.first
    }
    func stored(_ column: ColumnDefinition) -> String {
      place(of: column, in: names).map { SQLText.identifier(local.columns[$0].name) } ?? "NULL"
    }
    var lost: [(name: String, sql: String, baseSQL: String)] = []
    for (index, column) in older.columns.enumerated() {
      let affinity = place(of: column, in: newNames).map { newer.affinity(at: $0) }
      if affinity == older.affinity(at: index) { continue }
      func sql(_ name: String) -> String? { affinity.map { $0.altered(name) } ?? name }
      let name = SQLText.identifier(column.name)
      if let here = sql(stored(column)), let before = sql(name) { lost.append((column.name, here, before)) }
    }
    guard !lost.isEmpty else { return nil }
    let results = older.primaryKey.map { stored(older.columns[$0]) } + lost.map(\.sql)
    let isAnyLost = lost.map { "(\($0.sql)) IS NOT NULL" }.joined(separator: " OR ")
    // Without a key, rows are not looked for.
    var lookup: PreparedStatement?
    if let base, !older.primaryKey.isEmpty {
      let terms =
        older.primaryKey.map { SQLText.identifier(older.columns[$0].name) }
        + lost.map { "(\($0.baseSQL)) COLLATE BINARY" }
      let condition = terms.enumerated().map { "\($1) IS ?\($0 + 1)" }.joined(separator: " AND ")
      lookup = PreparedStatement(
        try base.connection.prepare("SELECT 1 FROM main.\(entry.name.quoted) WHERE \(condition)", isPersistent: true))
    }
    var areKnown = lookup != nil
    var (rows, sum): (Int64, UInt64) = (0, 0)
    var found: Set<Int> = []
    let query = "SELECT \(results.joined(separator: ", ")) FROM main.\(entry.name.quoted) WHERE \(isAnyLost)"
    try connection.forEachRow(of: query) { row in
      for column in lost.indices where row.storageClass(at: older.primaryKey.count + column) != .null {
        found.insert(column)
      }
      rows += 1
      sum &+= rowHash(row)
      guard areKnown, let lookup else { return }
      for column in results.indices { try lookup.statement.bind(column: column, of: row, at: column) }
      areKnown = try lookup.statement.step()
      lookup.statement.reset()
    }
    guard rows > 0 else { return nil }
    return (AuthorSchema.TableContent(rows: rows, hash: sum), found.sorted().map { lost[$0].name }, areKnown)
  }

  /// The columns that have another name in a later state of the database, where the definitions show it and the rows do not
  /// contradict: most of them have the same value under both names.
  ///
  /// - Throws: `SQLiteError` when a schema or a table cannot be read.
  package func renames(to newer: SchemaReader) throws -> [ColumnRename] {
    var found: [ColumnRename] = []
    for entry in newer.entries where entry.kind == .table {
      guard let mine = self.entry(named: entry.name), mine.kind == .table, !entry.isDefined(like: mine),
        let parts = CreateTableParts(parsing: mine.sql), let others = CreateTableParts(parsing: entry.sql)
      else { continue }
      let pairs = parts.renamedColumns(in: others)
      if pairs.isEmpty { continue }
      let (old, new) = (try definition(of: mine), try newer.definition(of: entry))
      for pair in pairs where try hasSameValues(old, pair.old, as: new, pair.new, in: newer) {
        found.append(ColumnRename(table: entry.name, from: pair.old, to: pair.new))
      }
    }
    return found
  }

  /// How many rows are looked at.
  private static let sampleSize = 1_000

  private func hasSameValues(
    _ older: TableDefinition, _ oldName: String, as newer: TableDefinition, _ newName: String, in other: SchemaReader
  ) throws -> Bool {
    guard older.primaryKey.count == newer.primaryKey.count, older.column(named: oldName) != nil,
      newer.column(named: newName) != nil
    else { return false }
    let rowIDs = [older, newer].map { $0.rowIDName ?? "NULL" }
    let keys = older.isKeyedByRowID ? [rowIDs[0]] : older.keySQL
    let newKeys = newer.isKeyedByRowID ? [rowIDs[1]] : newer.keySQL
    let (old, new) = (SQLText.identifier(oldName), SQLText.identifier(newName))
    let rows = try connection.prepare(
      "SELECT \((keys + [old]).joined(separator: ", ")) FROM main.\(TableName(older.name).quoted) "
        + "WHERE \(old) IS NOT NULL LIMIT \(Self.sampleSize)")
    let condition = newKeys.indices.map { "\(newKeys[$0]) IS ?\($0 + 1)" }.joined(separator: " AND ")
    let lookup = try other.connection.prepare(
      "SELECT \(new) IS ?\(keys.count + 1) FROM main.\(TableName(newer.name).quoted) WHERE \(condition)")
    var (same, all) = (0, 0)
    while try rows.step() {
      for column in 0...keys.count { try lookup.bind(column: column, of: rows, at: column) }
      if try lookup.step() {
        all += 1
        same += Int(lookup.integer(at: 0))
      }
      lookup.reset()
    }
    return same * 2 >= all
  }
}

extension Affinity {
  /// An SQL expression for the values of a column as one of this affinity stores them, but for those that it would make other values of.
  ///
  /// - Parameter column: The column, quoted.
  package func converted(_ column: String) -> String {
    let number = "CAST(\(column) AS NUMERIC)"
    let isNumber =
      "typeof(\(column)) = 'text' AND \(number) = \(column) AND CAST(\(number) AS TEXT) = \(column) COLLATE BINARY"
    switch self {
    case .blob: return column
    case .text:
      return "CASE WHEN typeof(\(column)) = 'integer' OR typeof(\(column)) = 'real' "
        + "AND CAST(CAST(\(column) AS TEXT) AS REAL) = \(column) THEN CAST(\(column) AS TEXT) ELSE \(column) END"
    case .integer, .numeric:
      return "CASE WHEN \(isNumber) THEN \(number) WHEN typeof(\(column)) = 'real' "
        + "AND CAST(\(column) AS INTEGER) = \(column) THEN CAST(\(column) AS INTEGER) ELSE \(column) END"
    case .real:
      return "CASE WHEN \(isNumber) OR typeof(\(column)) = 'integer' "
        + "AND CAST(CAST(\(column) AS REAL) AS INTEGER) = \(column) THEN CAST(\(column) AS REAL) ELSE \(column) END"
    }
  }

  /// An SQL expression for the values of a column that one of this affinity would make other values of, and NULL for all others; nil where
  /// there are none.
  ///
  /// - Parameter column: The column, quoted.
  fileprivate func altered(_ column: String) -> String? {
    // SQLite gives a value the affinity that it is compared with, and so tells whether a text is a number.
    let number = "CAST(\(column) AS NUMERIC)"
    let text =
      "typeof(\(column)) = 'text' AND \(number) = \(column) "
      + "AND CAST(\(number) AS TEXT) <> \(column) COLLATE BINARY"
    switch self {
    case .blob: return nil
    case .text:
      return "CASE WHEN typeof(\(column)) = 'real' AND CAST(CAST(\(column) AS TEXT) AS REAL) <> \(column) "
        + "THEN \(column) END"
    case .integer, .numeric: return "CASE WHEN \(text) THEN \(column) END"
    case .real:
      return "CASE WHEN \(text) OR typeof(\(column)) = 'integer' "
        + "AND CAST(CAST(\(column) AS REAL) AS INTEGER) <> \(column) THEN \(column) END"
    }
  }
}

/// A hash of the values of a row, from a column on: FNV-1a with 64 bits over the values as a changeset has them, mixed once more so that
/// sums of hashes tell rows apart. `Schemas/diff-file.md` specifies it.
private func rowHash(_ row: borrowing SQLiteStatement, from start: Int = 0) -> UInt64 {
  var hash: UInt64 = 0xcbf2_9ce4_8422_2325
  for column in start..<row.columnCount {
    var writer = ChangesetWriter()
    writer.append(column: column, of: row)
    for byte in writer.bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
  }
  hash = (hash ^ (hash >> 30)) &* 0xbf58_476d_1ce4_e5b9
  hash = (hash ^ (hash >> 27)) &* 0x94d0_49bb_1331_11eb
  return hash ^ (hash >> 31)
}
