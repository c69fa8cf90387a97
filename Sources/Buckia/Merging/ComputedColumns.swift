import SQLiteConnections

/// The columns that are generated ones here, and hold values on the other side: these cannot be written. Each that is not what is computed
/// here is a conflict, and the rest of its row is merged.
struct ComputedColumns {
  private var columns: [TableName: [String]] = [:]

  /// Adds a column.
  ///
  /// - Returns: False if it is among them.
  mutating func insert(_ column: String, of table: TableName) -> Bool {
    guard columns[table]?.contains(column) != true else { return false }
    columns[table, default: []].append(column)
    return true
  }

  /// The definitions without the columns.
  func removed(from definitions: [TableDefinition]) -> [TableDefinition] {
    definitions.map { definition in
      var definition = definition
      for column in columns[TableName(definition.name)] ?? [] { definition.removeColumn(named: column) }
      return definition
    }
  }

  /// The places of the columns in the changes of a table.
  private func places(in definition: TableDefinition) -> [Int] {
    (columns[TableName(definition.name)] ?? []).compactMap { definition.column(named: $0) }
      .map { $0 + (definition.isKeyedByRowID ? 1 : 0) }
  }

  /// The changes without the columns.
  ///
  /// - Parameter definitions: The tables as the changes have them.
  func removed(from changeset: TemporaryBuffer, of definitions: [TableDefinition]) throws -> TemporaryBuffer {
    guard !columns.isEmpty else { return changeset }
    let places = Dictionary(definitions.map { (TableName($0.name), self.places(in: $0)) }) { first, _ in first }
    let output = changeset.makeEmpty()
    var writer = ChangesetWriter()
    var last: ChangesetTable?
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      guard let header = reader.table else { return }
      let removed = places[TableName(header.name)] ?? []
      let kept = header.keyFlags.indices.filter { !removed.contains($0) }
      if change.operation == .update, !kept.contains(where: { reader.new[$0].isDefined }) { return }
      if last != header {
        writer.beginTable(ChangesetTable(name: header.name, keyFlags: kept.map { header.keyFlags[$0] }))
        last = header
      }
      writer.beginChange(change.operation, isIndirect: change.isIndirect)
      if change.operation != .insert { for place in kept { writer.append(reader.old[place], of: bytes) } }
      if change.operation != .delete { for place in kept { writer.append(reader.new[place], of: bytes) } }
      try output.write(writer.bytes)
      writer.removeAll()
    }
    return output
  }

  /// Records the conflicts, once the changes have been applied.
  ///
  /// - Parameters:
  ///   - changeset: The changes, with the columns.
  ///   - definitions: The tables as the changes have them.
  ///   - log: Where they are recorded; nil to find out if there are any.
  ///   - connection: The database here.
  /// - Returns: True if there are any.
  /// - Throws: `ReplicationError` with `conflict` if there are any under the policy `abort`.
  func recordConflicts(
    of changeset: TemporaryBuffer, _ definitions: [TableDefinition], by policies: ConflictPolicies,
    in log: ConflictLog?, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    guard !columns.isEmpty else { return false }
    var isAny = false
    let schema = try SchemaReader(connection)
    var rows: [TableName: (layout: RecordedRowLayout, places: [Int], query: PreparedStatement)] = [:]
    for definition in definitions {
      let (name, computed) = (TableName(definition.name), places(in: definition))
      guard !computed.isEmpty, let local = try schema.table(named: name) else { continue }
      let (names, key) = (definition.changesetColumns, local.keySQL)
      let results = key + computed.map { SQLText.identifier(names[$0]) }
      let condition = key.indices.map { "\(key[$0]) = ?\($0 + 1)" }.joined(separator: " AND ")
      let query = try connection.prepare(
        "SELECT \(results.joined(separator: ", ")) FROM main.\(name.quoted) WHERE \(condition)", isPersistent: true)
      rows[name] = (
        RecordedRowLayout(
          table: name, columns: local.keyIndexes.map { local.changesetColumns[$0] } + computed.map { names[$0] },
          key: Array(key.indices)),
        definition.keyIndexes + computed, PreparedStatement(query)
      )
    }
    try Changesets.forEachChange(of: changeset) { change, reader, bytes in
      guard change.operation != .delete, let (layout, places, query) = rows[TableName(reader.table?.name ?? "")] else {
        return
      }
      let isInsert = change.operation == .insert
      let computed = layout.key.count..<places.count
      // To leave a column without a value is to leave it to the database.
      let written = computed.filter { reader.new[places[$0]].isDefined && reader.new[places[$0]].kind != .null }
      if written.isEmpty { return }
      func record(_ values: [ValueSlice], key: [ValueSlice]) -> [UInt8] {
        var writer = ChangesetWriter()
        for (index, place) in places.enumerated() {
          writer.append(index < layout.key.count ? key[place] : values[place], of: bytes)
        }
        return writer.bytes
      }
      let key = isInsert ? reader.new : reader.old
      defer { query.statement.reset() }
      for index in layout.key { try query.statement.bind(key[places[index]], in: bytes, at: index) }
      var local: [UInt8]?
      var differing = written
      if try query.statement.step() {
        var writer = ChangesetWriter()
        for column in places.indices { writer.append(column: column, of: query.statement) }
        local = writer.bytes
        differing = written.filter { column in
          var writer = ChangesetWriter()
          writer.append(column: column, of: query.statement)
          return writer.bytes != bytes.array(reader.new[places[column]].encoded)
        }
      }
      guard let first = differing.first else { return }
      isAny = true
      let reason =
        "the column \"\(layout.table).\(layout.columns[first])\" is a generated one here, and cannot be written"
      guard policies.policy(for: layout.table) != .abort else {
        throw ReplicationError(.conflict, reason, table: layout.table.text)
      }
      guard let log else { return }
      func row(_ record: [UInt8]?) -> ConflictLog.Row? {
        record.map { record in log.row { $0.append(encoded: record) } }
      }
      try log.record(
        local == nil ? .notFound : .data, local == nil ? .omitted : .keptLocal, layout,
        base: row(isInsert ? nil : record(reader.old, key: key)), local: row(local),
        incoming: row(record(reader.new, key: key)), reason: Array(reason.utf8))
    }
    try log?.flush()
    return isAny
  }
}
