import SQLiteConnections
import SQLiteFiles
import SQLiteSchemas

/// How a table lies in its file: what is needed to read its rows without SQLite.
struct StoredTable {
  /// The root page of its tree.
  let root: Int
  /// Whether it has rowids.
  let hasRowIDs: Bool
  /// For each column of the changeset the field of the record that holds it; nil for the rowid.
  let fields: [Int?]
  /// For each column of the changeset whether it has REAL affinity: SQLite stores 2.0 as the integer 2 there.
  let isReal: [Bool]
  /// For each column of the changeset its definition; nil for the rowid.
  let definitions: [ColumnDefinition?]
  /// In which order the rows of a WITHOUT ROWID table lie; nil where they have rowids, or where a collating sequence is the
  /// application's own.
  let order: [StoredOrder]?
  /// How many fields of a record matter.
  let fieldLimit: Int
  /// Everything of the definition that the meaning of stored rows depends on: tables in which it is the same can be compared
  /// by their bytes.
  let signature: [UInt8]

  /// Reads how a table lies in its file.
  ///
  /// - Returns: nil when that cannot be told.
  init?(_ table: TableDefinition, _ roots: RootPages, on connection: borrowing SQLiteConnection) throws {
    var signature: [UInt8] = [table.isStrict ? 1 : 0, table.isWithoutRowID ? 1 : 0]
    // The columns of the table as they are declared, generated ones among them.
    var isVirtual: [Bool] = []
    var ordinary: [Int] = []
    try connection.forEachRow(
      ofCached: "SELECT name, type, hidden, dflt_value, pk FROM pragma_table_xinfo(?1, 'main') ORDER BY cid",
      binding: [table.name]
    ) { row in
      // 2 and 3 are generated columns, of which the first are not stored.
      if row.integer(at: 2) < 2 { ordinary.append(isVirtual.count) }
      isVirtual.append(row.integer(at: 2) == 2)
      for column in 0..<5 { signature += row.textBytes(at: column).map { $0 } + [row.isNull(at: column) ? 1 : 0] }
    }
    guard ordinary.count == table.columns.count else { return nil }
    let placeOf = Dictionary(ordinary.enumerated().map { ($1, $0) }) { first, _ in first }
    var key: [(column: Int, order: StoredOrder?)] = []
    var keyCount = 0
    try connection.forEachRow(
      ofCached: """
        SELECT x.cid, x."desc", x.coll, x.key FROM pragma_index_list(?1, 'main') AS i, pragma_index_xinfo(i.name, 'main') AS x
        WHERE i.origin = 'pk' ORDER BY x.seqno
        """, binding: [table.name]
    ) { row in
      let collation = row.text(at: 2) ?? ""
      let column = Int(row.integer(at: 0))
      let place = placeOf[column]
      key.append(
        (column, StoredOrder(column: place, collation: collation, isDescending: row.integer(at: 1) != 0)))
      if row.integer(at: 3) != 0 { keyCount += 1 }
      signature += Array("\(row.integer(at: 0)) \(row.integer(at: 1)) \(collation)".utf8) + [0]
    }
    self.signature = signature

    guard let root = roots[TableName(table.name)] else { return nil }
    self.root = root
    hasRowIDs = !table.isWithoutRowID

    // Where each column of the table is stored: https://sqlite.org/fileformat2.html#representation_of_sql_tables.
    var places: [Int?] = []
    if table.isWithoutRowID {
      guard !key.isEmpty else { return nil }
      places = isVirtual.indices.map { column in key.firstIndex { $0.column == column } }
    } else {
      var next = 0
      for isVirtual in isVirtual {
        places.append(isVirtual ? nil : next)
        if !isVirtual { next += 1 }
      }
      // The only key that needs no index of its own is the rowid under another name.
      if key.isEmpty, table.primaryKey.count == 1 { places[ordinary[table.primaryKey[0]]] = nil }
    }
    fields = (table.goesByRowID ? [nil] : []) + ordinary.map { places[$0] }
    isReal = (table.goesByRowID ? [false] : []) + table.columns.indices.map { table.affinity(at: $0) == .real }
    definitions = (table.goesByRowID ? [nil] : []) + table.columns.map { $0 }
    let parts = key.prefix(keyCount)
    order = table.isWithoutRowID && parts.allSatisfy { $0.order != nil } ? parts.compactMap(\.order) : nil
    fieldLimit = (fields.compactMap { $0 }.max() ?? -1) + 1
  }
}

/// Where the tree of each table of a database begins.
struct RootPages {
  private var pages: [TableName: Int] = [:]

  /// Reads `sqlite_schema` once: it has no index, and a database may have ten thousand tables.
  init(_ connection: borrowing SQLiteConnection) throws {
    try connection.forEachRow(of: "SELECT name, rootpage FROM main.sqlite_schema WHERE type = 'table'") { row in
      let page = Int(row.integer(at: 1))
      if page > 0 { pages[TableName(row.text(at: 0) ?? "")] = page }
    }
  }

  /// The first page of a table; nil for one that has no tree.
  subscript(_ table: TableName) -> Int? { pages[table] }
}

/// How one column of the key orders the rows of a WITHOUT ROWID table.
struct StoredOrder: Equatable {
  /// SQLite's own collating sequences: <https://sqlite.org/datatype3.html#collating_sequences>.
  enum Collation {
    case binary, noCase, rightTrim
  }

  /// The column, among those of the changeset.
  let column: Int
  let collation: Collation
  let isDescending: Bool

  /// - Returns: nil where the order is not known.
  init?(column: Int?, collation: String, isDescending: Bool) {
    guard let column else { return nil }
    switch ASCIIName.uppercased(collation) {
    case "BINARY": self.collation = .binary
    case "NOCASE": self.collation = .noCase
    case "RTRIM": self.collation = .rightTrim
    default: return nil
    }
    self.column = column
    self.isDescending = isDescending
  }

  /// Whether rows lie in the order in which changes are written.
  var isPlain: Bool { collation == .binary && !isDescending }

  /// The order of two values in the tree.
  func order(_ one: StoredValue, _ other: StoredValue) -> Int {
    var order: Int
    if collation != .binary, case .text(let mine) = one.content, case .text(let theirs) = other.content {
      order =
        collation == .noCase ? Self.noCase(mine, theirs) : Self.trimmed(mine).byteOrder(against: Self.trimmed(theirs))
    } else {
      order = one.order(against: other)
    }
    return isDescending ? -order : order
  }

  /// As SQLite does it, up to the first NUL.
  private static func noCase(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Int {
    for index in 0..<min(one.count, other.count) {
      let (mine, theirs) = (ASCIIName.folded(one[index]), ASCIIName.folded(other[index]))
      if mine != theirs { return Int(mine) - Int(theirs) }
      if mine == 0 { break }
    }
    return one.count - other.count
  }

  private static func trimmed(_ text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    var end = text.count
    while end > 0, text[end - 1] == 0x20 { end -= 1 }
    return UnsafeRawBufferPointer(rebasing: text[..<end])
  }
}
