import SQLiteChangesets
import SQLiteSchemas

/// Makes edits of the tables that there are.
struct RandomEdit {
  private let tables: [ReplicatedTable]
  private let values: [RandomValues]

  init(_ tables: [ReplicatedTable]) {
    self.tables = tables
    values = tables.map { RandomValues(for: $0.sql) }
  }

  /// How often an edit that SQLite refuses is replaced by another.
  private static let attempts = 4

  /// Makes one edit, of one statement or a few.
  ///
  /// - Throws: `BuckiaError` where SQLite refuses each attempt.
  func make(in database: SimulatedDatabase, _ random: inout SimulationRandom) throws {
    let count = random.chance(0.3) ? random.number(2...3) : 1
    for _ in 0..<count {
      for attempt in 1...Self.attempts {
        do {
          try change(in: database, &random)
          break
        } catch {
          if attempt == Self.attempts { throw error }
        }
      }
    }
  }

  private func change(in database: SimulatedDatabase, _ random: inout SimulationRandom) throws {
    guard let place = tables.indices.randomElement(using: &random) else { return }
    let table = tables[place]
    let rows = try database.rows("\(table.query) ORDER BY \(table.key.map { "\($0 + 1)" }.joined(separator: ", "))")
    let row = random.pick(rows)
    switch (row, random.number(0...99)) {
    case (nil, _), (_, ..<40): try insert(into: place, in: database, &random)
    case (let row?, ..<80): try update(row, of: place, in: database, &random)
    case (let row?, ..<95):
      try database.run(
        Statement(sql: "DELETE FROM \(table.quotedName) WHERE \(condition(table, 1))", values: key(row, table)))
    case (let row?, _): try rename(row, of: place, in: database, &random)
    }
  }

  // MARK: Statements

  private func insert(into place: Int, in database: SimulatedDatabase, _ random: inout SimulationRandom) throws {
    let table = tables[place]
    // SQLite chooses a rowid that is no column.
    let columns = table.columns.indices.filter { !(table.definition.isKeyedByRowID && $0 == 0) || random.chance(0.5) }
    let parents = try references(of: table, in: database, &random)
    let row = columns.map { parents[$0] ?? value(of: $0, in: place, database.replica, &random) }
    let names = columns.map(table.quoted).joined(separator: ", ")
    let parameters = columns.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
    try database.run(Statement(sql: "INSERT INTO \(table.quotedName)(\(names)) VALUES (\(parameters))", values: row))
  }

  private func update(
    _ row: [ChangesetValue], of place: Int, in database: SimulatedDatabase, _ random: inout SimulationRandom
  ) throws {
    let table = tables[place]
    let columns = table.columns.indices.filter { !table.key.contains($0) }.shuffled(using: &random).prefix(
      random.number(1...2))
    guard !columns.isEmpty else { return try rename(row, of: place, in: database, &random) }
    let parents = try references(of: table, in: database, &random)
    try set(
      columns.map { ($0, parents[$0] ?? value(of: $0, in: place, database.replica, &random)) }, in: row, of: table,
      database)
  }

  /// Gives a row another key.
  private func rename(
    _ row: [ChangesetValue], of place: Int, in database: SimulatedDatabase, _ random: inout SimulationRandom
  ) throws {
    let table = tables[place]
    guard let column = random.pick(table.key) else { return }
    try set([(column, value(of: column, in: place, database.replica, &random))], in: row, of: table, database)
  }

  private func set(
    _ values: [(column: Int, value: ChangesetValue)], in row: [ChangesetValue], of table: ReplicatedTable,
    _ database: SimulatedDatabase
  ) throws {
    let settings = values.enumerated().map { "\(table.quoted($1.column)) = ?\($0 + 1)" }.joined(separator: ", ")
    try database.run(
      Statement(
        sql: "UPDATE \(table.quotedName) SET \(settings) WHERE \(condition(table, values.count + 1))",
        values: values.map(\.value) + key(row, table)))
  }

  private func condition(_ table: ReplicatedTable, _ first: Int) -> String {
    table.key.enumerated().map { "\(table.quoted($1)) IS ?\(first + $0)" }.joined(separator: " AND ")
  }

  private func key(_ row: [ChangesetValue], _ table: ReplicatedTable) -> [ChangesetValue] { table.key.map { row[$0] } }

  // MARK: Values

  private func value(of column: Int, in place: Int, _ replica: Int, _ random: inout SimulationRandom) -> ChangesetValue
  {
    let table = tables[place]
    let definition = table.definition
    guard let index = definition.isKeyedByRowID ? (column == 0 ? nil : column - 1) : column else {
      return .integer(Int64(random.chance(0.5) ? random.number(1...6) : 1_000 * (replica + 1) + random.number(0...999)))
    }
    let affinity = definition.affinity(at: index)
    if table.key.contains(column) {
      return values[place].key(for: definition.columns[index], affinity, replica: replica, &random)
    }
    // Values under UNIQUE are from a small range: others want them, too.
    if definition.unique.contains(where: { $0.contains(index) }), random.chance(0.5) {
      return affinity == .text ? .text("u\(random.number(1...4))") : .integer(Int64(random.number(1...4)))
    }
    return values[place].value(for: affinity, isNullable: !definition.columns[index].isNotNull, &random)
  }

  /// For the columns of foreign keys, mostly the values of rows that are there.
  private func references(
    of table: ReplicatedTable, in database: SimulatedDatabase, _ random: inout SimulationRandom
  ) throws -> [Int: ChangesetValue] {
    var found: [Int: ChangesetValue] = [:]
    let offset = table.definition.isKeyedByRowID ? 1 : 0
    for key in table.definition.foreignKeys {
      let places = key.columns.compactMap { table.definition.column(named: $0).map { $0 + offset } }
      guard let parent = tables.first(where: { $0.name == TableName(key.parent) }), places.count == key.columns.count
      else {
        continue
      }
      if random.chance(0.1), !places.contains(where: table.key.contains) {
        for place in places { found[place] = .null }
        continue
      }
      let columns =
        key.parentColumns.isEmpty ? parent.key.map(parent.quoted) : key.parentColumns.map { SQLText.identifier($0) }
      let list = columns.joined(separator: ", ")
      let rows = try database.rows("SELECT \(list) FROM main.\(parent.quotedName) ORDER BY \(list)")
      guard let row = random.pick(rows), row.count == places.count else { continue }
      for (place, value) in zip(places, row) { found[place] = value }
    }
    return found
  }
}
