import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds received changes through which rows could enter shares
extension InboundShares {
  /// The rows among some that are not shared with the author of a diff yet, as far as that depends on each row alone.
  func outOfScope(
    _ keys: [TableName: Set<[UInt8]>], _ tables: KeyedTables, _ changes: IncomingChanges
  ) throws -> [TableName: Set<[UInt8]>] {
    guard !keys.isEmpty else { return [:] }
    let scopes = try changes.sharesWithAuthor(senders, on: connection).map { try ShareScope(json: $0.scope) }
    return try keys.reduce(into: [:]) { found, entry in
      let chosen = scopes.compactMap { $0.table(entry.key) }
      guard let table = tables[entry.key], !chosen.isEmpty else { return found[entry.key] = entry.value }
      found[entry.key] = try entry.value.filter { key in
        try !chosen.allSatisfy { shared in
          guard let condition = shared.condition else { return shared.parents.isEmpty }
          let query = try connection.prepare("\(table.lookup) AND (\(condition)\n)")
          try RowSelection(where: nil, shared.parameters).bindParameters(to: query)
          return try key.withRawSpan { bytes in
            try table.bindKey(table.row(withKey: bytes), bytes, to: query)
            return try query.step()
          }
        }
      }
    }
  }

  /// Prepares to find the rows that changes bring into shares.
  ///
  /// - Throws: `SQLiteError`, `ReplicationError`.
  func watchScopes(_ changes: IncomingChanges, _ schema: SchemaReader) throws {
    author = nil
    let isNarrow = try hasNarrowShares()
    guard isNarrow || changes.place != nil, !isOwn(changes) else { return }
    author = (changes.key.sender, try RowHolders(provenance, on: connection), schema)
    guard isNarrow else { return }
    movers.insert(changes.key.sender)
    let scopes = try dependentScopes ?? DependentScopes(schema, on: connection)
    dependentScopes = scopes
    try scopes.begin()
  }

  /// True if changes are signed by the owner of this database.
  private func isOwn(_ changes: IncomingChanges) -> Bool {
    if case .own = senders.standing(of: changes.key.sender) { true } else { false }
  }

  /// True if any share has only some rows of a table. Only then can a change bring rows into a share.
  func hasNarrowShares() throws -> Bool {
    if let known = areNarrow { return known }
    let scopes = try ScopeSchema.ofShares(SchemaReader(connection), on: connection)
    // A scope that does not fit the schema now may fit it later.
    let found = scopes.contains { $0.schema?.tables.contains { $0.rows != .all } ?? true }
    areNarrow = found
    return found
  }

  package var isWatching: Bool { author != nil }

  package func didWriteIndirectly(_ key: [UInt8], of table: TableName) throws {
    guard let author, let local = try author.schema.table(named: table), let table = KeyedTable(local, local) else {
      return
    }
    let isTheirs = try author.holders.has(author.sender, key, of: table)
    try RowNotes.note(isTheirs ? .wideningReference : .widening, key, of: table.name, by: author.sender, on: connection)
  }

  /// Records a change that may bring rows into a share.
  ///
  /// - Parameter baselines: The baselines of the shares with the sender.
  func noteWidening(
    _ change: Change, _ reader: ChangesetReader, _ bytes: RawSpan, of table: KeyedTable,
    sentIn baselines: [PeerBaseline]
  ) throws {
    let row = change.operation == .insert ? reader.new : reader.old
    guard let author, change.operation != .delete, table.hasKey(row) else { return }
    func note(_ kind: RowNotes.Kind) throws {
      // The key as the local row spells it.
      let here = try LocalRow(row, bytes, of: table, on: connection)
      let key = here.map { row in table.keyPlaces.flatMap { row.encoded($0) } } ?? table.key(row, bytes)
      try RowNotes.note(kind, key, of: table.name, by: author.sender, on: connection)
    }
    guard change.operation == .update else {
      let key = table.key(row, bytes)
      if contested[table.name]?.contains(key) == true, try !author.holders.has(author.sender, key, of: table) {
        try note(.widening)
      }
      return
    }
    if try !author.holders.has(author.sender, table.key(row, bytes), of: table) { return try note(.widening) }
    let refers = reader.new.indices.contains { place in
      reader.new[place].isDefined
        && (table.referringPlaces.contains(place)
          || baselines.contains { $0.declaresReference(by: table.columns[place], of: table.name) })
    }
    if refers { try note(.wideningReference) }
  }

