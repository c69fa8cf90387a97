import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// The prepared statements that apply the changes of one table, each made once.
///
/// Parameters are numbered: `?1…?n` are the columns of the changeset (an UPDATE's new values), `?n+1…?2n` an UPDATE's
/// old values. Writing statements contain `OR ABORT` if a schema's own `ON CONFLICT REPLACE` or `IGNORE` would silently
/// lose rows.
final class TableStatements {
  /// The columns that an UPDATE or DELETE compares besides the key.
  enum Guard: Hashable {
    /// The old values, all that the change has.
    case oldValues
    /// Nothing: the change is to win.
    case none
  }

  /// The variant of a statement.
  struct Shape: Hashable {
    let changed: ColumnMask
    let compared: ColumnMask
    let nullKeys: ColumnMask
  }

  let match: TableMatch
  let name: TableName
  /// The names of the local layout as SQL: the rowid comes first if it is the key.
  let layout: [String]
  /// The changeset's columns as SQL, in its order.
  let columns: [String]
  /// True if each column of the changeset belongs to the key.
  let isKey: [Bool]
  /// The affinity of each column of the local layout.
  let affinities: [Affinity]
  /// A name of the rowid outside the layout, which rows keep while they are parked; nil if the layout has the rowid.
  let hiddenRowID: String?
  /// A name for the rowid of tables with a key. `INTEGER PRIMARY KEY DESC` is none, and may hold NULL.
  let rowID: String?
  /// The column of the changeset that is the rowid; nil for none.
  let rowIDKey: Int?
  /// True if the table is a virtual one.
  var isVirtual: Bool { match.local.module != nil }
  /// True if it is a full-text table.
  let isFullText: Bool

  /// True if blobs are bound through a function. If an expression reads a blob as text, the bytes of a bound blob count
  /// as UTF-8 even in a UTF-16 database, and those of a stored blob do not: an index on such an expression would be
  /// damaged. The result of a function is treated like a stored blob.
  private let detoursBlobs: Bool

  let connection: SQLiteConnection
  private let createStatement: String?
  private lazy var conflictClause = Result {
    try Self.conflictClause(of: name, createdBy: createStatement, on: connection)
  }
  /// The most statements of one kind that are kept: hostile changes can come in millions of shapes.
  static let shapeLimit = 256
  private var updates: [Shape: PreparedStatement] = [:]
  private var deletes: [Shape: PreparedStatement] = [:]
  var searches: [Shape: PreparedStatement] = [:]
  var contentChecks: [Shape: PreparedStatement] = [:]
  /// The one that was used last: neighbours are mostly alike.
  private var latestUpdate: (shape: Shape, prepared: PreparedStatement)?
  private var latestDelete: (shape: Shape, prepared: PreparedStatement)?
  /// INSERTs of several rows, by their number.
  private var batches: [Int: PreparedStatement] = [:]

  /// - Parameters:
  ///   - createStatement: The table's CREATE statement, if it was read.
  ///   - storesUTF16: True if the database stores text as UTF-16.
  init(
    _ match: TableMatch, header: ChangesetTable, createdBy createStatement: String?, storesUTF16: Bool,
    on connection: borrowing SQLiteConnection
  ) throws(SQLiteError) {
    self.match = match
    self.connection = SQLiteConnection(sharing: connection)
    self.createStatement = createStatement
    isFullText = if case .fullText = match.local.module { true } else { false }
    var detoursBlobs = storesUTF16
    if storesUTF16, !isFullText {
      detoursBlobs = try Self.hasExpressions(over: match.local, createdBy: createStatement, on: connection)
    }
    self.detoursBlobs = detoursBlobs
    batchLimit = connection.parameterLimit
    lengthLimit = connection.lengthLimit
    resultLimit = connection.columnLimit
    let local = match.local
    name = TableName(local.name)
    let rowID = local.isWithoutRowID ? nil : local.rowIDName
    layout = local.changesetColumnsSQL
    columns = match.columns.map { [layout] in layout[$0] }
    isKey = header.keyFlags.map { $0 != 0 }
    let isRowIDKey =
      local.primaryKey.count == 1
      && ASCIIName.matches(local.columns[local.primaryKey[0]].declaredType, "INTEGER")
    hiddenRowID = local.isKeyedByRowID || isRowIDKey ? nil : rowID
    self.rowID = rowID
    rowIDKey =
      local.isKeyedByRowID || (isRowIDKey && !local.isWithoutRowID) ? header.keyFlags.firstIndex { $0 != 0 } : nil
    affinities = local.changesetAffinities
  }

