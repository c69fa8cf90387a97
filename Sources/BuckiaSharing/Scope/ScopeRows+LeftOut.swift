import BuckiaDiff
import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Rows of a scope that refer to a row which is not shared, and the rows that refer to them in turn. At the receivers
/// they would dangle, which is why they are left out until the reference is mended; everything else is shared.
///
/// A TEMP table for each table has the keys of these rows, the round in which they were found, and the number of the
/// reference that was found first.
extension ScopeRows {
  /// The most rows that are listed for each reference.
  private static let listLimit = 20

  static func leftOutName(_ place: Int) -> String { "temp.\(SQLiteConnection.temporaryPrefix)left_out_\(place)" }

  /// The reference number of rows for which a condition fails.
  private static let failing = -2

  // MARK: Finding

  /// Leaves out the rows for which evaluating a condition fails, because of a value that its expression rejects.
  ///
  /// - Throws: `SQLiteError`.
  func leaveOutFailing() throws {
    for (place, table) in schema.tables.enumerated() {
      guard var shared = table.shared else { continue }
      let failing = try failingRows(of: table, shared)
      if failing.isEmpty { continue }
      for key in failing {
        try insert("\(key.map { "\($0)" }.joined(separator: ", ")), 0, \(Self.failing)", into: place, binding: nil)
      }
      let keys = table.identity.joined(separator: ", ")
      let isLeftOut = "(\(keys)) IN (SELECT \(Self.keys(of: table)) FROM \(Self.leftOutName(place)))"
      func guarded(_ condition: String) -> String { "CASE WHEN \(isLeftOut) THEN 0 ELSE (\(condition)\n) END" }
      shared.condition = shared.condition.map(guarded)
      shared.childCondition = shared.childCondition.map(guarded)
      schema.tables[place].selected = shared
    }
  }

  /// The identities of the rows of a table for which a condition fails.
  private func failingRows(of table: ScopeSchema.Table, _ shared: SharedTable) throws -> [[ChangesetValue]] {
    let terms = [shared.condition, shared.childCondition].compactMap { $0.map { "(\($0)\n)" } }
    guard !terms.isEmpty else { return [] }
    let isRow = table.identity.enumerated().map { "\($1) = :buckia_k\($0)" }.joined(separator: " AND ")
    let condition = try connection.prepare(
      "SELECT \(terms.joined(separator: ", ")) FROM \(table.sql) WHERE \(isRow)")
    var failing: [[ChangesetValue]] = []
    try connection.forEachRow(of: "SELECT \(table.identity.joined(separator: ", ")) FROM \(table.sql)") { row in
      let key = table.identity.indices.map { ChangesetValue(row, at: $0) }
      var parameters = shared.parameters
      for (place, value) in key.enumerated() { parameters["buckia_k\(place)"] = value }
      try RowSelection(where: nil, parameters).bindParameters(to: condition)
      defer { condition.reset() }
      do { _ = try condition.step() } catch let error as SQLiteError where error.primaryCode == 1 {
        failing.append(key)
      }
    }
    return failing
  }

  /// Finds the rows that are left out.
  ///
  /// - Throws: `SQLiteError`.
  func leaveOutRows() throws {
    for (number, reference) in schema.references.enumerated() { try leaveOutDangling(reference, number) }
    if leftOutPlaces.isEmpty { return }
    var round = 0
    var found = 0
    repeat {
      found = 0
      for (number, reference) in schema.references.enumerated() {
        found += try leaveOutChildren(of: reference, number, round)
      }
      round += 1
    } while found > 0
  }

