import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The rows of an exchange as they are now, each of them once, in the columns that all its streams have of their tables.
final class LiveRows {
  private let schema: SchemaReader
  private let connection: SQLiteConnection
  private let key: [UInt8]
  /// Whether a row can come twice.
  private let isFromSeveral: Bool
  /// The columns that the streams have of each table, in lower case.
  private var columns: [TableName: Set<String>] = [:]
  private var states: [TableName: TableState] = [:]
  private var seen: [TableName: Set<[UInt8]>] = [:]
  /// The columns of each table with keys that replicas give out themselves: they may differ where the rows are the same.
  private var ownKeys: [TableName: Set<String>] = [:]
  private let links: [KeyLink]

  /// - Throws: `SQLiteError`; `LedgerError` when the ledger is damaged.
  init(_ exchange: LiveWords.Exchange, _ schema: SchemaReader, on connection: borrowing SQLiteConnection) throws {
    self.schema = schema
    self.connection = SQLiteConnection(sharing: connection)
    key = exchange.streams.first ?? []
    isFromSeveral = exchange.streams.count > 1
    links = try exchange.shares.flatMap { try ShareScope(json: $0.scope).keyLinks }
    var known = exchange.states
    for share in exchange.shares {
      known += try StateEntry.all(of: .share(share.number), stream: share.stream, on: connection)
    }
    for entry in known {
      let names = Set(try TableState(entry, at: connection.path).columns.map { ASCIIName.folded($0) })
      columns[entry.table] = columns[entry.table].map { $0.intersection(names) } ?? names
    }
  }

  /// The sum of all rows, and how many there are.
  var total: (sum: Sum128, rows: Int64) {
    var sum = Sum128()
    for state in states.values { sum += state.sums.digest }
    return (sum, states.values.reduce(0) { $0 + $1.sums.rowCount })
  }

  /// Adds the rows of a scope, as they would be sent.
  ///
  /// - Throws: `ReplicationError` where the scope cannot be followed any more; `SQLiteError`.
  func add(_ share: ShareEntry) throws {
    // Where something fails, the transaction is rolled back, and the tables of the scope with it.
    let rows = try ScopeRows(ShareScope(json: share.scope), on: connection, schema)
    for name in rows.tables {
      guard let (table, wanted) = try table(name) else { continue }
      let seeds = seeds(of: name, wanted)
      let keys = table.local.primaryKey.map { table.local.columns[$0].name }
      try (rows.selections[name] ?? RowSelection()).forEachRow(of: table.local, keys + wanted, on: connection) { row in
        add(row, of: table, seeds)
      }
    }
    try rows.removeTables()
  }

  /// Adds the rows that a stream has brought of a table, as far as they are here.
  ///
  /// - Throws: `SQLiteError`.
  func add(_ state: StateEntry) throws {
    guard case .sender(let sender) = state.owner, let (table, wanted) = try table(state.table) else { return }
    let results = (table.local.keySQL + wanted.map { SQLText.identifier($0) }).joined(separator: ", ")
    let query = try connection.prepare("SELECT \(results) FROM \(table.sql) WHERE \(table.condition(from: 1))")
    let seeds = seeds(of: state.table, wanted)
    for key in try Vouchers(on: connection).keys(of: table, streams: [state.stream], from: sender) {
      try key.withRawSpan { bytes in
        try table.bindKey(table.row(withKey: bytes), bytes, to: query)
        if try query.step() { add(query, of: table, seeds) }
        query.reset()
      }
    }
  }

  /// A table whose rows have keys, and the columns that count.
  private func table(_ name: TableName) throws -> (KeyedTable, [String])? {
    guard let entry = schema.entry(named: name), entry.kind == .table else { return nil }
    let definition = try schema.definition(of: entry)
    guard let table = KeyedTable(definition, definition) else { return nil }
    let known = columns[name]
    let wanted = definition.columns.map(\.name).filter { known?.contains(ASCIIName.folded($0)) ?? true }
    if states[name] == nil {
      states[name] = TableState(.share(0), stream: key, name, columns: wanted)
      let related = try schema.definitions(of: [name], with: links)
      let columns = KeyColumns(related, links: links)
      ownKeys[name] = Set(
        definition.columns.map(\.name).filter { columns.table(in: name, column: $0) != nil }.map {
          ASCIIName.folded($0)
        })
    }
    return (table, wanted)
  }

  /// Where the hashes of the columns start that count; nil for those that do not.
  private func seeds(of name: TableName, _ columns: [String]) -> [StreamRowHash.Seed?] {
    columns.map { ownKeys[name]?.contains(ASCIIName.folded($0)) == true ? nil : StreamRowHash.Seed(of: $0) }
  }

  private func add(_ row: borrowing SQLiteStatement, of table: KeyedTable, _ seeds: [StreamRowHash.Seed?]) {
    guard let key = RowHash.key(in: row, count: table.keyPlaces.count) else { return }
    if isFromSeveral, !seen[table.name, default: []].insert(key).inserted { return }
    let content = RowHash.of(seeds, in: row, from: table.keyPlaces.count)
    let counts = ownKeys[table.name]?.isEmpty ?? true
    // A row without a key of its own is known by what it says.
    states[table.name]?.replace(counts ? key : withUnsafeBytes(of: content.bigEndian) { Array($0) }, nil, by: content)
  }
}
