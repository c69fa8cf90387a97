import SQLiteConnections

/// The rows of the other side that the base does not have, of tables whose primary keys have become others on both sides: which row is which
/// cannot be determined, and each of them is a conflict.
struct UnpairedRows {
  private let incoming: IncomingDatabase

  /// - Throws: `ReplicationError` with `conflict` if there are such rows under the policy `abort`.
  init(of incoming: IncomingDatabase, _ policies: ConflictPolicies) throws {
    self.incoming = incoming
    try forEach { layout, _ in
      guard policies.policy(for: layout.table) == .abort else { return true }
      throw ReplicationError(.conflict, Self.reason, table: layout.table.text)
    }
  }

  private static let reason =
    "the table has another primary key on each side than in the base, so the row cannot be matched with one here"

  /// True if there is none.
  func isEmpty() throws -> Bool {
    var isEmpty = true
    try forEach { _, _ in
      isEmpty = false
      return false
    }
    return isEmpty
  }

  /// Records them as conflicts of a merge.
  func record(in log: ConflictLog) throws {
    try forEach { layout, row in
      try log.record(
        .constraint, .omitted, layout, base: nil, local: nil, incoming: log.row { $0.append(encoded: row) },
        reason: Array(Self.reason.utf8))
      return true
    }
    try log.flush()
  }

  /// Gives the rows to `body`, each as a record, until that returns false.
  private func forEach(_ body: (RecordedRowLayout, [UInt8]) throws -> Bool) throws {
    let (old, new) = (try SchemaReader(incoming.base.connection), try SchemaReader(incoming.source.connection))
    for name in incoming.unpaired {
      guard let before = try old.table(named: name), let table = try new.table(named: name) else { continue }
      var shared: [(before: String, place: Int)] = []
      var unchanged = ["1"]
      for (place, column) in table.columns.enumerated() {
        let oldName = incoming.renames.first {
          $0.table == name && ASCIIName.matches($0.newName, column.name)
        }?.oldName
        if let found = before.column(named: oldName ?? column.name) {
          shared.append((SQLText.identifier(before.columns[found].name), place))
        } else if !table.primaryKey.contains(place) {
          let value = try AddedColumnValue.literal(of: column, isStrict: table.isStrict)
          unchanged.append("\(SQLText.identifier(column.name)) IS \(value)")
        }
      }
      var known: Set<Int> = []
      let query = "SELECT \((["1"] + shared.map(\.before)).joined(separator: ", ")) FROM main.\(name.quoted)"
      try incoming.base.connection.forEachRow(of: query) { known.insert($0.hash(of: shared.indices.map { $0 + 1 })) }
      let columns = table.columns.map { SQLText.identifier($0.name) }.joined(separator: ", ")
      let rows = try incoming.source.connection.prepare(
        "SELECT \(columns), \(unchanged.joined(separator: " AND ")) FROM main.\(name.quoted)")
      let layout = RecordedRowLayout(table: name, columns: table.columns.map(\.name), key: table.primaryKey)
      while try rows.step() {
        if rows.integer(at: table.columns.count) != 0, known.contains(rows.hash(of: shared.map(\.place))) { continue }
        var writer = ChangesetWriter()
        for column in table.columns.indices { writer.append(column: column, of: rows) }
        guard try body(layout, writer.bytes) else { return }
      }
    }
  }
}

extension SQLiteStatement {
  /// A hash of some columns of the row.
  fileprivate borrowing func hash(of columns: [Int]) -> Int {
    var writer = ChangesetWriter()
    for column in columns { writer.append(column: column, of: self) }
    return writer.bytes.hashValue
  }
}
