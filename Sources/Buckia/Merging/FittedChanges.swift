import SQLiteConnections

/// The changes of another database, adapted to one that has also changed since their base.
///
/// Changes of tables that were dropped here are left out, and columns that no person edits are settled
/// (``SettledColumns``). If both sides have given one number to different rows, the incoming row gets a number that
/// neither side uses, and references to it follow: both rows are kept.
struct FittedChanges {
  /// The changes.
  private(set) var changeset: TemporaryBuffer
  /// Warnings about the numbers.
  private(set) var warnings: [Warning] = []

  /// - Parameters:
  ///   - incoming: The other side.
  ///   - dropped: The tables that were dropped here.
  ///   - options: How to merge.
  ///   - renames: The renames of both sides.
  ///   - connection: The database that receives the changes.
  init(
    _ incoming: IncomingDatabase, without dropped: Set<TableName>, _ options: MergeOptions, _ renames: ColumnRenames,
    on connection: borrowing SQLiteConnection
  ) throws {
    changeset = incoming.difference.changeset
    if !dropped.isEmpty {
      let left = changeset.makeEmpty()
      try Changesets.copy(changeset, into: left) { _, reader, _ in
        reader.table.map { !dropped.contains(TableName($0.name)) } ?? false
      }
      changeset = left
    }
    let tables = incoming.difference.tables.map(\.definition).filter { !dropped.contains(TableName($0.name)) }
    let schema = try SchemaReader(connection)
    let settled = try SettledColumns(of: tables, incoming, options, schema, renames, on: connection)
    if !settled.isEmpty { changeset = try settled.settle(changeset) }
    let inserting = Set(
      incoming.difference.tables.filter { $0.inserted > 0 }.map { TableName($0.definition.name) })
    var met = try LocalRows(
      of: tables.filter { inserting.contains(TableName($0.name)) }, incoming, options, schema, renames, on: connection)
    if met.isEmpty { return }
    try met.find(in: changeset)
    let known = try RebaseDefinitions(of: tables, ChangesetSummary.of(changeset).tables.map(\.table), on: connection)
    let renumbered = changeset.makeEmpty()
    let remapped = try Changesets.remapKeys(
      of: changeset, inUseBy: met.rows, definitions: known.rebaseTables,
      matching: Dictionary(met.matches.map { ($0.key.text, $0.value) }) { first, _ in first }, into: renumbered)
    if remapped.isEmpty { return }
    changeset = met.matches.isEmpty ? renumbered : try met.updates(of: renumbered)
    let isKeyless = Dictionary(tables.map { (TableName($0.name), $0.isKeyedByRowID) }) { first, _ in first }
    for (table, keys) in Dictionary(grouping: remapped, by: { TableName($0.table) })
      .sorted(by: { $0.key.text < $1.key.text })
    {
      let matched = keys.count { met.matches[table]?[$0.key] != nil }
      if keys.count > matched {
        warnings.append(
          Warning(isKeyless[table] == true ? .renumberedRows : .remappedKeys, table.text, "\(keys.count - matched)"))
      }
      if matched > 0 { warnings.append(Warning(.matchedRows, table.text, "\(matched)")) }
    }
    warnings += known.warnings(remapped: remapped, remapsKeys: true).filter { warning in
      warning.code == .undeclaredReferences && isKeyless[TableName(warning.arguments[0])] == false
    }
  }
}

/// The local rows with the numbers of incoming rows, or equal to them under another number.
private struct LocalRows {
  /// The rows that have the numbers, as INSERTs in the form of the incoming changes.
  let rows: TemporaryBuffer
  /// The numbers here of incoming rows that are the same, by theirs.
  private(set) var matches: [TableName: [Int64: Int64]] = [:]
  private var tables: [TableName: Table] = [:]

  private struct Table {
    let key: Int
    let byKey: PreparedStatement
    /// The columns by which rows are equal, and the query for equal rows.
    var matching: [(columns: [Int], query: PreparedStatement)] = []
    /// Finds a row in the base; nil if the base has no such table.
    let inBase: PreparedStatement?
  }