  /// The most parameters that one statement may have here, and the most bytes that a value or row may have.
  let batchLimit: Int
  let lengthLimit: Int
  /// The most results that a query may have: one less than a table of as many columns and its rowid need.
  let resultLimit: Int
  /// The number of columns of a change.
  var columnCount: Int { columns.count }

  /// The columns that identify the table's rows, as SQL: the rowid, or the key if there is no rowid or no name for it.
  var identity: String {
    if match.local.isKeyedByRowID { return layout[0] }
    if let rowID { return rowID }
    return match.local.keyIndexes.map { layout[$0] }.joined(separator: ", ")
  }

  /// The layout and, if it is hidden, the rowid: the values that restore a parked row.
  var wholeRow: [String] { layout + (hiddenRowID.map { [$0] } ?? []) }

  var table: String { "main.\(name.quoted)" }

  /// The parameter of a number as a value to be stored.
  private func value(_ number: Int) -> String { detoursBlobs ? "nullif(?\(number), NULL)" : "?\(number)" }

  /// The condition for the row of a change: its key and the compared old values. Rows with NULL in the key are found
  /// first (``contentSearch(compared:nullKeys:)``): the first parameter after those of the columns is their rowid.
  private func condition(
    compared: ColumnMask = ColumnMask(), nullKeys: ColumnMask = ColumnMask(), firstParameter: Int
  ) -> String {
    if !nullKeys.isEmpty, let rowID { return "\(rowID) = ?\(firstParameter + columns.count)" }
    return Self.conjunction(terms(compared: compared, nullKeys: nullKeys, firstParameter: firstParameter)[...])
  }

  func terms(compared: ColumnMask, nullKeys: ColumnMask, firstParameter: Int) -> [String] {
    columns.indices.compactMap { index in
      guard isKey[index] || compared.contains(index) else { return nil }
      let parameter = "?\(firstParameter + index)"
      // The key's index serves = and IS NULL, not IS with a parameter. The parameter is named all the same: it is bound.
      // A row without a rowid is identified by its content alone.
      if nullKeys.contains(index), match.local.isKeyedByRowID { return "\(parameter) IS NULL" }
      if nullKeys.contains(index) { return "\(columns[index]) IS NULL AND \(parameter) IS NULL" }
      return "\(columns[index]) \(isKey[index] ? "=" : "IS") \(parameter)"
    }
  }

  /// All terms joined by AND, as a balanced tree: in a row their nesting would be as deep as their number, and SQLite
  /// allows 1,000 levels (<https://sqlite.org/limits.html#max_expr_depth>), but 2,000 columns.
  static func conjunction(_ terms: ArraySlice<String>) -> String {
    guard terms.count > 16 else { return terms.joined(separator: " AND ") }
    let middle = terms.startIndex + terms.count / 2
    return "(\(conjunction(terms[..<middle]))) AND (\(conjunction(terms[middle...])))"
  }

  func prepare(_ sql: String) throws -> PreparedStatement {
    PreparedStatement(try connection.prepare(sql, isPersistent: true))
  }

  /// The writing statement that begins with `verb`, with the conflict clause.
  private func prepare(_ keyword: String, _ rest: String) throws -> PreparedStatement {
    try prepare("\(keyword) \(conflictClause.get())\(rest)")
  }

  private func prepareInsert(_ columns: [String]) throws -> PreparedStatement {
    let values = columns.indices.map { value($0 + 1) }.joined(separator: ", ")
    return try prepare("INSERT", "INTO \(table) (\(columns.joined(separator: ", "))) VALUES (\(values))")
  }

