import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// How one foreign key is checked.
///
/// Keys that SQLite itself could not enforce (no such parent, no unique index on its columns) are the schema's fault and
/// are not checked: <https://sqlite.org/foreignkeys.html#fk_indexes>.
struct ForeignKeyCheck {
  let key: ForeignKey
  let child: TableDefinition
  let parent: TableDefinition
  let parentColumns: [Int]
  /// The columns of the child that refer to them; -1 for generated ones.
  let childColumns: [Int]
  private let references: [String]
  /// The row that the local one refers to, as SQL.
  private let parentRow: String
  let session: ApplySession

  init?(_ key: ForeignKey, of child: TableDefinition, in schema: SchemaReader, _ session: ApplySession) throws {
    guard let parent = try schema.table(named: TableName(key.parent)) else { return nil }
    let columns = parent.columns(referredToBy: key)
    let isUnique = ([parent.primaryKey] + parent.unique).contains { Set($0) == Set(columns) }
    guard columns.count == key.columns.count, !columns.isEmpty, isUnique else { return nil }
    self.session = session
    self.key = key
    self.child = child
    self.parent = parent
    parentColumns = columns
    childColumns = key.columns.map { child.column(named: $0) ?? -1 }
    references = key.columns.map { "c.\(SQLText.identifier($0))" }
    // The parent is on the left, since its collating sequence decides, and also its affinity: the plus removes the
    // child's, which would also prevent the use of the parent's index.
    let equal = zip(columns, references).map { "p.\(SQLText.identifier(parent.columns[$0].name)) = +\($1)" }
    parentRow = "FROM main.\(SQLText.identifier(parent.name)) AS p WHERE \(equal.joined(separator: " AND "))"
  }

  /// True if it refers to the primary key, which only a DELETE takes away.
  var isToKey: Bool { parentColumns.allSatisfy { parent.primaryKey.contains($0) } }

  var parentColumnNames: [String] { parentColumns.map { parent.columns[$0].name } }

  /// The columns of the child's changes that refer to the parent; nil for columns that the changes lack.
  func referring(in match: TableMatch) -> [Int?] {
    return childColumns.map { match.columns.firstIndex(of: $0 + child.columnOffset) }
  }

  /// The columns that identify the child's rows, as SQL: the rowid, or without rowids the key.
  private var identity: String {
    if !child.isWithoutRowID, let name = child.rowIDName { return "c.\(name)" }
    return child.primaryKey.map { "c.\(SQLText.identifier(child.columns[$0].name))" }.joined(separator: ", ")
  }

  /// The query for the rows that meet a condition: their keys, the values by which they refer to others, and their
  /// identity.
  private func select(where condition: String, ofMissing: Bool = true) -> String {
    let results = child.keySQL.map { "c.\($0)" } + references + [identity]
    let isSet = references.map { "\($0) IS NOT NULL" }.joined(separator: " AND ")
    return "SELECT \(results.joined(separator: ", ")) FROM main.\(SQLText.identifier(child.name)) AS c "
      + "WHERE \(condition) AND \(isSet) AND \(ofMissing ? "NOT " : "")EXISTS (SELECT 1 \(parentRow))"
  }

  /// Adds the rows for which a condition holds.
  ///
  /// - Parameter ofMissing: True for rows that refer to nothing, false for rows that refer to an existing row.
  func addAll(where condition: String, ofMissing: Bool = true, to found: inout BrokenRows) throws {
    let rows = PreparedStatement(try session.connection.prepare(select(where: condition, ofMissing: ofMissing)))
    while try rows.statement.step() { found.add(rows) }
  }

  // MARK: Single rows

  /// The key of the row that some values refer to; nil if there is none.
  func parentKey(of values: [UInt8]) throws -> [UInt8]? {
    let results = parent.keySQL.map { "p.\($0)" }.joined(separator: ", ")
    let terms = parentColumns.enumerated().map { "p.\(SQLText.identifier(parent.columns[$1].name)) = +?\($0 + 1)" }
    return try record(
      "SELECT \(results) FROM main.\(SQLText.identifier(parent.name)) AS p WHERE \(terms.joined(separator: " AND "))",
      values)
  }

  /// The values by which the row with a key refers to another; nil if it refers to none, or does not exist.
  func values(ofRow key: [UInt8]) throws -> [UInt8]? {
    let terms = child.keySQL.enumerated().map { "c.\($1) = ?\($0 + 1)" } + references.map { "\($0) IS NOT NULL" }
    return try record(
      "SELECT \(references.joined(separator: ", ")) FROM main.\(SQLText.identifier(child.name)) AS c "
        + "WHERE \(terms.joined(separator: " AND "))", key)
  }

