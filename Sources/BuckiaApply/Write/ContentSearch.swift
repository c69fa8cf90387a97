import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds the rows of a table that are the same in some columns, for the changes of one file.
///
/// At first the table is searched, which an index of the schema may make fast. When the searches have cost several
/// times as much as building an index of the contents, one is built.
final class ContentSearch {
  private let statements: TableStatements
  private let compared: ColumnMask
  /// The columns of the changeset that are hashed: all that are compared, as far as a query can return them.
  private let columns: [Int]
  private let storesUTF16: Bool
  private(set) var index: ContentIndex?
  /// The cost of the searches, and the cost from which on an index is considered, both in instructions of SQLite.
  private var cost = 0
  private var nextLook = ContentSearch.leastCost

  /// Below this cost an index is never made: some 20 ms.
  private static let leastCost = 1_000_000
  /// How much an index costs for each row of the table. A search takes some 7 instructions a row.
  private static let costPerRow = 100

  /// - Parameters:
  ///   - statements: The statements of the table.
  ///   - compared: The columns of the changeset that are compared, besides the key.
  ///   - storesUTF16: True if the database stores text as UTF-16.
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
  /// - Parameter hasSameZeros: True if the zeros of the row with a rowid have the signs of those in the change.
  func row(of change: DecodedChange, _ bytes: RawSpan, hasSameZeros: (Int64) throws -> Bool) throws -> Int64? {
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

  /// True if an index is missing and possible. Writes to a virtual table fire no trigger.
  var canHaveIndex: Bool { index == nil && !hasRenounced && !columns.isEmpty && !statements.isVirtual }
  private var hasRenounced = false

  /// Says that no index can be made.
  func renounceIndex() { hasRenounced = true }

  /// True if the searches have cost so much that an index would have been faster.
  func isIndexFaster() throws -> Bool {
    guard cost >= nextLook else { return false }
    let query = "SELECT count(*) FROM \(statements.table)\(ContentIndex.condition(statements))"
    let rows = Int(try statements.connection.integer(query) ?? 0)
    nextLook = max(Self.leastCost, rows * Self.costPerRow)
    return cost >= nextLook
  }

  /// Builds the index.
  ///
  /// - Throws: As `ContentIndex`.
  func makeIndex(slot: Int, poll: () throws -> Void) throws {
    index = try ContentIndex(slot: slot, of: statements, columns, poll: poll)
  }

  /// Drops the index.
  func endIndex() throws {
    try index?.end()
    index = nil
    cost = 0
  }

  // MARK: Hashes of changes

  /// The hash of the change's values as the table would store them; nil if that is unknown.
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

  /// The query that converts a value as a comparison with a column does; nil if it stays, or becomes an equal number.
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

/// The searches by content that the changes of one file need.
final class ContentSearches {
  private struct Key: Hashable {
    let statements: ObjectIdentifier
    let compared: ColumnMask
  }

  /// The most tables, or sets of columns, that have an index at the same time.
  private static let indexLimit = 4
  /// The most searches that are kept: changes can come in any number of shapes.
  private static let searchLimit = 1_024

  private let policy: ContentPolicy
  private let storesUTF16: Bool
  private let progress: (Int) throws -> Void
  private var searches: [Key: ContentSearch] = [:]
  private var latest: (key: Key, search: ContentSearch)?
  /// The searches with an index, by its slot.
  private var indexed: [ContentSearch] = []
  private var nextSlot = 0
  /// The number of applied changes.
  var changeCount = 0
  /// True if indexes may be built, which is false inside a savepoint that is rolled back while the work goes on.
  var mayMakeIndexes = true

  /// - Parameters:
  ///   - policy: How rows are found.
  ///   - storesUTF16: True if the database stores text as UTF-16.
  ///   - progress: Called at intervals with the number of applied changes. May throw to stop.
  init(_ policy: ContentPolicy, storesUTF16: Bool, progress: @escaping (Int) throws -> Void) {
    self.policy = policy
    self.storesUTF16 = storesUTF16
    self.progress = progress
  }

  /// The search for rows of a table.
  ///
  /// - Parameters:
  ///   - statements: The statements of the table.
  ///   - compared: The columns of the changeset that are compared, besides the key.
  /// - Throws: `SQLiteError`; what `progress` throws. The transaction or savepoint must be rolled back then.
  func search(_ statements: TableStatements, _ compared: ColumnMask) throws -> ContentSearch {
    let key = Key(statements: ObjectIdentifier(statements), compared: compared)
    let search = try latest?.key == key ? latest?.search ?? find(key, statements) : find(key, statements)
    if mayMakeIndexes, search.canHaveIndex, try needsIndex(search) { try makeIndex(for: search) }
    return search
  }

  private func find(_ key: Key, _ statements: TableStatements) throws -> ContentSearch {
    if let known = searches[key] {
      latest = (key, known)
      return known
    }
    if searches.count >= Self.searchLimit, mayMakeIndexes { try end() }
    // The cache keeps the statements alive, because new ones could get their identity.
    let made = ContentSearch(of: statements, key.compared, storesUTF16: storesUTF16)
    searches[key] = made
    latest = (key, made)
    return made
  }

  private func needsIndex(_ search: ContentSearch) throws -> Bool {
    switch policy {
    case .search: false
    case .indexWhereFaster: try search.isIndexFaster()
    case .index: true
    }
  }

  private func makeIndex(for search: ContentSearch) throws {
    let slot = nextSlot
    nextSlot = (slot + 1) % Self.indexLimit
    if indexed.count > slot { try indexed[slot].endIndex() }
    do {
      try search.makeIndex(slot: slot) { try progress(changeCount) }
    } catch let error as SQLiteError where error.isNotAuthorized {
      // The application allows no TEMP tables or triggers.
      return search.renounceIndex()
    }
    if indexed.count > slot { indexed[slot] = search } else { indexed.append(search) }
  }

  /// Drops all indexes. Call it when the changes have been applied. Rolling the changes back also removes the indexes.
  func end() throws {
    for search in indexed { try search.endIndex() }
    indexed.removeAll()
    searches.removeAll()
    latest = nil
    nextSlot = 0
  }
}

extension SQLiteError {
  /// True if the application's authorizer forbids the statement: `SQLITE_AUTH`.
  fileprivate var isNotAuthorized: Bool { primaryCode == 23 }
}

/// The statements that find rows by their content.
extension TableStatements {
  /// True if the row of a change is looked up by its content, and written by its rowid.
  func goesByContent(_ change: DecodedChange) -> Bool { change.hasNullKey && rowID != nil }

  /// `?1…?n`, of which the key and the columns of the mask are used: a row with NULL in its key. Returns the rowids of
  /// the rows that are equal except for the sign of zeros, the lowest first.
  ///
  /// There can be several such rows, and others that compare equal, as `a` and `A` do under NOCASE. A value is equal if
  /// the column would store it as the same value. In a column with an affinity, the comparison converts the value as
  /// storing it does. In a column without affinity, 1 and 1.0 are two values.
  func contentSearch(compared: ColumnMask, nullKeys: ColumnMask) throws -> PreparedStatement {
    let shape = Shape(changed: ColumnMask(), compared: compared, nullKeys: nullKeys)
    if let known = searches[shape] { return known }
    let rowID = rowID ?? "rowid"
    let condition = contentCondition(compared: compared, nullKeys: nullKeys)
    let made = try prepare("SELECT \(rowID) FROM \(table) WHERE \(condition) ORDER BY \(rowID)")
    if searches.count >= Self.shapeLimit { searches.removeAll() }
    searches[shape] = made
    return made
  }

  /// As ``contentSearch(compared:nullKeys:)``, of the one row with the rowid `?n+1`.
  func contentCheck(compared: ColumnMask, nullKeys: ColumnMask) throws -> PreparedStatement {
    let shape = Shape(changed: ColumnMask(), compared: compared, nullKeys: nullKeys)
    if let known = contentChecks[shape] { return known }
    let condition = contentCondition(compared: compared, nullKeys: nullKeys)
    let made = try prepare(
      "SELECT 1 FROM \(table) WHERE \(rowID ?? "rowid") = ?\(columns.count + 1) AND (\(condition))")
    if contentChecks.count >= Self.shapeLimit { contentChecks.removeAll() }
    contentChecks[shape] = made
    return made
  }

  private func contentCondition(compared: ColumnMask, nullKeys: ColumnMask) -> String {
    let same = columns.indices.compactMap { index -> String? in
      guard isKey[index] || compared.contains(index), !nullKeys.contains(index) else { return nil }
      let isSame = "\(columns[index]) IS ?\(index + 1) COLLATE BINARY"
      guard distinguishesNumbers(index) else { return isSame }
      return "\(isSame) AND typeof(\(columns[index])) = typeof(?\(index + 1))"
    }
    return Self.conjunction((terms(compared: compared, nullKeys: nullKeys, firstParameter: 1) + same)[...])
  }
}

/// Finds rows that only their content identifies: rows with NULL in the key, and rows of tables without a key that do
/// not share rowids with their author.
extension RowWriter {
  /// Binds the rowid of the local row that equals the old row of the change; NULL, which no row has, if there is none.
  ///
  /// - Parameters:
  ///   - prepared: A statement that writes the row with a rowid.
  ///   - parameter: The index of the parameter, from 0.
  ///   - guardKind: True if the old values count, besides the key.
  func bindContentRow(
    to prepared: PreparedStatement, at parameter: Int, _ bytes: RawSpan, guardedBy guardKind: TableStatements.Guard
  ) throws {
    guard let rowID = try contentRow(bytes, compared: guardKind == .none ? ColumnMask() : change.compared) else {
      return try prepared.statement.bindNull(at: parameter)
    }
    try prepared.statement.bind(rowID, at: parameter)
  }

  private func contentRow(_ bytes: RawSpan, compared: ColumnMask) throws -> Int64? {
    // The DELETE of a patchset has only a key.
    if change.operation == .delete, change.compared.isEmpty, statements.isKey.contains(false) { return nil }
    let hasZeros = (0..<statements.columnCount).contains { isSignedZero($0, bytes) }
    return try contents.search(statements, compared).row(of: change, bytes) { row in
      try !hasZeros || hasSameZeros(row, bytes)
    }
  }

  /// True if the row of the change has 0.0 or -0.0 in a column that keeps the two apart. To SQL they are equal, and are printed
  /// alike.
  private func isSignedZero(_ column: Int, _ bytes: RawSpan) -> Bool {
    let value = change.row(column)
    return value.kind == .real && value.real(in: bytes) == 0 && statements.distinguishesNumbers(column)
  }

  /// True if the zeros of a local row have the signs of those in the row of the change.
  private func hasSameZeros(_ rowID: Int64, _ bytes: RawSpan) throws -> Bool {
    let queries = try statements.selectionByRowID.get()
    let row = CurrentRow(queries)
    defer { row.release() }
    for query in queries {
      try query.statement.bind(rowID, at: 0)
      guard try query.statement.step() else { return false }
    }
    return (0..<statements.columnCount).allSatisfy { column in
      let place = statements.match.columns[column]
      return !isSignedZero(column, bytes)
        || row.holds(change.row(column), in: bytes, at: place, affinity: statements.affinities[place])
    }
  }
}