  /// Leaves out the rows whose parent does not exist, or is in a table that does not take part.
  private func leaveOutDangling(_ reference: ScopeSchema.Reference, _ number: Int) throws {
    let table = schema.tables[reference.child]
    var missing = reference.columns.map { "c.\(SQLText.identifier($0)) IS NOT NULL" }.joined(separator: " AND ")
    if let place = reference.parent {
      let parent = schema.tables[place]
      missing +=
        reference.findsParents
        ? " AND NOT EXISTS (SELECT 1 FROM \(parent.sql) AS p WHERE \(match(reference)))"
        : " AND \(isMissing(reference, in: parent.sql))"
    }
    let rows = "FROM \(source(of: reference.child)) WHERE \(missing)"
    let binding = table.rows == .condition ? table.shared : nil
    let query = try connection.prepare("SELECT 1 \(rows) LIMIT 1")
    if let binding { try RowSelection(where: nil, binding.parameters).bindParameters(to: query) }
    guard try query.step() else { return }
    query.reset()
    let keys = table.identity.enumerated().map { place, column in
      switch table.rows {
      case .all: "c.\(column)"
      case .condition: "c.buckia_k\(place)"
      case .gathered: "s.k\(place)"
      }
    }
    try insert("\(keys.joined(separator: ", ")), 0, \(number) \(rows)", into: reference.child, binding: binding)
  }

  /// Leaves out the rows that refer to those of the last round.
  private func leaveOutChildren(of reference: ScopeSchema.Reference, _ number: Int, _ round: Int) throws -> Int {
    guard let place = reference.parent, leftOutPlaces.contains(place),
      try connection.integer("SELECT EXISTS (SELECT 1 FROM \(Self.leftOutName(place)) WHERE round = \(round))") == 1
    else { return 0 }
    let table = schema.tables[reference.child]
    let children = sharedChildren(of: reference, number)
    let (join, binding) = try join(children, of: reference, number, to: place, Self.leftOutName(place))
    return try insert(
      "\(Self.keys(of: table, as: "c")), \(round + 1), \(number) FROM \(join) WHERE s.round = \(round)",
      into: reference.child, binding: binding)
  }

  /// The shared rows that may refer to others by a reference.
  func sharedChildren(of reference: ScopeSchema.Reference, _ number: Int) -> Children {
    let table = schema.tables[reference.child]
    let condition: String? =
      switch table.rows {
      case .all: nil
      case .condition: table.shared?.condition
      case .gathered:
        "(\(table.identity.joined(separator: ", "))) IN (SELECT \(Self.keys(of: table)) FROM \(Self.name(reference.child)))"
      }
    return Children(
      of: table, reference, where: condition, table.rows == .condition ? table.shared : nil,
      name: "temp.\(SQLiteConnection.temporaryPrefix)shared_children_\(number)")
  }

  @discardableResult
  func insert(_ rows: String, into place: Int, binding: SharedTable?) throws -> Int {
    let name = Self.leftOutName(place)
    if leftOutPlaces.insert(place).inserted {
      try makeTable(name, of: schema.tables[place], [("round", "INTEGER"), ("reference", "INTEGER")])
    }
    return try run("INSERT OR IGNORE INTO \(name) SELECT \(rows)", binding: binding)
  }

  /// An SQL expression that is true if no parent row matches. The parent has no index for that; SQLite builds one,
  /// once.
  private func isMissing(_ reference: ScopeSchema.Reference, in parent: String) -> String {
    let mine = zip(reference.columns, reference.collations).map {
      "(+c.\(SQLText.identifier($0))) COLLATE \(SQLText.identifier($1))"
    }
    let theirs = reference.parentColumns.map { "p.\(SQLText.identifier($0))" }
    let isSet = theirs.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")
    return
      "(\(mine.joined(separator: ", "))) NOT IN (SELECT \(theirs.joined(separator: ", ")) FROM \(parent) AS p WHERE \(isSet))"
  }