  private func record(_ query: String, _ values: [UInt8]) throws -> [UInt8]? {
    let prepared = try session.connection.cached(query)
    defer {
      prepared.statement.reset()
      prepared.statement.clearBindings()
    }
    try ClockKeyRecord(bytes: values).bind(to: prepared.statement, from: 0)
    guard try prepared.statement.step() else { return nil }
    return prepared.statement.record(of: 0..<prepared.statement.columnCount)
  }

  // MARK: Rows that were written

  /// Rows that were written, as noted, and refer to nothing.
  func written(notedIn store: KeyStore, _ found: inout BrokenRows) throws {
    let equal = child.keySQL.enumerated().map { "w.k\($0) IS c.\($1)" }.joined(separator: " AND ")
    try addAll(where: "EXISTS (SELECT 1 FROM \(store.qualifiedName) AS w WHERE \(equal))", to: &found)
  }

  /// Rows that the changes wrote and that refer to nothing.
  ///
  /// - Parameter last: The greatest rowid before the changes, for a table without a key.
  func written(_ match: TableMatch, _ sections: TableSections, after last: Int64?, _ found: inout BrokenRows) throws {
    let key = child.keyIndexes
    let columns = key.compactMap { match.columns.firstIndex(of: $0) }
    // An UPDATE that leaves the reference alone breaks nothing. A generated column can follow any other.
    let referring = referring(in: match)
    let dependsOnOthers = childColumns.contains(-1)
    var lookups: [[Bool]: PreparedStatement] = [:]
    var nullKeys: Set<[UInt8]> = []
    try sections.forEachChange(of: TableName(child.name)) { change, bytes in
      guard change.operation != .delete else { return }
      if change.operation == .update, !dependsOnOthers,
        !referring.contains(where: { $0.map { change.new($0).isDefined } ?? false })
      {
        return
      }
      let isNull = columns.map { change.row($0).kind == .null }
      if isNull.contains(true) {
        // Content identifies rows with NULL in the key: all that share the key are found at once.
        var writer = ChangesetWriter()
        for column in columns { writer.append(change.row(column), of: bytes) }
        guard nullKeys.insert(writer.bytes).inserted else { return }
        if let last { return try addAll(where: "c.\(child.keySQL[0]) > \(last)", to: &found) }
      }
      let lookup = try lookups[isNull] ?? prepareLookup(of: key, isNull)
      lookups[isNull] = lookup
      for (index, column) in columns.enumerated() where !isNull[index] {
        try lookup.statement.bind(change.row(column), in: bytes, at: index)
      }
      while try lookup.statement.step() { found.add(lookup) }
      lookup.statement.reset()
    }
  }

  private func prepareLookup(of key: [Int], _ isNull: [Bool]) throws -> PreparedStatement {
    let columns = child.changesetColumnsSQL
    // `IS ?` would find NULL, too, but not by an index: each row would cost a scan of the table.
    let terms = zip(key, isNull).enumerated().map { index, part in
      "c.\(columns[part.0]) \(part.1 ? "IS NULL" : "= ?\(index + 1)")"
    }
    return PreparedStatement(
      try session.connection.prepare(select(where: terms.joined(separator: " AND ")), isPersistent: true))
  }

  // MARK: Rows whose parent went

  /// The condition under which a row refers to values that are noted, as SQL.
  func refers(toNotedIn store: KeyStore) -> String {
    // If child and parent compare alike, an index on the child's columns can be used.
    let isAlike = zip(childColumns, parentColumns).allSatisfy { mine, theirs in
      mine >= 0 && child.affinity(at: mine) == parent.affinity(at: theirs)
        && ASCIIName.matches(child.columns[mine].collation, parent.columns[theirs].collation)
    }
    let names = references.indices.map { "k\($0)" }
    if isAlike {
      let values = "SELECT \(names.joined(separator: ", ")) FROM \(store.qualifiedName)"
      return "(\(references.joined(separator: ", "))) IN (\(values))"
    }
    let equal = zip(names, references).map { "r.\($0) = +\($1)" }.joined(separator: " AND ")
    return "EXISTS (SELECT 1 FROM \(store.qualifiedName) AS r WHERE \(equal))"
  }