  init(
    of definitions: [TableDefinition], _ incoming: IncomingDatabase, _ options: MergeOptions, _ schema: SchemaReader,
    _ renames: ColumnRenames, on connection: borrowing SQLiteConnection
  ) throws {
    rows = incoming.difference.changeset.makeEmpty()
    let base = try SchemaReader(incoming.base.connection)
    for definition in definitions where definition.module == nil {
      let name = TableName(definition.name)
      guard definition.isKeyedByRowID || definition.givesOutKeys && options.remapsKeys && incoming.hasBase,
        let local = try schema.table(named: name),
        definition.isKeyedByRowID ? local.isKeyedByRowID : local.givesOutKeys, let key = local.keySQL.first,
        !local.isKeyedByRowID || local.rowIDName != nil
      else { continue }
      let lookup = ColumnLookup(local.columns)
      func stored(_ column: ColumnDefinition) -> String? {
        let names = [column.name] + renames.otherNames(of: column.name, in: name)
        return names.lazy.compactMap { lookup[$0] }.first.map { SQLText.identifier(local.columns[$0].name) }
      }
      let columns = definition.columns.map(stored)
      // Where a table has another number as its key on each side, their rows have nothing in common.
      guard definition.isKeyedByRowID || definition.primaryKey.allSatisfy({ columns[$0] == key }) else { continue }
      var results = try zip(columns, definition.columns).map { stored, column in
        try stored ?? AddedColumnValue.literal(of: column, isStrict: definition.isStrict)
      }
      if definition.isKeyedByRowID { results.insert(key, at: 0) }
      let from = "FROM main.\(name.quoted) WHERE"
      var table = Table(
        key: definition.keyIndexes[0],
        byKey: PreparedStatement(
          try connection.prepare("SELECT \(results.joined(separator: ", ")) \(from) \(key) = ?1", isPersistent: true)),
        inBase: try Self.lookup(of: name, in: base, incoming.base.connection))
      if !definition.isKeyedByRowID {
        let wanted = options.matches[name]
        let sets = try wanted.map { [$0] } ?? Self.unique(of: local, on: connection)
        for set in sets {
          let places = set.compactMap { wanted in
            columns.firstIndex { $0 == SQLText.identifier(wanted) } ?? definition.column(named: wanted)
          }
          guard places.count == set.count, !places.contains(table.key), places.allSatisfy({ columns[$0] != nil }) else {
            guard wanted == nil else { throw Self.noSuchColumns(set, of: name) }
            continue
          }
          // By default, only rows that differ in nothing but their numbers are equal.
          let compared =
            wanted == nil ? columns.indices.filter { $0 != table.key && columns[$0] != nil } : places
          let condition = compared.map { "\(columns[$0] ?? "") IS ?\($0 + 1)" }.joined(separator: " AND ")
          let query = try connection.prepare("SELECT \(key) \(from) \(condition) LIMIT 2", isPersistent: true)
          table.matching.append((places, PreparedStatement(query)))
        }
      }
      tables[name] = table
    }
  }

  /// True if no rows have to be looked for.
  var isEmpty: Bool { tables.isEmpty }

  private static func noSuchColumns(_ columns: [String], of table: TableName) -> BuckiaError {
    BuckiaError(
      .columnsDiffer,
      "rows of table \"\(table)\" cannot be matched by (\(columns.joined(separator: ", "))): both sides must have these "
        + "columns, and none of them is the number of a row")
  }

  private static func lookup(
    of table: TableName, in base: SchemaReader, _ connection: borrowing SQLiteConnection
  ) throws -> PreparedStatement? {
    guard let key = try base.table(named: table)?.keySQL, key.count == 1 else { return nil }
    let query = "SELECT 1 FROM main.\(table.quoted) WHERE \(key[0]) = ?1"
    return PreparedStatement(try connection.prepare(query, isPersistent: true))
  }

