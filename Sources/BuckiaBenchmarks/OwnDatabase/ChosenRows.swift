import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Rows of one table that are to change, chosen at random, and what becomes of them.
///
/// No value is invented, so types, CHECKs and references keep what they hold: an updated row takes a value of another
/// row, a deleted one goes, and an inserted one is a row of the original that the older copy has to do without.
struct ChosenRows {
  /// What becomes of a row.
  enum Fate {
    case inserted
    case updated
    case deleted
  }

  let table: TableDefinition
  /// The values of the rows' key columns and of one other column; nil there when the table has no other.
  private(set) var rows: [(fate: Fate, key: [ChangesetValue], value: ChangesetValue?)] = []
  /// The column that updates change.
  let column: String?

  /// Chooses rows.
  ///
  /// - Throws: `SQLiteError` when the table cannot be read.
  init(
    _ count: Int, of candidate: TableChoice.Candidate, in database: String, using random: inout SeededGenerator
  ) throws {
    let table = candidate.definition
    self.table = table
    let others = table.columns.indices.filter { !table.primaryKey.contains($0) }.map { table.columns[$0].name }
    let column = others.randomElement(using: &random)
    self.column = column
    let places = random.distinct(count, from: 0...(candidate.rows - 1)).sorted()
    var fates: [Int: Fate] = [:]
    for place in places { fates[place] = Self.fate(of: candidate, hasValues: column != nil, using: &random) }

    let connection = try SQLiteConnection(opening: database, as: .readOnly)
    var names = table.primaryKey.map { table.columns[$0].name }
    let keyCount = names.count
    if let column { names.append(column) }
    let list = names.map(SQLText.identifier).joined(separator: ", ")
    var place = 0
    var chosen: [(Fate, [ChangesetValue], ChangesetValue?)] = []
    try connection.forEachRow(of: "SELECT \(list) FROM \(SQLText.identifier(table.name))") { row in
      defer { place += 1 }
      guard let fate = fates[place] else { return }
      let values = (0..<row.columnCount).map { ChangesetValue(row, at: $0) }
      let key = Array(values.prefix(keyCount))
      // No statement finds a row by a key that is NULL.
      if !key.contains(.null) { chosen.append((fate, key, values.count > keyCount ? values[keyCount] : nil)) }
    }
    rows = chosen
  }

  /// Of ten rows, eight are updated, one is new, one goes; rows that others refer to stay.
  private static func fate(
    of candidate: TableChoice.Candidate, hasValues: Bool, using random: inout SeededGenerator
  ) -> Fate {
    let canVanish = !candidate.isReferenced
    let number = Int.random(in: 0..<10, using: &random)
    guard hasValues else { return number < 5 ? .inserted : .deleted }
    if canVanish, number == 0 { return .inserted }
    return canVanish && number == 1 ? .deleted : .updated
  }

  /// Finds one row by its key.
  var condition: String {
    table.primaryKey.map { "\(SQLText.identifier(table.columns[$0].name)) = ?" }.joined(separator: " AND ")
  }

  /// Takes the rows that are to be inserted out of the older copy. On failure nothing has changed.
  func withholdInsertions(from database: String) throws(SQLiteError) {
    let connection = try Author.connection(to: database)
    let transaction = try SQLiteTransaction(on: connection)
    let delete = try connection.prepare("DELETE FROM \(SQLText.identifier(table.name)) WHERE \(condition)")
    for row in rows where row.fate == .inserted {
      try delete.bind(row.key, from: 0)
      try delete.run()
    }
    try transaction.commit()
  }
}

extension ChangesetValue {
  /// Copies a value of a row.
  init(_ row: borrowing SQLiteStatement, at column: Int) {
    switch row.storageClass(at: column) {
    case .null: self = .null
    case .integer: self = .integer(row.integer(at: column))
    case .real: self = .real(row.real(at: column))
    case .text: self = .text(row.text(at: column) ?? "")
    case .blob: self = .blob(row.blob(at: column))
    }
  }
}

extension SQLiteStatement {
  /// Binds values to consecutive parameters.
  func bind(_ values: [ChangesetValue], from start: Int) throws(SQLiteError) {
    for (offset, value) in values.enumerated() {
      switch value {
      case .null: try bindNull(at: start + offset)
      case .integer(let number): try bind(number, at: start + offset)
      case .real(let number): try bind(number, at: start + offset)
      case .text(let text): try bind(text, at: start + offset)
      case .blob(let bytes): try bind(bytes, at: start + offset)
      }
    }
  }
}