  /// The keys of the rows of a table that are left out; nil if there are none.
  ///
  /// - Throws: `SQLiteError`.
  func leftOutKeys(of definition: TableDefinition, isKeyedByInteger: Bool) throws -> ScopePageDigests.ChangedKeys? {
    let name = TableName(definition.name)
    guard let place = leftOutPlaces.first(where: { schema.tables[$0].name == name }) else { return nil }
    let table = schema.tables[place]
    var keys = ScopePageDigests.ChangedKeys()
    if table.definition.isKeyedByRowID { keys.addAll() }
    let columns = definition.keySQL
    try connection.forEachRow(
      of: """
        SELECT \(columns.map { "c.\($0)" }.joined(separator: ", ")) FROM \(Self.leftOutName(place)) AS s \
        CROSS JOIN \(table.sql) AS c ON \(isGathered(table, as: "c"))
        """
    ) { row in
      if isKeyedByInteger {
        keys.add(row.integer(at: 0))
      } else if let key = ChangesetWriter.key(of: row, count: columns.count) {
        keys.add(key)
      } else {
        keys.addAll()
      }
    }
    return keys
  }

  // MARK: The report

  /// The rows that are left out: how many there are by each reference, and some of them.
  ///
  /// - Throws: `SQLiteError`.
  package func leftOut() throws -> [LeftOutRows] {
    var found: [LeftOutRows] = []
    for place in leftOutPlaces.sorted() {
      let table = schema.tables[place]
      let name = Self.leftOutName(place)
      let groups = try connection.rows(
        of: "SELECT reference, round > 0, count(*) FROM \(name) GROUP BY 1, 2 ORDER BY 1, 2"
      ) { (number: Int($0.integer(at: 0)), isParentLeftOut: $0.integer(at: 1) == 1, count: Int($0.integer(at: 2))) }
      let keys = table.definition.keySQL
      for group in groups {
        let reference = group.number < 0 ? nil : schema.references[group.number]
        let columns = keys + (reference?.columns ?? []).map { SQLText.identifier($0) }
        let rows = try connection.rows(
          of: """
            SELECT \(columns.map { "c.\($0)" }.joined(separator: ", ")) FROM \(name) AS s \
            CROSS JOIN \(table.sql) AS c ON \(isGathered(table, as: "c")) \
            WHERE s.reference = \(group.number) AND (s.round > 0) = \(group.isParentLeftOut ? 1 : 0) \
            ORDER BY \(Self.keys(of: table, as: "s")) LIMIT \(Self.listLimit)
            """
        ) { row in
          let values = columns.indices.map { ChangesetValue(row, at: $0) }
          return LeftOutRows.Row(key: Array(values.prefix(keys.count)), values: Array(values.dropFirst(keys.count)))
        }
        let reason: LeftOutRows.Reason =
          reference == nil
          ? group.number == Self.failing ? .conditionFails : .heldBack
          : reference?.parent == nil ? .parentNotShared : group.isParentLeftOut ? .parentLeftOut : .noParent
        found.append(
          LeftOutRows(
            table: table.definition.name, columns: reference?.columns ?? [], parent: reference?.parentName.text ?? "",
            reason: reason,
            count: group.count, rows: rows))
      }
    }
    return found
  }
}

/// Rows of a table that are left out of a share, mostly because they refer to rows that the receivers would not have.
public struct LeftOutRows: Hashable, Codable, Sendable {
  /// Why the receivers would not have the rows that are referred to.
  public enum Reason: String, Codable, Sendable {
    /// They do not exist.
    case noParent
    /// Their table is not shared: it is excluded, virtual or missing.
    case parentNotShared
    /// They are left out themselves.
    case parentLeftOut
    /// Only a change by a receiver would bring these rows into the share.
    case heldBack
    /// Evaluating a condition of the scope fails for these rows.
    case conditionFails
  }

  /// One of the rows.
  public struct Row: Hashable, Codable, Sendable {
    /// The values of its key; the rowid where it has none.
    public let key: [ChangesetValue]
    /// The values of the columns.
    public let values: [ChangesetValue]
  }

  /// The table.
  public let table: String
  /// The columns by which the rows refer to others.
  public let columns: [String]
  /// The table that is referred to.
  public let parent: String
  /// Why the rows are left out.
  public let reason: Reason
  /// The number of rows.
  public let count: Int
  /// The rows with the least keys, at most 20.
  public let rows: [Row]
}