  private func prepareUpdate(_ assignments: [String], where condition: String) throws -> PreparedStatement {
    try prepare("UPDATE", "\(table) SET \(assignments.joined(separator: ", ")) WHERE \(condition)")
  }

  private func prepareSelection(where condition: String) throws -> [PreparedStatement] {
    var made: [PreparedStatement] = []
    var rest = wholeRow[...]
    while !rest.isEmpty {
      let results = rest.prefix(resultLimit).joined(separator: ", ")
      made.append(try prepare("SELECT \(results) FROM \(table) WHERE \(condition)"))
      rest = rest.dropFirst(resultLimit)
    }
    return made
  }

  /// Leaves out the TEMP triggers of Buckia, as SQL over `sqlite_schema`.
  static let isNotOurs = "substr(name, 1, 7) <> 'buckia_'"

  /// True if any trigger fires on the table: one of the schema's, while these are on, or a TEMP one of the application's, always.
  func hasTriggers() throws -> Bool {
    let ofSchema = try connection.triggersEnabled ? "UNION ALL SELECT type, name, tbl_name FROM main.sqlite_schema" : ""
    let query = """
      SELECT 1 FROM (SELECT type, name, tbl_name FROM temp.sqlite_schema \(ofSchema))
      WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE AND \(Self.isNotOurs) LIMIT 1
      """
    return try connection.integer(query, binding: [name.text]) != nil
  }

  // MARK: Statements prepared when they are first used

  /// `?1…?n`: the new row.
  private(set) lazy var insertion = Result { try prepareInsert(columns) }

  /// `?1…?n`, of which the key's are used: the whole local row in the order of the layout, the hidden rowid last. As many
  /// queries as it takes, one but for the widest tables.
  private(set) lazy var selection = Result { try prepareSelection(where: condition(firstParameter: 1)) }

  /// Like ``selection``, for reading a row while that is on one.
  private(set) lazy var observation = Result { try prepareSelection(where: condition(firstParameter: 1)) }

  /// `?1`: a rowid. Returns the same columns as ``selection``.
  private(set) lazy var selectionByRowID = Result { try prepareSelection(where: "\(rowID ?? "rowid") = ?1") }

  /// `?1…?n`: the new row, written over the one with its key; columns that only exist here stay.
  private(set) lazy var overwriting = Result {
    // The rowid stays, and SQLite accepts no more assignments than a table may have columns.
    let assignments = columns.indices.filter { $0 != rowIDKey }.map { "\(columns[$0]) = \(value($0 + 1))" }
    return try prepareUpdate(assignments, where: condition(firstParameter: 1))
  }

  /// `?1…`: a whole local row as ``selection`` gives it, inserted again.
  private(set) lazy var restoring = Result { try prepareInsert(wholeRow) }

  /// `?1…`: a whole local row. Returns it, as a copy that stays while the table is written.
  private(set) lazy var copying = Result { try prepareCopy() }

  /// Like ``copying``, while that is on a row.
  private(set) lazy var copyingObserved = Result { try prepareCopy() }

  private func prepareCopy() throws -> PreparedStatement {
    try prepare("SELECT " + wholeRow.indices.map { "?\($0 + 1)" }.joined(separator: ", "))
  }

  /// `?1…?n`, of which the key is used. Returns the identity of the row.
  private(set) lazy var numbering = Result {
    try prepare("SELECT \(identity) FROM \(table) WHERE " + condition(firstParameter: 1))
  }

  /// `?1…`: a whole local row. Returns the identity of the blocking row, or its own if none blocks it.
  private(set) lazy var probing = Result {
    let values = wholeRow.indices.map { value($0 + 1) }.joined(separator: ", ")
    let some = layout[match.local.keyIndexes.first ?? 0]
    return try prepare(
      """
      INSERT OR ABORT INTO \(table) (\(wholeRow.joined(separator: ", "))) VALUES (\(values))
      ON CONFLICT DO UPDATE SET \(some) = \(some) RETURNING \(identity)
      """)
  }

