import SQLiteConnections
import SQLiteFiles
import SQLiteSchemas

/// The storage of a table in its file, for reading its rows without SQLite.
struct TableStorage {
  /// The root page of its tree.
  let root: Int
  /// True if it has rowids.
  let hasRowIDs: Bool
  /// For each column of the changeset the field of the record that holds it; nil for the rowid.
  let fields: [Int?]
  /// For each column of the changeset, true if it has REAL affinity: SQLite then stores 2.0 as the integer 2.
  let isReal: [Bool]
  /// The default of each column of the changeset in rows that were written before it was added: a literal, in a column
  /// of this affinity. Nil if only SQLite can compute it, and for the rowid, which all rows have.
  let defaults: [(sql: String, affinity: Affinity)?]
  /// The order of the rows of a WITHOUT ROWID table; nil if they have rowids, or a collating sequence of the
  /// application.
  let order: [KeyPartOrder]?
  /// The number of relevant fields of a record.
  let fieldLimit: Int
  /// Everything of the definition that the meaning of stored rows depends on: tables in which it is the same can be compared
  /// by their bytes.
  let signature: [UInt8]

  /// Finds out how a table is stored.
  ///
  /// - Parameter table: The table, maybe without some of its columns.
  /// - Returns: nil if the storage is unknown.
  init?(_ table: TableDefinition, _ roots: [TableName: Int], on connection: borrowing SQLiteConnection) throws {
    var layout = ColumnLayout()
    try layout.readColumns(of: table, on: connection)
    guard layout.places.count == table.columns.count, let root = roots[TableName(table.name)] else { return nil }
    try layout.readKey(of: table, on: connection)
    guard !table.isWithoutRowID || !layout.key.isEmpty else { return nil }
    let fields = layout.fields(of: table)
    let hasOrder = table.isWithoutRowID && layout.key.allSatisfy { !$0.isCompared || $0.order != nil }

    self.root = root
    hasRowIDs = !table.isWithoutRowID
    self.fields = (table.isKeyedByRowID ? [nil] : []) + layout.places.map { fields[$0] }
    isReal = (table.isKeyedByRowID ? [false] : []) + table.columns.indices.map { table.affinity(at: $0) == .real }
    defaults =
      (table.isKeyedByRowID ? [nil] : [])
      + table.columns.indices.map { place in
        Self.literal(of: table.columns[place], writtenAs: layout.defaults[place])
          .map { ($0, table.affinity(at: place)) }
      }
    order = hasOrder ? layout.key.filter(\.isCompared).compactMap(\.order) : nil
    fieldLimit = (self.fields.compactMap { $0 }.max() ?? -1) + 1
    signature = layout.signature
  }

  /// The default of a column in the spelling of the CREATE TABLE statement, which matters: in a TEXT column `1e3` is
  /// the text '1e3' and `1E3` the text '1E3'.
  ///
  /// - Parameter sql: The default as `PRAGMA table_info` shows it, without the parentheses around it; nil if there is none.
  /// - Returns: nil if only SQLite can compute it.
  private static func literal(of column: ColumnDefinition, writtenAs sql: String?) -> String? {
    guard let sql else { return "NULL" }
    guard !column.hasExpressionDefault, let literal = column.defaultValue, !literal.isTimeDependent else { return nil }
    // A bare word, which SQLite reads as text, cannot be in parentheses.
    return LiteralDefault(parsing: sql) == nil ? literal.sql : sql
  }
}

/// The declared columns of a table, with generated ones.
private struct ColumnLayout {
  private var isVirtual: [Bool] = []
  /// For each column that is wanted its place among all.
  private(set) var places: [Int] = []
  /// The default of each wanted column, in the spelling of the CREATE TABLE statement.
  private(set) var defaults: [String?] = []
  /// The columns of the index that the PRIMARY KEY has; of a WITHOUT ROWID table all stored ones, those of the key first.
  private(set) var key: [(column: Int, isCompared: Bool, order: KeyPartOrder?)] = []
  private(set) var signature: [UInt8] = []

