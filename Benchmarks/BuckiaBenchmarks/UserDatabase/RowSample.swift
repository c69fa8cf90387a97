import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

/// Random rows of one table, each with the change to make to it.
///
/// Values are never made up, so column types, CHECK constraints and foreign keys still hold: an updated row takes a value
/// from another row, and an inserted row is one of the original that was removed from the older copy.
struct RowSample {
  /// What happens to a row.
  enum Change {
    case insert
    case update
    case delete
  }

  let table: TableDefinition
  /// Each row's change, the values of its key columns and that of ``column``; nil when the table has only key columns.
  private(set) var rows: [(change: Change, key: [ChangesetValue], value: ChangesetValue?)] = []
  /// The column to update; nil when the table has only key columns.
  let column: String?

  /// Picks rows.
  ///
  /// - Throws: `SQLiteError` when the table cannot be read.
  init(
    _ count: Int, of candidate: TableSelection.Candidate, in database: String, using random: inout SeededGenerator
  ) throws {
    let table = candidate.definition
    self.table = table
    let others = table.columns.indices.filter { !table.primaryKey.contains($0) }.map { table.columns[$0].name }
    let column = others.randomElement(using: &random)
    self.column = column
    let places = random.distinct(count, from: 0...(candidate.rows - 1)).sorted()
    var changes: [Int: Change] = [:]
    for place in places { changes[place] = Self.change(in: candidate, hasValues: column != nil, using: &random) }

    let connection = try SQLiteConnection(opening: database, as: .readOnly)
    var names = table.primaryKey.map { table.columns[$0].name }
    let keyCount = names.count
    if let column { names.append(column) }
    let list = names.map(SQLText.identifier).joined(separator: ", ")
    var place = 0
    var picked: [(Change, [ChangesetValue], ChangesetValue?)] = []
    try connection.forEachRow(of: "SELECT \(list) FROM \(SQLText.identifier(table.name))") { row in
      defer { place += 1 }
      guard let change = changes[place] else { return }
      let values = (0..<row.columnCount).map { ChangesetValue(row, at: $0) }
      let key = Array(values.prefix(keyCount))
      // `WHERE key = ?` never finds a NULL.
      if !key.contains(.null) { picked.append((change, key, values.count > keyCount ? values[keyCount] : nil)) }
    }
    rows = picked
  }

  /// Of ten rows, eight are updated, one is inserted and one deleted. Rows that others may refer to are only updated.
  private static func change(
    in candidate: TableSelection.Candidate, hasValues: Bool, using random: inout SeededGenerator
  ) -> Change {
    let canBeDeleted = !candidate.isReferenced
    let number = Int.random(in: 0..<10, using: &random)
    guard hasValues else { return number < 5 ? .insert : .delete }
    if canBeDeleted, number == 0 { return .insert }
    return canBeDeleted && number == 1 ? .delete : .update
  }

  /// Finds one row by its key.
  var condition: String {
    table.primaryKey.map { "\(SQLText.identifier(table.columns[$0].name)) = ?" }.joined(separator: " AND ")
  }

  /// Deletes the rows that will be inserted from the older copy. A failure leaves it unchanged.
  func deleteInsertions(from database: String) throws(SQLiteError) {
    let connection = try SQLiteConnection.withoutSideEffects(opening: database)
    let transaction = try SQLiteTransaction(on: connection)
    let delete = try connection.prepare("DELETE FROM \(SQLText.identifier(table.name)) WHERE \(condition)")
    for row in rows where row.change == .insert {
      try delete.bind(row.key, from: 0)
      try delete.run()
    }
    try transaction.commit()
  }
}
