import BuckiaDiff
import BuckiaSchemaPlans
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The rows of a scope at one moment.
///
/// Rows are gathered in rounds, in TEMP tables of their keys. A row that a condition has chosen, or that is a child of one, has
/// a level: how many steps from child to child it is away. One that is there only because others refer to it has none.
/// In each round the rows of the last one bring what they refer to, and those of the last level their children.
package final class ScopeRows {
  let schema: ScopeSchema
  private let connection: SQLiteConnection

  /// Gathers the rows, inside a transaction that is open on the connection, which must outlive this.
  ///
  /// - Throws: `ReplicationError` as ``ScopeSchema``, and with `danglingReference` where a row refers to one that is not shared;
  ///   `SQLiteError`.
  package init(_ scope: ShareScope, on connection: borrowing SQLiteConnection, _ reader: SchemaReader) throws {
    schema = try ScopeSchema(scope, reader, on: connection)
    self.connection = SQLiteConnection(sharing: connection)
    do {
      try makeTables()
      try gather()
      try requireNoDanglingReferences()
    } catch {
      throw cleaningUp(after: error, by: removeTables)
    }
  }

  /// What is compared of each table.
  package var selections: [TableName: RowSelection] {
    var selections: [TableName: RowSelection] = [:]
    for (place, table) in schema.tables.enumerated() {
      let shared = table.shared ?? SharedTable(table.name)
      switch table.rows {
      case .all:
        let selection = shared.selection(where: nil)
        if selection != RowSelection() { selections[table.name] = selection }
      case .condition: selections[table.name] = shared.selection(where: shared.condition, shared.parameters)
      case .gathered:
        let keys = (0..<table.identity.count).map { "k\($0)" }.joined(separator: ", ")
        let identity = table.identity.joined(separator: ", ")
        selections[table.name] = shared.selection(
          where: "(\(identity)) IN (SELECT \(keys) FROM \(Self.name(place)))")
      }
    }
    return selections
  }

  /// Whether a table takes part, and which of its rows does not depend on others.
  func choosesByRowAlone(_ table: TableName) -> Bool {
    schema.tables.contains { $0.name == table && $0.rows != .gathered }
  }

  /// The tables that take part.
  package var tables: [TableName] { schema.tables.map(\.name) }

  /// Drops the tables in which the rows were gathered.
  package func removeTables() throws {
    for (place, table) in schema.tables.enumerated() where table.rows == .gathered {
      try connection.execute("DROP TABLE IF EXISTS \(Self.name(place))")
    }
  }

  // MARK: Tables of keys

  private static func name(_ place: Int) -> String { "temp.\(table(place))" }
  private static func table(_ place: Int) -> String { "\(SQLiteConnection.temporaryPrefix)scope_\(place)" }

  private func makeTables() throws {
    try removeTables()
    for (place, table) in schema.tables.enumerated() where table.rows == .gathered {
      let isRowID = !table.definition.isWithoutRowID
      let columns = table.identity.indices.map { "k\($0)\(isRowID ? " INTEGER PRIMARY KEY" : " NOT NULL")" }
      let keys = table.identity.indices.map { "k\($0)" }.joined(separator: ", ")
      try connection.execute(
        "CREATE TABLE \(Self.name(place))(\(columns.joined(separator: ", ")), round INTEGER NOT NULL, level INTEGER"
          + (isRowID ? ")" : ", PRIMARY KEY (\(keys))) WITHOUT ROWID"))
      try connection.execute("CREATE INDEX \(Self.name(place))_round ON \(Self.table(place))(round)")
      try connection.execute("CREATE INDEX \(Self.name(place))_level ON \(Self.table(place))(level)")
    }
  }

  // MARK: Rounds

  private func gather() throws {
    for (place, table) in schema.tables.enumerated() where table.rows == .gathered {
      guard let condition = table.shared?.condition else { continue }
      let keys = table.identity.joined(separator: ", ")
      try run(
        "INSERT INTO \(Self.name(place)) SELECT \(keys), 0, 0 FROM \(table.sql) WHERE (\(condition)\n)",
        binding: table.shared)
    }
    var round = 0
    while true {
      var found = 0
      for reference in schema.references {
        found += try addParents(of: reference, round)
        found += try addChildren(of: reference, round)
      }
      if found == 0, round > 0 { return }
      round += 1
    }
  }

  /// Adds the rows that those of the last round refer to.
  private func addParents(of reference: ScopeSchema.Reference, _ round: Int) throws -> Int {
    guard let place = reference.parent, schema.tables[place].rows == .gathered,
      let condition = try condition(of: reference.child, "round", round)
    else { return 0 }
    let children = source(of: reference.child)
    let parent = schema.tables[place]
    let keys = parent.identity.map { "p.\($0)" }.joined(separator: ", ")
    let insert = "INSERT OR IGNORE INTO \(Self.name(place)) SELECT \(keys), \(round + 1), NULL FROM"
    guard !reference.findsParents else {
      return try run(
        "\(insert) \(children) CROSS JOIN \(parent.sql) AS p ON \(match(reference)) WHERE \(condition)")
    }
    let theirs = reference.parentColumns.map { "p.\(SQLText.identifier($0))" }.joined(separator: ", ")
    let mine = reference.columns.map { "+c.\(SQLText.identifier($0))" }.joined(separator: ", ")
    return try run(
      "\(insert) \(parent.sql) AS p WHERE (\(theirs)) IN (SELECT \(mine) FROM \(children) WHERE \(condition))")
  }

  /// Adds the rows that refer to those of the last level.
  private func addChildren(of reference: ScopeSchema.Reference, _ round: Int) throws -> Int {
    guard reference.bringsChildren, let place = reference.parent, let shared = schema.tables[reference.child].shared,
      round < shared.depth ?? .max, schema.tables[reference.child].rows == .gathered,
      let condition = try condition(of: place, "level", round)
    else { return 0 }
    let child = schema.tables[reference.child]
    let keys = child.identity.indices.map { "k\($0)" }
    let chosen = shared.childCondition.map { " WHERE (\($0)\n)" } ?? ""
    let columns = reference.columns.enumerated().map { "\(SQLText.identifier($1)) AS f\($0)" }
    let results = zip(child.identity, keys).map { "\($0) AS \($1)" } + columns
    let children = "(SELECT \(results.joined(separator: ", ")) FROM \(child.sql)\(chosen)) AS c"
    return try run(
      """
      INSERT INTO \(Self.name(reference.child)) SELECT DISTINCT \(keys.map { "c.\($0)" }.joined(separator: ", ")), \
      \(round + 1), \(round + 1) FROM \(join(children, of: reference, to: place)) WHERE \(condition) \
      ON CONFLICT (\(keys.joined(separator: ", "))) DO UPDATE SET level = excluded.level WHERE level IS NULL
      """, binding: chosen.isEmpty ? nil : shared)
  }

  /// The children of the rows of a table, as a part of a FROM clause.
  ///
  /// With an index they are found parent by parent. Without one each row is looked at once and its parent found by its key: to look through
  /// the whole table for every parent would take forever. SQLite would make an index of its own for that, but not for a table without rowid,
  /// nor where both sides compare their values differently.
  private func join(_ children: String, of reference: ScopeSchema.Reference, to place: Int) -> String {
    if reference.findsChildren {
      return "\(source(of: place, as: "p")) CROSS JOIN \(children) ON \(matchOfChildren(reference, byIndex: true))"
    }
    let parent = schema.tables[place]
    let parents = "\(parent.sql) AS p ON \(matchOfChildren(reference, byIndex: false))"
    let gathered =
      parent.rows == .gathered ? " CROSS JOIN \(Self.name(place)) AS s ON \(isGathered(parent, as: "p"))" : ""
    return "\(children) CROSS JOIN \(parents)\(gathered)"
  }

  /// What tells those rows of a table that were found in a round; nil where there are none.
  ///
  /// - Parameter mark: What they are found by: `round` or `level`.
  private func condition(of place: Int, _ mark: String, _ round: Int) throws -> String? {
    switch schema.tables[place].rows {
    case .all: return round == 0 ? "true" : nil
    case .condition: return nil
    case .gathered:
      let condition = "s.\(mark) = \(round)"
      let isAny = try connection.integer("SELECT EXISTS (SELECT 1 FROM \(Self.name(place)) AS s WHERE \(condition))")
      return isAny == 1 ? condition : nil
    }
  }

  /// When a row refers to another: as SQLite compares the two, by the affinity and the collating sequence of the parent's column
  /// (<https://sqlite.org/foreignkeys.html#fk_basics>).
  private func match(_ reference: ScopeSchema.Reference) -> String {
    let terms = zip(reference.columns, reference.parentColumns).map { mine, theirs in
      "p.\(SQLText.identifier(theirs)) = +c.\(SQLText.identifier(mine))"
    }
    return terms.joined(separator: " AND ")
  }

  /// The same with the child's columns as `f0`, `f1` …
  ///
  /// - Parameter isByIndex: Whether an index of the child is to be used, which says the same.
  private func matchOfChildren(_ reference: ScopeSchema.Reference, byIndex isByIndex: Bool) -> String {
    let terms = reference.parentColumns.enumerated().flatMap { place, column -> [String] in
      let column = "p.\(SQLText.identifier(column))"
      return ["\(column) = +c.f\(place)"] + (isByIndex ? ["c.f\(place) = \(column)"] : [])
    }
    return terms.joined(separator: " AND ")
  }

  /// - Returns: How many rows were written.
  @discardableResult
  private func run(_ sql: String, binding shared: SharedTable? = nil) throws -> Int {
    let statement = try connection.prepare(sql)
    if let shared { try RowSelection(where: nil, shared.parameters).bindParameters(to: statement) }
    try statement.run()
    return Int(try connection.cachedInteger("SELECT changes()") ?? 0)
  }

  // MARK: Dangling references

  /// Makes sure that each shared row refers only to shared rows.
  private func requireNoDanglingReferences() throws {
    for reference in schema.references {
      let table = schema.tables[reference.child]
      let isSet = reference.columns.map { "c.\(SQLText.identifier($0)) IS NOT NULL" }.joined(separator: " AND ")
      var missing = isSet
      if let place = reference.parent {
        let parent = schema.tables[place]
        missing +=
          reference.findsParents
          ? " AND NOT EXISTS (SELECT 1 FROM \(parent.sql) AS p WHERE \(match(reference)))"
          : " AND \(isMissing(reference, in: parent.sql))"
      }
      let values = reference.columns.map { "c.\(SQLText.identifier($0))" }.joined(separator: ", ")
      let statement = try connection.prepare(
        "SELECT \(values) FROM \(source(of: reference.child)) WHERE \(missing) LIMIT 1")
      if table.rows == .condition, let shared = table.shared {
        try RowSelection(where: nil, shared.parameters).bindParameters(to: statement)
      }
      guard try statement.step() else { continue }
      let found = reference.columns.indices.map { "\(ChangesetValue(statement, at: $0))" }.joined(separator: ", ")
      throw dangling(reference, found)
    }
  }

  /// The same as that no row of the parent matches, for one that has no index for it: then SQLite makes one, once.
  private func isMissing(_ reference: ScopeSchema.Reference, in parent: String) -> String {
    let mine = zip(reference.columns, reference.collations).map {
      "(+c.\(SQLText.identifier($0))) COLLATE \(SQLText.identifier($1))"
    }
    let theirs = reference.parentColumns.map { "p.\(SQLText.identifier($0))" }
    let isSet = theirs.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")
    return
      "(\(mine.joined(separator: ", "))) NOT IN (SELECT \(theirs.joined(separator: ", ")) FROM \(parent) AS p WHERE \(isSet))"
  }

  /// All shared rows of a table, as a part of a FROM clause. Where they are gathered, `s` is the table of their keys.
  private func source(of place: Int, as alias: String = "c") -> String {
    let table = schema.tables[place]
    switch table.rows {
    case .all: return "\(table.sql) AS \(alias)"
    case .condition:
      return "(SELECT * FROM \(table.sql) WHERE (\(table.shared?.condition ?? "true")\n)) AS \(alias)"
    case .gathered:
      return "\(Self.name(place)) AS s CROSS JOIN \(table.sql) AS \(alias) ON \(isGathered(table, as: alias))"
    }
  }

  /// When a row is the one whose key `s` has.
  private func isGathered(_ table: ScopeSchema.Table, as alias: String) -> String {
    zip(table.identity, table.identity.indices).map { "\(alias).\($0) = s.k\($1)" }.joined(separator: " AND ")
  }

  private func dangling(_ reference: ScopeSchema.Reference, _ value: String) -> ReplicationError {
    let table = schema.tables[reference.child].name
    let column = reference.columns.joined(separator: ", ")
    let why =
      reference.parent == nil
      ? "table \"\(reference.parentName)\", which is not shared"
      : "a row of table \"\(reference.parentName)\" that does not exist"
    return ReplicationError(
      .danglingReference,
      "a row of table \"\(table)\" refers to \(why): \(column) is \(value). Share that too, leave the column out or rewrite it, "
        + "or mend the row", table: table.text, column: column)
  }
}
