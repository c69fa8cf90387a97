import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds the rows of a table that are the same in some columns, for the changes of one file.
///
/// At first the table is searched, which an index of the schema may make fast. When the searches have cost several times what an index of
/// the contents takes, one is made.
final class ContentSearch {
  private let statements: TableStatements
  private let compared: ColumnMask
  /// The columns of the changeset that are hashed: all that are compared, as far as a query can return them.
  private let columns: [Int]
  private let storesUTF16: Bool
  private(set) var index: ContentIndex?
  /// What the searches have cost, and from when on making an index is considered, both in instructions of SQLite's.
  private var cost = 0
  private var nextLook = ContentSearch.leastCost

  /// Below this cost an index is never made: some 20 ms.
  private static let leastCost = 1_000_000
  /// How much an index costs for each row of the table. A search takes some 7 instructions a row.
  private static let costPerRow = 100

  /// - Parameters:
  ///   - statements: Those of the table.
  ///   - compared: The columns of the changeset that are compared, besides the key.
  ///   - storesUTF16: Whether the database stores text as UTF-16.
  init(of statements: TableStatements, _ compared: ColumnMask, storesUTF16: Bool) {
    self.statements = statements
    self.compared = compared
    self.storesUTF16 = storesUTF16
    let hashed = (0..<statements.columnCount).filter { column in
      let isRowID = statements.match.local.isKeyedByRowID && statements.match.columns[column] == 0
      return !isRowID && (statements.isKey[column] || compared.contains(column))
    }
    columns = Array(hashed.prefix(statements.resultLimit - 1))
  }

  /// The rowid of the first local row that is the same as that of a change.
  ///
  /// - Parameter hasSameZeros: Whether the zeros of the row with a rowid have the signs of those in the change.
  func row(
    of change: DecodedChange, _ bytes: RawSpan, hasSameZeros: (Int64) throws -> Bool
  ) throws -> Int64? {
    if let index, let hash = try hash(of: change, bytes) {
      let check = try statements.contentCheck(compared: compared, nullKeys: change.nullKeys)
      try bind(change, bytes, to: check)
      return try index.row(hash) { row in
        defer { check.statement.reset() }
        try check.statement.bind(row, at: statements.columnCount)
        return try check.statement.step() && hasSameZeros(row)
      }
    }
    let search = try statements.contentSearch(compared: compared, nullKeys: change.nullKeys)
    try bind(change, bytes, to: search)
    defer {
      search.statement.reset()
      cost += search.statement.takeInstructionCount()
    }
    while try search.statement.step() {
      let row = search.statement.integer(at: 0)
      if try hasSameZeros(row) { return row }
    }
    return nil
  }

  private func bind(_ change: DecodedChange, _ bytes: RawSpan, to prepared: PreparedStatement) throws {
    for column in 0..<statements.columnCount where statements.isKey[column] || compared.contains(column) {
      try prepared.statement.bind(change.row(column), in: bytes, at: column)
    }
  }

  // MARK: The index

  /// Whether an index is missing and possible: no trigger notes what is written to a virtual table.
  var canHaveIndex: Bool { index == nil && !hasRenounced && !columns.isEmpty && !statements.isVirtual }
  private var hasRenounced = false

  /// Says that no index can be made.
  func renounceIndex() { hasRenounced = true }

  /// Whether the searches have cost so much that an index would have been faster.
  func isIndexFaster() throws -> Bool {
    guard cost >= nextLook else { return false }
    let query = "SELECT count(*) FROM \(statements.table)\(ContentIndex.condition(statements))"
    let rows = Int(try statements.connection.integer(query) ?? 0)
    nextLook = max(Self.leastCost, rows * Self.costPerRow)
    return cost >= nextLook
  }

  /// Makes the index.
  ///
  /// - Throws: As `ContentIndex`.
  func makeIndex(slot: Int, poll: () throws -> Void) throws {
    index = try ContentIndex(slot: slot, of: statements, columns, poll: poll)
  }

  /// Gives the index up.
  func endIndex() throws {
    try index?.end()
    index = nil
    cost = 0
  }

  // MARK: Hashes of changes

  /// The hash of the change's values as the table would store them; nil where that cannot be told.
  private func hash(of change: DecodedChange, _ bytes: RawSpan) throws -> Int64? {
    var hash = ContentHash()
    for column in columns {
      let value = change.row(column)
      let affinity = statements.affinities[statements.match.columns[column]]
      if storesUTF16, value.kind == .text, !value.survivesUTF16(in: bytes) { return nil }
      guard let conversion = Self.conversion(of: value, affinity) else {
        hash.add(value, in: bytes, affinity)
        continue
      }
      let query = try statements.connection.cached(conversion)
      defer { query.statement.reset() }
      try query.statement.bind(value, in: bytes, at: 0)
      guard try query.statement.step() else { return nil }
      hash.add(0, of: query.statement, affinity)
    }
    return hash.value
  }

  /// The query that gives a value as a comparison with a column converts it; nil where it stays as it is, or becomes an equal number.
  ///
  /// See <https://sqlite.org/datatype3.html#type_conversions_prior_to_comparison>. Only text that is a number becomes one. CAST
  /// would convert any.
  private static func conversion(of value: ValueSlice, _ affinity: Affinity) -> String? {
    switch (value.kind, affinity) {
    case (.text, .integer), (.text, .real), (.text, .numeric):
      "SELECT iif(CAST(?1 AS NUMERIC) = ?1, CAST(?1 AS NUMERIC), ?1)"
    case (.integer, .text), (.real, .text): "SELECT CAST(?1 AS TEXT)"
    default: nil
    }
  }
}