  /// The columns of each UNIQUE constraint and index of a table.
  private static func unique(
    of table: TableDefinition, on connection: borrowing SQLiteConnection
  ) throws -> [[String]] {
    var sets: [String: [String]] = [:]
    let query = """
      SELECT l.name, i.name FROM pragma_index_list(?1, 'main') AS l, pragma_index_info(l.name, 'main') AS i
      WHERE l."unique" AND NOT l.partial AND l.origin <> 'pk' ORDER BY l.seq, i.seqno
      """
    try connection.forEachRow(of: query, binding: [table.name]) { row in
      // That of an expression has no name, and is no column.
      sets[row.text(at: 0) ?? "", default: []].append(row.text(at: 1) ?? "")
    }
    return sets.sorted { $0.key < $1.key }.map(\.value)
  }

  /// Looks for the rows of incoming INSERTs.
  mutating func find(in changeset: TemporaryBuffer) throws {
    var writer = ChangesetWriter()
    var last: TableName?
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      guard change.operation == .insert, let header = reader.table, let table = tables[TableName(header.name)],
        reader.new[table.key].kind == .integer
      else { return }
      let name = TableName(header.name)
      let number = reader.new[table.key].integer(in: bytes)
      if let same = try match(reader.new, number, in: table, bytes) {
        matches[name, default: [:]][number] = same
        return
      }
      let query = table.byKey
      defer { query.statement.reset() }
      try query.statement.bind(number, at: 0)
      guard try query.statement.step() else { return }
      if last != name {
        writer.beginTable(header)
        last = name
      }
      writer.beginChange(.insert)
      for column in 0..<query.statement.columnCount { writer.append(column: column, of: query.statement) }
      try rows.write(writer.bytes)
      writer.removeAll()
    }
  }

  /// Replaces each INSERT of an existing row by an UPDATE of the different columns. A column with a local value is a
  /// conflict of this row alone.
  func updates(of changeset: TemporaryBuffer) throws -> TemporaryBuffer {
    let output = changeset.makeEmpty()
    let targets = matches.mapValues { Set($0.values) }
    var writer = ChangesetWriter()
    var last: ChangesetTable?
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      guard let header = reader.table else { return }
      if last != header {
        writer.beginTable(header)
        last = header
      }
      defer { writer.removeAll() }
      guard change.operation == .insert, let table = tables[TableName(header.name)],
        reader.new[table.key].kind == .integer,
        targets[TableName(header.name)]?.contains(reader.new[table.key].integer(in: bytes)) == true
      else {
        try output.write(writer.bytes)
        return try output.write(bytes.extracting(change.range))
      }
      defer { table.byKey.statement.reset() }
      try table.byKey.statement.bind(reader.new[table.key].integer(in: bytes), at: 0)
      guard try table.byKey.statement.step() else { return }
      let differing = reader.new.indices.filter { column in
        var value = ChangesetWriter()
        value.append(column: column, of: table.byKey.statement)
        return value.bytes != bytes.array(reader.new[column].encoded)
      }
      writer.beginChange(.update)
      for column in reader.new.indices {
        if column == table.key {
          writer.append(reader.new[column], of: bytes)
        } else if differing.contains(column) {
          writer.appendNull()
        } else {
          writer.appendUndefined()
        }
      }
      for column in reader.new.indices {
        if differing.contains(column) { writer.append(reader.new[column], of: bytes) } else { writer.appendUndefined() }
      }
      if !differing.isEmpty { try output.write(writer.bytes) } else { last = nil }
    }
    return output
  }

  /// The number of the row here that is the same as an incoming one, and is not in the base.
  private func match(_ row: [ValueSlice], _ number: Int64, in table: Table, _ bytes: RawSpan) throws -> Int64? {
    for (columns, prepared) in table.matching where columns.allSatisfy({ row[$0].kind != .null }) {
      let query = prepared
      defer { query.statement.reset() }
      for column in row.indices where column < query.statement.parameterCount {
        try query.statement.bind(row[column], in: bytes, at: column)
      }
      guard try query.statement.step() else { continue }
      let found = query.statement.integer(at: 0)
      if found == number { return nil }
      guard try !query.statement.step() else { continue }
      guard let base = table.inBase else { return found }
      defer { base.statement.reset() }
      try base.statement.bind(found, at: 0)
      if try !base.statement.step() { return found }
    }
    return nil
  }
}
