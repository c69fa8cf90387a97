import BuckiaBytes
import BuckiaApply
import BuckiaDiff
import BuckiaLedger
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// The rows of an exchange as they are now, each of them once, in the columns that all its streams have of their tables.
///
/// The integer keys that replicas give out by themselves, and what refers to them, differ where the rows are the same. So a reference counts
/// as the row that it leads to (``LiveNodes``).
final class LiveRows {
  private let schema: SchemaReader
  private let connection: SQLiteConnection
  private let key: [UInt8]
  /// True if a row can come twice.
  private let isFromSeveral: Bool
  /// The columns that the streams have of each table, in lower case.
  private var columns: [TableName: Set<String>] = [:]
  private var tables: [TableName: LiveTable] = [:]
  private var order: [LiveTable] = []

  /// Reads the rows.
  ///
  /// - Parameter leavesOutFailing: True to leave out the rows for which a condition fails.
  /// - Throws: `ReplicationError` where a scope cannot be followed any more; `SQLiteError`; `LedgerError` when the ledger is damaged.
  init(
    _ exchange: LiveWords.Exchange, _ schema: SchemaReader, leavingOutFailing leavesOutFailing: Bool,
    on connection: borrowing SQLiteConnection
  ) throws {
    self.schema = schema
    self.connection = SQLiteConnection(sharing: connection)
    key = exchange.streams.first ?? []
    isFromSeveral = exchange.streams.count > 1
    let links = try exchange.shares.flatMap { try ShareScope(json: $0.scope).keyLinks }
    var known = exchange.states
    for share in exchange.shares {
      known += try StateEntry.all(of: .share(share.number), stream: share.stream, on: connection)
    }
    for entry in known {
      let names = Set(try TableState(entry, at: connection.path).columns.map { ASCIIName.folded($0) })
      columns[entry.table] = columns[entry.table].map { $0.intersection(names) } ?? names
    }
    var names = Set(exchange.states.map(\.table))
    for share in exchange.shares {
      names.formUnion(try ScopeSchema(ShareScope(json: share.scope), schema, on: connection).tables.map(\.name))
    }
    let counted = try exchange.sender.map { try CountedTable.names(heldBy: $0, on: connection) } ?? []
    try makeTables(names.union(counted), links)
    for share in exchange.shares { try add(share, leavesOutFailing) }
    for state in exchange.states { try add(state) }
    for name in counted { try add(rowsOf: name, heldBy: exchange.sender ?? "") }
    try addParents()
  }

  /// The sum of all rows, and how many there are.
  func total() -> (sum: Sum128, rows: Int64) {
    let nodes = order.flatMap(\.nodes)
    for node in nodes { node.resolve() }
    LiveNodes.refine(nodes)
    var sum = Sum128()
    var rows: Int64 = 0
    for table in order {
      let sums = table.sums()
      sum += sums.digest
      rows += sums.rowCount
    }
    return (sum, rows)
  }

  // MARK: Tables

  /// Makes the tables of the exchange, and those that they refer to.
  private func makeTables(_ names: Set<TableName>, _ links: [KeyLink]) throws {
    let related = try schema.definitions(of: names.sorted { $0.text < $1.text }, with: links)
    let targets = KeyColumns(related, links: links)
    for definition in related {
      let name = TableName(definition.name)
      let known = columns[name]
      let wanted = definition.columns.map(\.name).filter { known?.contains(ASCIIName.folded($0)) ?? true }
      let table = LiveTable(definition, columns: wanted, targets, hashing: key)
      tables[name] = table
      order.append(table)
    }
    for table in order { table.connect(to: tables) }
  }

  // MARK: Rows

  /// Adds the rows of a scope, as they would be sent.
  private func add(_ share: ShareEntry, _ leavesOutFailing: Bool) throws {
    let isOpen = try WideningChanges.areAllowed(in: share.number, on: connection)
    let rows = try ScopeRows(
      ShareScope(json: share.scope), for: isOpen ? nil : (share.number, share.readers(on: connection)),
      leavesOutFailing: leavesOutFailing, on: connection, schema)
    try cleaningUp(
      after: {
        for name in rows.tables {
          guard let table = tables[name] else { continue }
          try (rows.selections[name] ?? RowSelection()).forEachRow(
            of: table.definition, table.identity + table.columns, on: connection
          ) { row in table.add(row, isFromSeveral: isFromSeveral) }
          table.endSource()
        }
      }, by: rows.removeTables)
  }

  /// Adds the rows that a stream has brought of a table, as far as they are here.
  private func add(_ state: StateEntry) throws {
    guard case .sender(let sender) = state.owner, let table = tables[state.table],
      let keyed = KeyedTable(table.definition, table.definition)
    else { return }
    let query = try connection.prepare(
      "SELECT \(table.results) FROM \(keyed.sql) WHERE \(keyed.condition(from: 1))")
    try Vouchers(on: connection).forEach(of: keyed, stream: state.stream, from: sender) { key, _ in
      try key.withRawSpan { bytes in
        try keyed.bindKey(keyed.row(withKey: bytes), bytes, to: query)
        if try query.step() { table.add(query, isFromSeveral: isFromSeveral) }
        query.reset()
      }
    }
    table.endSource()
  }

  /// Adds the rows of a table that only their content identifies, as far as a sender has them.
  private func add(rowsOf name: TableName, heldBy sender: String) throws {
    guard let table = tables[name] else { return }
    try ContentTables([table.definition], schema, on: connection)[name]?.forEachRow(table.results, heldBy: sender) {
      table.add($0, isFromSeveral: isFromSeveral)
    }
    table.endSource()
  }

  /// Adds the rows that others refer to, and that are no part of the exchange: they do not count themselves.
  private func addParents() throws {
    var hasFound = true
    while hasFound {
      hasFound = false
      for table in order { table.nodes.forEach { $0.beginSearch() } }
      for table in order {
        guard let column = table.ownKey else { continue }
        let missing = table.missingKeys(in: order)
        if missing.isEmpty { continue }
        let query = try connection.prepare(
          "SELECT \(table.results) FROM main.\(table.name.quoted) WHERE \(SQLText.identifier(column)) = ?1")
        for key in missing.sorted() {
          try query.bind(key, at: 0)
          if try query.step() {
            table.add(query, isFromSeveral: true)
            hasFound = true
          }
          query.reset()
        }
        table.endSource(isCounted: false)
      }
    }
  }
}
