import BuckiaBytes
import BuckiaDiff
import SQLiteConnections
import SQLiteSchemas

/// Selects the rows by which a database gets those of a scope back from an earlier state of it.
///
/// Rows of both are the same if they have the same key; without a key, or with NULL in it, if they have the same
/// content. The selected rows are those that either database has in the scope. Of tables that the scope does not name,
/// they are the rows that these refer to and that the present database no longer has.
package struct RestoredRows {
  /// The selections for the earlier database, as long as its connection is open.
  package private(set) var earlier: [TableName: RowSelection] = [:]
  /// The selections for the present one.
  package private(set) var present: [TableName: RowSelection] = [:]
  /// The tables.
  package private(set) var tables: [TableName] = []
  /// The columns that the present database no longer has, as `table.column`. They are left out.
  package private(set) var missingColumns: [String] = []

  /// - Parameters:
  ///   - earlier: The rows of the scope in the earlier database.
  ///   - now: Those in the present one; nil if it has none of the tables that the scope names.
  ///   - present: The present database.
  ///   - schema: Its schema.
  ///   - deletes: True to select rows that the earlier database does not have.
  ///   - replaces: True for a table whose changed rows get their earlier values. Otherwise they are selected in the
  ///     earlier database only, so that they are conflicts.
  /// - Throws: `SQLiteError`.
  package init(
    of earlier: ScopeRows, into now: ScopeRows?, on present: borrowing SQLiteConnection, _ schema: SchemaReader,
    deletes: Bool, replaces: (TableName) -> Bool
  ) throws {
    for (place, table) in earlier.schema.tables.enumerated() {
      let name = table.name
      guard let local = try schema.table(named: name) else {
        // A dropped table is made again, if the scope names it.
        if table.isNamed { tables.append(name) }
        self.earlier[name] = earlier.selections[name]
        continue
      }
      tables.append(name)
      var omitted = table.isNamed ? table.selected.omittedColumns : []
      for column in table.definition.columns where local.column(named: column.name) == nil {
        omitted.append(column.name)
        missingColumns.append("\(table.definition.name).\(column.name)")
      }
      let pair = RestoredTable(
        table, now?.schema.tables.first { $0.name == name }, without: omitted, earlier.connection, present,
        number: place)
      try pair.gather(earlier.selections[name], now?.selections[name], deletes: deletes, replaces: replaces(name))
      self.earlier[name] = RowSelection(where: pair.condition(table), omitting: omitted)
      self.present[name] = RowSelection(where: pair.other.map { pair.condition($0) } ?? "0", omitting: omitted)
    }
  }
}

/// A table of both databases, with TEMP tables of selected rows, of keys, and of contents.
private struct RestoredTable: ~Copyable {
  private let table: ScopeSchema.Table
  /// The table in the present database; nil if the scope does not name it.
  let other: ScopeSchema.Table?
  private let earlier: SQLiteConnection
  private let present: SQLiteConnection
  /// The columns of the key and of the content, as SQL.
  private let key: [String]
  private let columns: [String]
  private let prefix: String

  init(
    _ table: ScopeSchema.Table, _ other: ScopeSchema.Table?, without omitted: [String],
    _ earlier: borrowing SQLiteConnection, _ present: borrowing SQLiteConnection, number: Int
  ) {
    self.table = table
    self.other = table.isNamed ? other : nil
    self.earlier = SQLiteConnection(sharing: earlier)
    self.present = SQLiteConnection(sharing: present)
    let definition = table.definition
    key = definition.primaryKey.map { SQLText.identifier(definition.columns[$0].name) }
    columns = definition.columns.map(\.name).filter { name in !omitted.contains { ASCIIName.matches($0, name) } }
      .map { SQLText.identifier($0) }
    prefix = "temp.\(SQLiteConnection.temporaryPrefix)restored_\(number)_"
  }

  // MARK: SQL

  /// The selected rows, by what identifies a row in its database.
  private var rows: String { "\(prefix)rows" }
  /// The rows of the scope in the present database.
  private var scope: String { "\(prefix)scope" }
  /// Keys from the other database.
  private var keys: String { "\(prefix)keys" }
  /// Keys that only the present database has.
  private var newer: String { "\(prefix)newer" }
  /// Contents from the earlier database, each with the number of rows that have it.
  private var contents: String { "\(prefix)contents" }

  private static func values(_ count: Int) -> String { (0..<count).map { "v\($0)" }.joined(separator: ", ") }

  private static func isListed(_ columns: [String], in list: String) -> String {
    "(\(columns.joined(separator: ", "))) IN (SELECT \(values(columns.count)) FROM \(list))"
  }

  /// True for a selected row.
  func condition(_ table: ScopeSchema.Table) -> String { Self.isListed(table.identity, in: rows) }

  /// True for a row that only its content identifies.
  private var hasNoKey: String { key.isEmpty ? "1" : "(\(key.map { "\($0) IS NULL" }.joined(separator: " OR ")))" }

  private static func query(_ columns: [String], of table: ScopeSchema.Table, where condition: String?) -> String {
    "SELECT \(columns.joined(separator: ", ")) FROM \(table.sql)" + (condition.map { " WHERE \($0)\n" } ?? "")
  }

  /// Creates a list of values.
  private static func create(
    _ list: String, _ count: Int, with others: String = "", on connection: borrowing SQLiteConnection
  ) throws {
    try connection.execute("CREATE TABLE \(list)(\(values(count))\(others), PRIMARY KEY (\(values(count))))")
  }