  mutating func readColumns(of table: TableDefinition, on connection: borrowing SQLiteConnection) throws {
    signature = [table.isStrict ? 1 : 0, table.isWithoutRowID ? 1 : 0]
    try connection.forEachRow(
      ofCached: "SELECT name, type, hidden, dflt_value, pk FROM pragma_table_xinfo(?1, 'main') ORDER BY cid",
      binding: [table.name]
    ) { row in
      // 2 and 3 are generated columns, of which the first are not stored.
      if row.integer(at: 2) < 2, places.count < table.columns.count,
        row.textBytes(at: 0).elementsEqual(table.columns[places.count].name.utf8)
      {
        places.append(isVirtual.count)
        defaults.append(row.text(at: 3))
      }
      isVirtual.append(row.integer(at: 2) == 2)
      for column in 0..<5 { signature += row.textBytes(at: column).map { $0 } + [row.isNull(at: column) ? 1 : 0] }
    }
  }

  mutating func readKey(of table: TableDefinition, on connection: borrowing SQLiteConnection) throws {
    try connection.forEachRow(
      ofCached: """
        SELECT x.cid, x."desc", x.coll, x.key FROM pragma_index_list(?1, 'main') AS i, pragma_index_xinfo(i.name, 'main') AS x
        WHERE i.origin = 'pk' ORDER BY x.seqno
        """, binding: [table.name]
    ) { row in
      let collation = row.text(at: 2) ?? ""
      let column = Int(row.integer(at: 0))
      let order = KeyPartOrder(
        column: places.firstIndex(of: column), collation: collation, isDescending: row.integer(at: 1) != 0)
      key.append((column, row.integer(at: 3) != 0, order))
      signature += Array("\(row.integer(at: 0)) \(row.integer(at: 1)) \(collation)".utf8) + [0]
    }
  }

  /// For each declared column the field of the record that holds it; nil for one that is not stored, and for the rowid.
  ///
  /// See <https://sqlite.org/fileformat2.html#representation_of_sql_tables>.
  func fields(of table: TableDefinition) -> [Int?] {
    if table.isWithoutRowID {
      return isVirtual.indices.map { column in key.firstIndex { $0.column == column } }
    }
    var fields: [Int?] = []
    var next = 0
    for isVirtual in isVirtual {
      fields.append(isVirtual ? nil : next)
      if !isVirtual { next += 1 }
    }
    // The only key without an index of its own is an alias of the rowid.
    if key.isEmpty, table.primaryKey.count == 1 { fields[places[table.primaryKey[0]]] = nil }
    return fields
  }
}

/// The values of added columns in rows that were written before: SQLite does not rewrite those rows, it reads the
/// default instead (<https://sqlite.org/lang_altertable.html#alter_table_add_column>).
final class AddedColumnDefaults {
  /// The default is no literal.
  struct Unknown: Error {}

  private let table: TableStorage
  private var known: [Int: RowValue] = [:]
  private var storage: [UnsafeMutableRawBufferPointer] = []

  init(_ table: TableStorage) { self.table = table }

  deinit { for buffer in storage { buffer.deallocate() } }

  func value(_ column: Int) throws -> RowValue {
    if let value = known[column] { return value }
    guard let written = table.defaults[column] else { throw Unknown() }
    let value = try Self.read(written.sql, written.affinity) { copy($0) }
    known[column] = value
    return value
  }

  /// Reads a row that is there before its column.
  ///
  /// The value differs from the default in a new row: SQLite applies the affinity of the column to the literal in its
  /// spelling. And quote() does not preserve the last bits. The value is therefore read directly.
  private static func read(
    _ sql: String, _ affinity: Affinity, _ copy: (UnsafeRawBufferPointer) -> UnsafeRawBufferPointer
  ) throws -> RowValue {
    let scratch = try SQLiteConnection(opening: ":memory:", as: .create)
    try scratch.execute("CREATE TABLE t(id INTEGER); INSERT INTO t VALUES (1)")
    try scratch.execute("ALTER TABLE t ADD COLUMN added \(affinity.rawValue) DEFAULT (\(sql))")
    var value = RowValue.null
    try scratch.forEachRow(of: "SELECT added FROM t") { row in
      switch row.value(at: 0) {
      case .text(let bytes): value = .text(copy(bytes))
      case .blob(let bytes): value = .blob(copy(bytes))
      case let number: value = number
      }
    }
    return value
  }

  private func copy(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, bytes.count), alignment: 1)
    copy.copyMemory(from: bytes)
    storage.append(copy)
    return UnsafeRawBufferPointer(rebasing: copy[..<bytes.count])
  }
}
