import BuckiaDiff
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// The rows of a scope at one moment.
///
/// Rows are gathered in rounds, in TEMP tables of their keys. Each row that a condition has chosen has the level 0, and
/// a child has the level of its parent plus 1. A row that is shared only because others refer to it has no level. In
/// each round, the rows of the last round bring the rows that they refer to, and the rows of the last level bring their
/// children. Finally, rows that refer to a row which is not shared are left out (`ScopeRows+LeftOut.swift`).
package final class ScopeRows {
  var schema: ScopeSchema
  let connection: SQLiteConnection
  /// The places of tables from which rows are left out.
  var leftOutPlaces: Set<Int> = []
  /// The children that were searched before, by the name of their TEMP table; true if that table exists.
  private var childTables: [String: Bool] = [:]

  /// Gathers the rows inside an open transaction of the connection, which must outlive this object.
  ///
  /// - Parameters:
  ///   - scope: The scope.
  ///   - recipient: The share that the rows are for, and the keys with which its recipients sign; rows that enter only
  ///     through the recipients' own changes are held back.
  ///   - leavesOutFailing: True to leave out the rows for which a condition fails. Each row is then evaluated by
  ///     itself.
  /// - Throws: `ReplicationError` as ``ScopeSchema``; `SQLiteError`.
  package init(
    _ scope: ShareScope, for recipient: (share: Int64, readers: Set<String>)? = nil, leavesOutFailing: Bool = false,
    on connection: borrowing SQLiteConnection, _ reader: SchemaReader
  ) throws {
    schema = try ScopeSchema(scope, reader, on: connection)
    self.connection = SQLiteConnection(sharing: connection)
    do {
      try makeTables()
      if leavesOutFailing { try leaveOutFailing() }
      try gather()
      if let recipient { try holdBack(from: recipient.readers, of: recipient.share) }
      try leaveOutRows()
    } catch {
      throw cleaningUp(after: error, by: removeTables)
    }
  }

  /// Runs `body`. If a condition fails for a row, runs it again and leaves such rows out, because one row must not keep
  /// all others from being shared.
  ///
  /// - Parameter body: Receives true if it has to leave out the rows for which a condition fails.
  /// - Throws: What `body` throws.
  package static func leavingOutFailing<Result>(
    in scopes: [ShareScope], _ body: (Bool) throws -> Result
  ) throws -> Result {
    do { return try body(false) } catch let error as SQLiteError
      where error.primaryCode == 1
      && scopes.contains(where: { $0.tables.contains { $0.condition ?? $0.childCondition != nil } })
    {
      return try body(true)
    }
  }

  /// The rows and columns of each table that are compared.
  package var selections: [TableName: RowSelection] {
    var selections: [TableName: RowSelection] = [:]
    for (place, table) in schema.tables.enumerated() {
      let shared = table.selected
      let identity = table.identity.joined(separator: ", ")
      let isKept =
        leftOutPlaces.contains(place)
        ? "(\(identity)) NOT IN (SELECT \(Self.keys(of: table)) FROM \(Self.leftOutName(place)))" : nil
      switch table.rows {
      case .all:
        let selection = shared.selection(where: isKept)
        if selection != RowSelection() { selections[table.name] = selection }
      case .condition:
        let terms = [shared.condition.map { "(\($0)\n)" }, isKept].compactMap { $0 }
        selections[table.name] = shared.selection(where: terms.joined(separator: " AND "), shared.parameters)
      case .gathered:
        let isGathered = "(\(identity)) IN (SELECT \(Self.keys(of: table)) FROM \(Self.name(place)))"
        selections[table.name] = shared.selection(
          where: [isGathered, isKept].compactMap { $0 }.joined(separator: " AND "))
      }
    }
    return selections
  }

  /// True if a table takes part, and each of its rows is in the scope or not regardless of other rows.
  func choosesByRowAlone(_ table: TableName) -> Bool {
    schema.tables.contains { $0.name == table && $0.rows != .gathered }
  }

  /// True if all rows of a table are shared.
  func isWhole(_ table: TableName) -> Bool { schema.tables.contains { $0.name == table && $0.rows == .all } }

  /// The tables that take part only because others refer to them, and the columns that are left out of their rows.
  package var parentTables: [(name: TableName, omitted: [String])] {
    schema.tables.filter { $0.shared == nil }.map { ($0.name, $0.selected.omittedColumns) }
  }

  /// The tables that take part.
  package var tables: [TableName] { schema.tables.map(\.name) }

  /// Drops the TEMP tables.
  package func removeTables() throws {
    for place in schema.tables.indices {
      for name in [Self.name(place), Self.leftOutName(place)] {
        try connection.execute("DROP TABLE IF EXISTS \(name)")
      }
    }
    for name in childTables.keys { try connection.execute("DROP TABLE IF EXISTS \(name)") }
  }

  // MARK: Tables of keys

  static func name(_ place: Int) -> String { "temp.\(SQLiteConnection.temporaryPrefix)scope_\(place)" }

  /// The columns of a table of keys, as SQL.
  static func keys(of table: ScopeSchema.Table, as alias: String? = nil) -> String {
    table.identity.indices.map { "\(alias.map { "\($0)." } ?? "")k\($0)" }.joined(separator: ", ")
  }

  /// Creates a table of keys.
  ///
  /// - Parameter others: Further columns; each gets an index.
  func makeTable(_ name: String, of table: ScopeSchema.Table, _ others: [(name: String, type: String)]) throws {
    let isRowID = !table.definition.isWithoutRowID
    let keys = table.identity.indices.map { "k\($0)\(isRowID ? " INTEGER PRIMARY KEY" : " NOT NULL")" }
    let columns = keys + others.map { "\($0.name) \($0.type)" }
    try connection.execute(
      "CREATE TABLE \(name)(\(columns.joined(separator: ", "))"
        + (isRowID ? ")" : ", PRIMARY KEY (\(Self.keys(of: table)))) WITHOUT ROWID"))
    for (column, _) in others {
      try connection.execute("CREATE INDEX \(name)_\(column) ON \(name.dropFirst("temp.".count))(\(column))")
    }
  }

  private func makeTables() throws {
    try removeTables()
    for (place, table) in schema.tables.enumerated() where table.rows == .gathered {
      try makeTable(Self.name(place), of: table, [("round", "INTEGER NOT NULL"), ("level", "INTEGER")])
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
      for (number, reference) in schema.references.enumerated() {
        found += try addParents(of: reference, round)
        found += try addChildren(of: reference, number, round)
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
  private func addChildren(of reference: ScopeSchema.Reference, _ number: Int, _ round: Int) throws -> Int {
    guard reference.bringsChildren, let place = reference.parent, let shared = schema.tables[reference.child].shared,
      round < shared.depth ?? .max, schema.tables[reference.child].rows == .gathered,
      let condition = try condition(of: place, "level", round)
    else { return 0 }
    let child = schema.tables[reference.child]
    let children = Children(
      of: child, reference, where: shared.childCondition, shared,
      name: "temp.\(SQLiteConnection.temporaryPrefix)children_\(number)")
    let keys = schema.tables[place].rows == .gathered ? Self.name(place) : nil
    let (join, binding) = try join(children, of: reference, number, to: place, keys)
    return try run(
      """
      INSERT INTO \(Self.name(reference.child)) SELECT DISTINCT \(Self.keys(of: child, as: "c")), \
      \(round + 1), \(round + 1) FROM \(join) WHERE \(condition) \
      ON CONFLICT (\(Self.keys(of: child))) DO UPDATE SET level = excluded.level WHERE level IS NULL
      """, binding: binding)
  }

  /// Rows that may refer to others, with their identity as `k0`, `k1` … and the referring columns as `f0`, `f1` …
  struct Children {
    /// A part of a FROM clause.
    let sql: String
    /// The table with the values of its parameters.
    let chosenBy: SharedTable?
    /// The TEMP table that keeps these rows if they are needed again.
    let name: String

    init(
      of table: ScopeSchema.Table, _ reference: ScopeSchema.Reference, where condition: String?,
      _ shared: SharedTable?, name: String
    ) {
      let columns = reference.columns.enumerated().map { "\(SQLText.identifier($1)) AS f\($0)" }
      let results = table.identity.enumerated().map { "\($1) AS k\($0)" } + columns
      let chosen = condition.map { " WHERE (\($0)\n)" } ?? ""
      sql = "(SELECT \(results.joined(separator: ", ")) FROM \(table.sql)\(chosen))"
      chosenBy = condition == nil ? nil : shared
      self.name = name
    }
  }

  /// The children `c` of some parents `p`, as a part of a FROM clause.
  ///
  /// With an index, children are found parent by parent. Without one, each row is visited once and its parent is found
  /// by key, because a scan of the table for each parent would take quadratic time. SQLite would create an automatic
  /// index for that, but neither on a table without rowid nor where both sides compare values differently. If the
  /// children are needed in another round, they go to a TEMP table with an index, and a chain of rows costs one visit
  /// for each row.
  ///
  /// - Parameters:
  ///   - place: The place of the parent.
  ///   - keys: The table with the keys of the parents that count, called `s`; nil for all parents.
  /// - Returns: The part, and the table with the values of its parameters.
  func join(
    _ children: Children, of reference: ScopeSchema.Reference, _ number: Int, to place: Int, _ keys: String?
  ) throws -> (sql: String, binding: SharedTable?) {
    let table = schema.tables[place]
    let isChosen = isGathered(table, as: "p")
    let parents = keys.map { "\($0) AS s CROSS JOIN \(table.sql) AS p ON \(isChosen)" } ?? "\(table.sql) AS p"
    let byIndex = matchOfChildren(reference, byIndex: true)
    if reference.findsChildren {
      return ("\(parents) CROSS JOIN \(children.sql) AS c ON \(byIndex)", children.chosenBy)
    }
    if childTables[children.name] == nil {
      childTables[children.name] = false
      let match = matchOfChildren(reference, byIndex: false)
      let chosen = keys.map { " CROSS JOIN \($0) AS s ON \(isChosen)" } ?? ""
      return ("\(children.sql) AS c CROSS JOIN \(table.sql) AS p ON \(match)\(chosen)", children.chosenBy)
    }
    if childTables[children.name] == false {
      try makeTable(of: children, reference)
      childTables[children.name] = true
    }
    return ("\(parents) CROSS JOIN \(children.name) AS c ON \(byIndex)", nil)
  }

  /// Makes the TEMP table of the children that refer to a row. The referring values are stored with the affinity of the
  /// parent's columns.
  private func makeTable(of children: Children, _ reference: ScopeSchema.Reference) throws {
    let identity = Self.keys(of: schema.tables[reference.child])
    let values = reference.columns.indices.map { "f\($0)" }
    let columns = zip(values, zip(reference.affinities, reference.collations)).map { name, kind in
      "\(name) \(kind.0.rawValue) COLLATE \(SQLText.identifier(kind.1))"
    }
    let list = values.joined(separator: ", ")
    try connection.execute("DROP TABLE IF EXISTS \(children.name)")
    try connection.execute("CREATE TABLE \(children.name)(\(columns.joined(separator: ", ")), \(identity))")
    let isSet = values.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")
    try run(
      "INSERT INTO \(children.name) SELECT \(list), \(identity) FROM \(children.sql) WHERE \(isSet)",
      binding: children.chosenBy)
    try connection.execute(
      "CREATE INDEX \(children.name)_index ON \(children.name.dropFirst("temp.".count))(\(list), \(identity))")
  }

  /// An SQL condition for the rows of a table that were found in a round; nil if there are none.
  ///
  /// - Parameter mark: The column with the number of the round: `round` or `level`.
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

  /// An SQL condition that is true if a row refers to another. It compares as SQLite does, by the affinity and the
  /// collating sequence of the parent's column
  func match(_ reference: ScopeSchema.Reference) -> String {
    let terms = zip(reference.columns, reference.parentColumns).map { mine, theirs in
      "p.\(SQLText.identifier(theirs)) = +c.\(SQLText.identifier(mine))"
    }
    return terms.joined(separator: " AND ")
  }

  /// The same with the child's columns as `f0`, `f1` …
  ///
  /// - Parameter isByIndex: True to use an index of the child, which compares in the same way.
  private func matchOfChildren(_ reference: ScopeSchema.Reference, byIndex isByIndex: Bool) -> String {
    let terms = reference.parentColumns.enumerated().flatMap { place, column -> [String] in
      let column = "p.\(SQLText.identifier(column))"
      return ["\(column) = +c.f\(place)"] + (isByIndex ? ["c.f\(place) = \(column)"] : [])
    }
    return terms.joined(separator: " AND ")
  }

  /// - Returns: How many rows were written.
  @discardableResult
  func run(_ sql: String, binding shared: SharedTable? = nil) throws -> Int {
    let statement = try connection.prepare(sql)
    if let shared { try RowSelection(where: nil, shared.parameters).bindParameters(to: statement) }
    try statement.run()
    return Int(try connection.cachedInteger("SELECT changes()") ?? 0)
  }

  /// All shared rows of a table, as a part of a FROM clause. If the rows are gathered, `s` is the table of their keys.
  func source(of place: Int, as alias: String = "c") -> String {
    let table = schema.tables[place]
    switch table.rows {
    case .all: return "\(table.sql) AS \(alias)"
    case .condition:
      let identity = table.identity.enumerated().map { "\($1) AS buckia_k\($0)" }.joined(separator: ", ")
      return "(SELECT \(identity), * FROM \(table.sql) WHERE (\(table.shared?.condition ?? "true")\n)) AS \(alias)"
    case .gathered:
      return "\(Self.name(place)) AS s CROSS JOIN \(table.sql) AS \(alias) ON \(isGathered(table, as: alias))"
    }
  }

  /// An SQL condition that is true for the row whose key is in `s`.
  func isGathered(_ table: ScopeSchema.Table, as alias: String) -> String {
    zip(table.identity, table.identity.indices).map { "\(alias).\($0) = s.k\($1)" }.joined(separator: " AND ")
  }
}