  /// Records which rows the changes of a transaction have brought into scopes whose conditions read other rows.
  func noteDependentRows() throws {
    guard let dependentScopes else { return }
    let holders = try RowHolders(provenance, on: connection)
    try dependentScopes.end { key, table in
      for sender in movers.sorted() where try !holders.has(sender, key, of: table) {
        try RowNotes.note(.widening, key, of: table.name, by: sender, on: connection)
      }
    }
    self.dependentScopes = nil
    movers = []
  }
}

extension ScopeSchema {
  /// The scopes of all shares; nil for a scope that does not fit the schema.
  ///
  /// - Throws: `SQLiteError`.
  static func ofShares(
    _ schema: SchemaReader, on connection: borrowing SQLiteConnection
  ) throws -> [(share: Int64, schema: ScopeSchema?)] {
    try ShareEntry.all(on: connection).map { share in
      do {
        return (share.number, try ScopeSchema(ShareScope(json: share.scope), schema, on: connection))
      } catch is ReplicationError {
        return (share.number, nil)
      }
    }
  }
}

/// The shared tables with a condition that reads other rows. A row can begin to meet such a condition when another row
/// is written.
///
/// Before a transaction, the rows that do not meet the condition are gathered in TEMP tables of their keys; afterwards
/// they are evaluated again.
final class DependentScopes {
  private let connection: SQLiteConnection
  private var tables: [(table: ScopeSchema.Table, shared: SharedTable, name: String)] = []

  init(_ schema: SchemaReader, on connection: borrowing SQLiteConnection) throws {
    self.connection = SQLiteConnection(sharing: connection)
    for (share, scope) in try ScopeSchema.ofShares(schema, on: connection) {
      for (place, table) in (scope?.tables ?? []).enumerated() where !table.definition.isKeyedByRowID {
        guard let shared = table.shared, shared.condition != nil,
          try Self.looksAtOthers(shared, table, on: connection)
        else { continue }
        let name = "temp.\(SQLiteConnection.temporaryPrefix)outside_\(share)_\(place)"
        tables.append((table, shared, name))
      }
    }
  }

  /// True if the query plan with the condition has more steps than that of the table alone.
  private static func looksAtOthers(
    _ shared: SharedTable, _ table: ScopeSchema.Table, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    try connection.rows(
      of: "EXPLAIN QUERY PLAN SELECT 1 FROM \(table.sql) WHERE (\(shared.condition ?? "true")\n)"
    ) { _ in true }.count > 1
  }

  /// Gathers the rows that do not meet their condition, once.
  func begin() throws {
    for (table, shared, name) in tables {
      guard try !isThere(name) else { continue }
      let keys = table.identity.indices.map { "k\($0)" }.joined(separator: ", ")
      try connection.execute("CREATE TABLE \(name)(\(keys), PRIMARY KEY (\(keys))) WITHOUT ROWID")
      try run(
        "INSERT INTO \(name) SELECT \(table.identity.joined(separator: ", ")) FROM \(table.sql) WHERE (\(shared.condition ?? "true")\n) IS NOT TRUE",
        shared
      ) { _ = try $0.step() }
    }
  }

  /// Calls `body` with the key of each row that meets its condition now, in the format of changesets.
  func end(_ body: ([UInt8], KeyedTable) throws -> Void) throws {
    for (table, shared, name) in tables {
      let keys = table.definition.keySQL
      let identity = table.identity.joined(separator: ", ")
      // The TEMP table is gone if the diff that began it was rolled back.
      guard try isThere(name), let keyed = KeyedTable(table.definition, table.definition) else { continue }
      try run(
        "SELECT \(keys.joined(separator: ", ")) FROM \(table.sql) WHERE (\(identity)) IN (SELECT * FROM \(name)) AND (\(shared.condition ?? "true")\n)",
        shared
      ) { query in
        while try query.step() { try body(query.record(of: 0..<keys.count), keyed) }
      }
      try connection.execute("DROP TABLE \(name)")
    }
  }

  private func isThere(_ name: String) throws -> Bool {
    try connection.integer(
      "SELECT 1 FROM temp.sqlite_schema WHERE name = ?1", binding: [String(name.dropFirst("temp.".count))]) != nil
  }

  private func run(_ sql: String, _ shared: SharedTable, _ body: (borrowing SQLiteStatement) throws -> Void) throws {
    let query = try connection.prepare(sql)
    try RowSelection(where: nil, shared.parameters).bindParameters(to: query)
    // A condition that fails for a value refuses no diff; the next share leaves the row out and names it.
    do { try body(query) } catch let error as SQLiteError where error.primaryCode == 1 {}
  }
}
