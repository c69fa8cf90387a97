/// Makes edits of the existing tables.
struct RandomEdit {
  private let tables: [ReplicatedTable]
  private let values: [RandomValues]

  init(_ tables: [ReplicatedTable]) {
    self.tables = tables
    values = tables.map { RandomValues(for: $0.sql) }
  }

  /// The number of attempts after an edit that SQLite refuses.
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

  /// Changes the key of a row.
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
    // Values under UNIQUE are from a small range, to collide with those of other replicas.
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

/// Makes values of all kinds for the columns of a table.
struct RandomValues {
  /// The literals of the CHECK constraints, which these mostly allow.
  private let literals: [ChangesetValue]

  /// - Parameter sql: The statement that made the table.
  init(for sql: String) {
    literals = CreateTableParts.checks(in: sql).flatMap { $0 }.compactMap { token in
      if token.hasPrefix("'"), token.hasSuffix("'"), token.count > 1 {
        return .text(String(token.dropFirst().dropLast()).replacing("''", with: "'"))
      }
      return Int64(token).map { .integer($0) } ?? Double(token).map { .real($0) }
    }
  }

  /// A value for a column outside of the key.
  ///
  /// Most values are unique, to be traceable.
  ///
  /// - Parameters:
  ///   - affinity: The affinity of the column.
  ///   - isNullable: True if it may be NULL.
  func value(for affinity: Affinity, isNullable: Bool, _ random: inout SimulationRandom) -> ChangesetValue {
    if isNullable, random.chance(0.1) { return .null }
    if !literals.isEmpty, random.chance(0.4), let literal = random.pick(literals) { return literal }
    switch affinity {
    case .integer: return integer(&random)
    case .real: return real(&random)
    case .text: return text(&random)
    case .blob: return random.chance(0.5) ? blob(&random) : any(&random)
    case .numeric: return any(&random)
    }
  }

  private func any(_ random: inout SimulationRandom) -> ChangesetValue {
    switch random.number(0...3) {
    case 0: integer(&random)
    case 1: real(&random)
    case 2: text(&random)
    default: blob(&random)
    }
  }

  private func integer(_ random: inout SimulationRandom) -> ChangesetValue {
    switch random.number(0...9) {
    case 0...2: .integer(Int64(random.number(0...9)))
    case 3: .integer(random.pick([Int64.min, .max, -1, 1 << 31, 1 << 53]) ?? 0)
    default: .integer(Int64(random.number(100...9_999_999)))
    }
  }

  private func real(_ random: inout SimulationRandom) -> ChangesetValue {
    switch random.number(0...9) {
    case 0: .real(Double(random.number(0...9)))
    case 1: .real(random.pick([-0.0, 1e300, .leastNonzeroMagnitude, .infinity, 1.0 / 3]) ?? 0)
    default: .real(Double(random.number(1...9_999_999)) / 64)
    }
  }

  private func text(_ random: inout SimulationRandom) -> ChangesetValue {
    let word = String(random.next() % 1_679_616, radix: 36)
    switch random.number(0...19) {
    case 0: return .text("")
    case 1: return .text("Ünï \(word) ✓\n'\"")
    case 2: return .text(String(repeating: "\(word) ", count: 1_000))
    case 3: return .text("\(random.number(0...9))")
    default: return .text(word)
    }
  }

  private func blob(_ random: inout SimulationRandom) -> ChangesetValue {
    let count = random.chance(0.1) ? 5_000 : random.number(0...6)
    let first = UInt8(truncatingIfNeeded: random.next())
    return .blob((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) ^ first })
  }

  /// A value for a key column: mostly one that other replicas can use, too.
  func key(for column: ColumnDefinition, _ affinity: Affinity, replica: Int, _ random: inout SimulationRandom)
    -> ChangesetValue
  {
    let isShared = random.chance(0.5)
    let number = isShared ? random.number(1...6) : 1_000 * (replica + 1) + random.number(0...999)
    switch affinity {
    case .integer, .numeric: return .integer(Int64(number))
    case .real: return .real(Double(number) / 2)
    case .blob where random.chance(0.3): return .blob([UInt8(truncatingIfNeeded: number)])
    case .text, .blob:
      let name = "k\(number)"
      return .text(ASCIIName.matches(column.collation, "NOCASE") && random.chance(0.3) ? name.uppercased() : name)
    }
  }
}