  // MARK: Statements by purpose

  /// `?1…`: several new rows, one after the other.
  ///
  /// They contain `OR FAIL`: the rows before a refused one stay. With `OR ABORT` SQLite would keep a copy of each page
  /// that such a statement touches, beyond 64 KiB in a temporary file
  /// (<https://sqlite.org/tempfiles.html#statement_journal>). STRICT tables are the exception, because SQLite does not
  /// report how many rows were inserted before one of the wrong type.
  func insert(rows: Int) throws -> PreparedStatement {
    if let known = batches[rows] { return known }
    let policy = match.local.isStrict ? "ABORT" : "FAIL"
    var sql = "INSERT OR \(policy) INTO \(table) (\(columns.joined(separator: ", "))) VALUES "
    for row in 0..<rows {
      let values = columns.indices.map { value(row * columns.count + $0 + 1) }.joined(separator: ", ")
      sql += "\(row == 0 ? "" : ", ")(\(values))"
    }
    let made = try prepare(sql)
    batches[rows] = made
    return made
  }

  /// `?1…?n`, of which the key's are used; `?n+1…`: values for these places of the local layout.
  func assign(_ places: [Int]) throws -> PreparedStatement {
    let assignments = places.enumerated().map { "\(layout[$1]) = \(value(columns.count + $0 + 1))" }
    return try prepareUpdate(assignments, where: condition(firstParameter: 1))
  }

  /// `?1…?n`, of which the key is used; `?n+1…?2n`: old values. Returns for each column of the mask, in their order,
  /// true if the local row has the old value.
  func comparison(of compared: ColumnMask) throws -> PreparedStatement {
    let terms = columns.indices.filter { compared.contains($0) }.map { "\(columns[$0]) IS ?\(columns.count + $0 + 1)" }
    return try prepare("SELECT \(terms.joined(separator: ", ")) FROM \(table) WHERE " + condition(firstParameter: 1))
  }

  /// `?1…`: values for these places of the local layout, in a new row.
  func insert(places: [Int]) throws -> PreparedStatement { try prepareInsert(places.map { layout[$0] }) }

  /// True if a column of the changeset keeps 1, 1.0, 0.0 and -0.0 apart: it converts no numbers.
  func distinguishesNumbers(_ column: Int) -> Bool { affinities[match.columns[column]] == .blob }

  /// `?1…?n`: the old row. The guard determines the compared columns.
  func delete(_ change: DecodedChange, guardedBy guardKind: Guard) throws -> PreparedStatement {
    let shape = Shape(
      changed: ColumnMask(), compared: guardKind == .none ? ColumnMask() : change.compared, nullKeys: change.nullKeys)
    if let latestDelete, latestDelete.shape == shape { return latestDelete.prepared }
    let made: PreparedStatement
    if let known = deletes[shape] {
      made = known
    } else {
      let condition = condition(compared: shape.compared, nullKeys: shape.nullKeys, firstParameter: 1)
      made = try prepare("DELETE FROM \(table) WHERE \(condition)")
      if deletes.count >= Self.shapeLimit { deletes.removeAll() }
      deletes[shape] = made
    }
    latestDelete = (shape, made)
    return made
  }

  /// `?1…?n`: the new values, at least one; `?n+1…?2n`: the old ones.
  func update(_ change: DecodedChange, guardedBy guardKind: Guard) throws -> PreparedStatement {
    try update(
      changed: change.changed, compared: guardKind == .none ? ColumnMask() : change.compared,
      nullKeys: change.nullKeys)
  }

  /// `?1…?n`: the new values of changed columns; `?n+1…?2n`: the old values of the key and of compared columns.
  func update(changed: ColumnMask, compared: ColumnMask, nullKeys: ColumnMask) throws -> PreparedStatement {
    let shape = Shape(changed: changed, compared: compared, nullKeys: nullKeys)
    if let latestUpdate, latestUpdate.shape == shape { return latestUpdate.prepared }
    let made: PreparedStatement
    if let known = updates[shape] {
      made = known
    } else {
      let assignments = columns.indices.filter { shape.changed.contains($0) }.map {
        "\(columns[$0]) = \(value($0 + 1))"
      }
      let condition = condition(compared: shape.compared, nullKeys: shape.nullKeys, firstParameter: columns.count + 1)
      made = try prepareUpdate(assignments, where: condition)
      if updates.count >= Self.shapeLimit { updates.removeAll() }
      updates[shape] = made
    }
    latestUpdate = (shape, made)
    return made
  }