  /// Adds the results of a query on one connection to a list on the same or the other one.
  private static func add(
    _ query: String, binding selection: RowSelection? = nil, from source: borrowing SQLiteConnection, to list: String,
    on target: borrowing SQLiteConnection
  ) throws {
    let rows = try source.prepare(query)
    try selection?.bindParameters(to: rows)
    let places = (0..<rows.columnCount).map { _ in "?" }.joined(separator: ", ")
    let insertion = try target.prepare("INSERT OR IGNORE INTO \(list) VALUES (\(places))")
    while try rows.step() {
      for index in 0..<rows.columnCount { try insertion.bind(column: index, of: rows, at: index) }
      try insertion.run()
    }
  }

  // MARK: Rows

  /// Selects the rows in both databases.
  func gather(_ before: RowSelection?, _ now: RowSelection?, deletes: Bool, replaces: Bool) throws {
    try Self.create(rows, table.identity.count, on: earlier)
    let chosen = Self.query(table.identity, of: table, where: before?.condition)
    try Self.add(chosen, binding: before, from: earlier, to: rows, on: earlier)
    if !key.isEmpty {
      try Self.create(keys, key.count, on: earlier)
      try Self.create(keys, key.count, on: present)
    }
    guard let other else { return try selectMissing() }
    for list in [rows, scope] { try Self.create(list, other.identity.count, on: present) }
    try Self.add(
      Self.query(other.identity, of: other, where: now?.condition), binding: now, from: present, to: scope,
      on: present)
    func select(where condition: String) throws {
      try present.execute("INSERT OR IGNORE INTO \(rows) \(Self.query(other.identity, of: other, where: condition))")
    }
    let isInScope = Self.isListed(other.identity, in: scope)
    if !key.isEmpty {
      // Rows that the scope has now had other values.
      try Self.add(Self.query(key, of: other, where: isInScope), from: present, to: keys, on: earlier)
      try earlier.execute(
        "INSERT OR IGNORE INTO \(rows) "
          + Self.query(table.identity, of: table, where: Self.isListed(key, in: keys)))
      let known = Self.query(key, of: table, where: condition(table))
      try Self.add(known, from: earlier, to: keys, on: present)
      if replaces { try select(where: Self.isListed(key, in: keys)) }
    }
    if key.isEmpty || !replaces || table.mayHaveNoKey { try selectEqualContents(of: other, all: !replaces) }
    guard deletes else { return }
    try select(where: "\(isInScope) AND \(hasNoKey)")
    guard !key.isEmpty else { return }
    try earlier.execute(
      "DELETE FROM \(keys) WHERE (\(Self.values(key.count))) IN (\(Self.query(key, of: table, where: nil)))")
    try Self.create(newer, key.count, on: present)
    try Self.add("SELECT * FROM \(keys)", from: earlier, to: newer, on: present)
    try select(where: Self.isListed(key, in: newer))
  }

  /// Keeps the selected rows of the earlier database that the present one does not have.
  private func selectMissing() throws {
    guard !key.isEmpty else { return try earlier.execute("DELETE FROM \(rows)") }
    try Self.add(Self.query(key, of: table, where: condition(table)), from: earlier, to: keys, on: present)
    try present.execute(
      "DELETE FROM \(keys) WHERE (\(Self.values(key.count))) IN (\(Self.query(key, of: table, where: nil)))")
    try Self.add("SELECT * FROM \(keys)", from: present, to: keys, on: earlier)
    try earlier.execute(
      "DELETE FROM \(rows); INSERT INTO \(rows) "
        + Self.query(table.identity, of: table, where: Self.isListed(key, in: keys)))
  }

  /// Selects rows of the present database that the earlier one has selected with the same content, and no more of each
  /// content than there.
  ///
  /// - Parameter all: False for rows without a key only.
  private func selectEqualContents(of other: ScopeSchema.Table, all: Bool) throws {
    let count = columns.count
    try Self.create(contents, count, with: ", number", on: present)
    let groups = columns.map { "\($0) COLLATE BINARY" }.joined(separator: ", ")
    let selected = condition(table) + (all ? "" : " AND \(hasNoKey)")
    try Self.add(
      Self.query(columns + ["count(*)"], of: table, where: selected) + " GROUP BY \(groups)", from: earlier,
      to: contents, on: present)
    let identity = other.identity.enumerated().map { "t.\($1) AS i\($0)" }.joined(separator: ", ")
    let identities = other.identity.indices.map { "i\($0)" }.joined(separator: ", ")
    let equal = columns.enumerated().map { "c.v\($0) IS t.\($1)" }.joined(separator: " AND ")
    try present.execute(
      """
      INSERT OR IGNORE INTO \(rows) SELECT \(identities) FROM (
        SELECT \(identity), row_number() OVER (PARTITION BY c.rowid) AS place, c.number AS number
        FROM \(other.sql) AS t CROSS JOIN \(contents) AS c WHERE \(equal)) WHERE place <= number
      """)
  }
}

extension ScopeSchema.Table {
  /// True if rows can have NULL in the primary key.
  fileprivate var mayHaveNoKey: Bool {
    !definition.isWithoutRowID && definition.primaryKey.contains { !definition.columns[$0].isNotNull }
  }
}
