import BuckiaDiff
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

extension ScopeSchema {
  /// The scopes of all shares; nil for one that does not fit the schema now.
  ///
  /// - Throws: `SQLiteError`.
  static func ofShares(
    _ schema: SchemaReader, on connection: borrowing SQLiteConnection
  ) throws -> [(share: Int64, schema: ScopeSchema?)] {
    var found: [(share: Int64, schema: ScopeSchema?)] = []
    for share in try ShareEntry.all(on: connection) {
      do {
        found.append((share.number, try ScopeSchema(ShareScope(json: share.scope), schema, on: connection)))
      } catch is ReplicationError {
        found.append((share.number, nil))
      }
    }
    return found
  }
}

/// The shared tables with a condition that looks at other rows than the one in question: a row can meet it because another is written.
///
/// So the rows that do not meet it are gathered before a transaction, in TEMP tables of their keys, and looked at again afterwards.
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

  /// True if the plan of a query with a condition has more steps than the table's own.
  private static func looksAtOthers(
    _ shared: SharedTable, _ table: ScopeSchema.Table, on connection: borrowing SQLiteConnection
  ) throws -> Bool {
    let plan = try connection.prepare(
      "EXPLAIN QUERY PLAN SELECT 1 FROM \(table.sql) WHERE (\(shared.condition ?? "true")\n)")
    var steps = 0
    while try plan.step() { steps += 1 }
    return steps > 1
  }

  /// Gathers the rows that meet no condition, unless that is done.
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

  /// Gives the key of each that meets a condition now, in the format of changesets.
  func end(_ body: ([UInt8], KeyedTable) throws -> Void) throws {
    for (table, shared, name) in tables {
      let keys = table.definition.keySQL
      let identity = table.identity.joined(separator: ", ")
      // What a diff has begun goes with it where it is rolled back.
      guard try isThere(name), let keyed = KeyedTable(table.definition, table.definition) else { continue }
      try run(
        "SELECT \(keys.joined(separator: ", ")) FROM \(table.sql) WHERE (\(identity)) IN (SELECT * FROM \(name)) AND (\(shared.condition ?? "true")\n)",
        shared
      ) { query in
        while try query.step() { try body(ContentTable.content(of: query, keys.count), keyed) }
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
    // A condition that fails for a value keeps no diff out; the next share leaves the row out and names it.
    do { try body(query) } catch let error as SQLiteError where error.primaryCode == 1 {}
  }
}