  /// Binds the key of the row that a change is about: that of column `c` to the parameter `start + c`, both from 0.
  func bindKey(of change: DecodedChange, _ bytes: RawSpan, to prepared: PreparedStatement, from start: Int = 0) throws {
    for column in 0..<columnCount where isKey[column] {
      try prepared.statement.bind(change.row(column), in: bytes, at: start + column)
    }
  }
}

extension SQLiteStatement {
  /// Binds a value without copying: the bytes must stay until the statement has run.
  package func bind(_ value: ValueSlice, in bytes: RawSpan, at index: Int) throws(SQLiteError) {
    switch value.kind {
    case .undefined, .null: try bindNull(at: index)
    case .integer: try bind(value.integer(in: bytes), at: index)
    case .real: try bind(value.real(in: bytes), at: index)
    case .text, .blob:
      // Sound: a statement reads its parameters only while it runs, and all it names are bound again before each run.
      let payload = bytes.extracting(value.payloadRange).withUnsafeBytes { $0 }
      if value.kind == .text {
        try bind(textNoCopy: payload, at: index)
      } else {
        try bind(blobNoCopy: payload, at: index)
      }
    }
  }

  /// Binds a row of values, the first at the given index; undefined ones are left alone.
  func bind(_ row: [ValueSlice], in bytes: RawSpan, from start: Int = 0) throws(SQLiteError) {
    for index in row.indices where row[index].isDefined { try bind(row[index], in: bytes, at: start + index) }
  }
}

extension TableStatements {
  /// The statement that a table was created with.
  private static let creation =
    "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE"

  /// The conflict clause for statements that write to a table: `OR ABORT ` if the table's own clause would silently
  /// lose rows, and nothing otherwise, where it would mean the same.
  ///
  /// It is not used without need because it would override the conflict clauses of triggers that the statement fires,
  /// such as the INSERT OR REPLACE of spatial indexes (<https://sqlite.org/lang_createtrigger.html>).
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - known: The table's CREATE statement, if it was read. `sqlite_schema` has no index, and a database may have ten
  ///     thousand tables.
  /// - Throws: `SQLiteError` when the schema cannot be read.
  static func conflictClause(
    of table: TableName, createdBy known: String? = nil, on connection: borrowing SQLiteConnection
  ) throws -> String {
    guard let sql = try known ?? connection.text(creation, binding: [table.text]) else { return "OR ABORT " }
    return CreateTableParts.hasConflictClause(in: sql) ? "OR ABORT " : ""
  }
}

extension TableStatements {
  /// True if SQLite computes a value from the rows of a table while it writes them: for an index on an expression, a
  /// partial index, a generated column, a CHECK constraint, or a trigger.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - known: The statement that it was created with, where that has been read.
  /// - Throws: `SQLiteError` when the schema cannot be read.
  static func hasExpressions(
    over table: TableDefinition, createdBy known: String?, on connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> Bool {
    guard table.module == nil else { return false }
    if !table.generated.isEmpty { return true }
    let query = """
      SELECT 1 FROM pragma_index_list(?1, 'main') AS list
      WHERE list.partial OR EXISTS (SELECT 1 FROM pragma_index_xinfo(list.name, 'main') WHERE cid = -2)
      UNION ALL SELECT 1 FROM main.sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE
      UNION ALL SELECT 1 FROM temp.sqlite_schema WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE
      """
    if try connection.integer(query, binding: [table.name]) != nil { return true }
    let sql = if let known { known } else { try connection.text(creation, binding: [table.name]) ?? "" }
    return !CreateTableParts.checks(in: sql).isEmpty
  }
}