  /// Rows that refer to values that were taken away, as noted.
  func orphaned(notedIn store: KeyStore, _ found: inout BrokenRows) throws {
    try addAll(where: refers(toNotedIn: store), to: &found)
  }

  /// Rows that refer to the key of a row that the changes deleted.
  func orphaned(_ match: TableMatch, _ sections: TableSections, _ found: inout BrokenRows) throws {
    let columns = parentColumns.compactMap { match.columns.firstIndex(of: $0 + parent.columnOffset) }
    guard columns.count == parentColumns.count, parentColumns.allSatisfy({ parent.primaryKey.contains($0) }),
      sections.takeAway(from: TableName(parent.name))
    else { return }
    let store = try KeyStore("deleted", for: parent, parentColumns, on: session.connection)
    let insert = try store.insertion(on: session.connection)
    var isEmpty = true
    try sections.forEachChange(of: TableName(parent.name)) { change, bytes in
      guard change.operation == .delete else { return }
      for (index, column) in columns.enumerated() { try insert.bind(change.old(column), in: bytes, at: index) }
      try insert.run()
      isEmpty = false
    }
    if !isEmpty { try orphaned(notedIn: store, &found) }
    try store.clear(on: session.connection)
  }
}

/// Collects the rows that refer, by one foreign key, to rows that are missing or were replaced.
struct BrokenRows {
  /// A row that refers to another.
  struct Row {
    /// The values of its key, in the format of changesets.
    let key: [UInt8]
    /// The values by which it refers to the other row.
    let values: [UInt8]
    /// True if the changes have taken away a row with these values.
    let isTaken: Bool
    /// The identity of the row.
    fileprivate let number: UInt64
  }

  let check: ForeignKeyCheck
  /// True while the rows that are added refer to values that the changes have taken away.
  var areTaken = false
  /// The rows that refer to nothing, each once.
  private(set) var missing: [Row] = []
  /// The rows that refer to another row than before.
  private(set) var replaced: [Row] = []
  /// True while the rows that are added refer to another row than before.
  var areReplaced = false
  private var numbers: Set<UInt64> = []
  private var replacedNumbers: Set<UInt64> = []

  init(_ check: ForeignKeyCheck) { self.check = check }

  /// Adds the row that a statement of the check stands on.
  mutating func add(_ prepared: PreparedStatement) {
    let keys = check.child.keyIndexes.count
    let references = check.childColumns.count
    let number = prepared.statement.rowNumber(from: keys + references)
    guard areReplaced ? replacedNumbers.insert(number).inserted : numbers.insert(number).inserted else { return }
    let row = Row(
      key: prepared.statement.record(of: 0..<keys), values: prepared.statement.record(of: keys..<(keys + references)),
      isTaken: areTaken, number: number)
    if areReplaced { replaced.append(row) } else { missing.append(row) }
  }
}

extension ForeignKeyCheck {
  /// The row that some values refer to, for people.
  func name(ofParent values: [UInt8]) throws -> RowName {
    RowName(table: parent.name, columns: parentColumnNames, values: try ChangesetValue.record(values))
  }

  /// The row of the child with a key, for people.
  func name(ofChild key: [UInt8]) throws -> RowName {
    RowName(
      table: child.name, columns: child.keyIndexes.map { child.changesetColumns[$0] },
      values: try ChangesetValue.record(key))
  }
}

/// A row as sentences name it: `the row id = 4 of table "person"`.
struct RowName: CustomStringConvertible {
  private let table: String
  private let key: [(column: String, value: ChangesetValue)]

  /// - Parameters:
  ///   - table: The table.
  ///   - columns: The columns that identify the rows.
  ///   - values: Their values; nil if unknown.
  init(table: String, columns: [String], values: [ChangesetValue?]) {
    self.table = table
    key = zip(columns, values).compactMap { column, value in value.map { (column, $0) } }
  }

  var description: String {
    let place = "table \(EscapedText.quoted(table))"
    guard !key.isEmpty else { return "a row of \(place)" }
    let values = key.map { "\($0.column.escaped(limit: 40)) = \(Self.text(of: $0.value))" }.joined(separator: ", ")
    return "the row \(values) of \(place)"
  }

  private static func text(of value: ChangesetValue) -> String {
    switch value {
    case .null: "NULL"
    case .integer(let number): "\(number)"
    case .real(let number): "\(number)"
    case .text(let text): "'\(text.escaped(limit: 40))'"
    case .blob(let bytes): "a blob of \(bytes.count) bytes"
    }
  }
}
