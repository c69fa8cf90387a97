import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Writes the conflicts of one diff into the database, with all versions of each row.
///
/// Rows are kept as records of the changeset format, exact to the byte, beside a layout that names their columns.
final class ConflictLog {
  private let entry: Int64
  private let insert: SQLiteStatement
  private var layouts: [TableName: Int64] = [:]

  init(entry: Int64, on connection: borrowing SQLiteConnection) throws {
    self.entry = entry
    insert = try connection.prepare(
      """
      INSERT INTO main.buckia_conflict(entry, layout, kind, outcome, base, local, incoming, reason)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
      """, isPersistent: true)
  }

  /// Records one conflict. The rows are encoded values in the order of `columns`.
  func record(
    table: TableName, columns: [String], key: Set<Int>, kind: ConflictKind, outcome: ConflictOutcome, base: [UInt8]?,
    local: [UInt8]?, incoming: [UInt8]?, reason: String?, on connection: borrowing SQLiteConnection
  ) throws {
    let layout = try layout(of: table, columns: columns, key: key, on: connection)
    try insert.bind(entry, at: 0)
    try insert.bind(layout, at: 1)
    try insert.bind(kind.rawValue, at: 2)
    try insert.bind(outcome.rawValue, at: 3)
    try insert.bind(optional: base, at: 4)
    try insert.bind(optional: local, at: 5)
    try insert.bind(optional: incoming, at: 6)
    try insert.bind(optional: reason, at: 7)
    try insert.run()
  }

  private func layout(
    of table: TableName, columns: [String], key: Set<Int>, on connection: borrowing SQLiteConnection
  ) throws -> Int64 {
    if let known = layouts[table] { return known }
    let newest = "SELECT max(layout) FROM main.buckia_layout WHERE table_name = ?1"
    if let known = try connection.integer(newest, binding: [table.text]),
      try Self.columns(of: known, on: connection)
        .elementsEqual(columns.indices.map { (columns[$0], key.contains($0)) }, by: ==)
    {
      layouts[table] = known
      return known
    }
    let statement = try connection.prepare("INSERT INTO main.buckia_layout(table_name) VALUES (?1)")
    try statement.bind(table.text, at: 0)
    try statement.run()
    let layout = try connection.integer("SELECT last_insert_rowid()") ?? 0
    let column = try connection.prepare("INSERT INTO main.buckia_layout_column VALUES (?1, ?2, ?3, ?4)")
    for (position, name) in columns.enumerated() {
      try column.bind(layout, at: 0)
      try column.bind(Int64(position), at: 1)
      try column.bind(name, at: 2)
      try column.bind(Int64(key.contains(position) ? 1 : 0), at: 3)
      try column.run()
    }
    layouts[table] = layout
    return layout
  }

  private static func columns(
    of layout: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [(name: String, isKey: Bool)] {
    var columns: [(String, Bool)] = []
    let query = "SELECT name, is_key FROM main.buckia_layout_column WHERE layout = \(layout) ORDER BY position"
    try connection.forEachRow(of: query) { columns.append(($0.text(at: 0) ?? "", $0.integer(at: 1) != 0)) }
    return columns
  }

  /// A value of a row; nil where the row is not there, or shorter than it should be in a damaged record.
  private static func value(_ index: Int, of row: [ConflictRecord.Cell]?) -> ChangesetValue? {
    guard let row, row.indices.contains(index) else { return nil }
    return row[index].value
  }

  /// All recorded conflicts, oldest first.
  static func records(on connection: borrowing SQLiteConnection) throws -> [ConflictRecord] {
    var layouts: [Int64: [(name: String, isKey: Bool)]] = [:]
    var records: [ConflictRecord] = []
    let statement = try connection.prepare(
      """
      SELECT conflict, coalesce(diff, lower(hex(digest))), layout, table_name, kind, outcome, base, local, incoming,
             c.reason
      FROM main.buckia_conflict AS c JOIN main.buckia_ledger USING (entry) JOIN main.buckia_layout USING (layout)
      ORDER BY conflict
      """)
    while try statement.step() {
      let layout = statement.integer(at: 2)
      let columns = try layouts[layout] ?? Self.columns(of: layout, on: connection)
      layouts[layout] = columns
      func row(_ index: Int) throws -> [ConflictRecord.Cell]? {
        guard !statement.isNull(at: index) else { return nil }
        let values = try ChangesetValue.record(statement.blob(at: index))
        return zip(columns, values).map { ($0.0.name, $0.1) }
      }
      let rows = (base: try row(6), local: try row(7), incoming: try row(8))
      let whole = rows.local ?? rows.incoming ?? rows.base ?? []
      let known = whole.enumerated().map { index, cell in
        (cell.column, cell.value ?? Self.value(index, of: rows.incoming) ?? Self.value(index, of: rows.base))
      }
      records.append(
        ConflictRecord(
          id: statement.integer(at: 0), diff: statement.text(at: 1) ?? "", table: statement.text(at: 3) ?? "",
          key: zip(columns, known).filter { $0.0.isKey }.map { $0.1 },
          kind: ConflictKind(rawValue: statement.text(at: 4) ?? "") ?? .data,
          outcome: ConflictOutcome(rawValue: statement.text(at: 5) ?? "") ?? .omitted, base: rows.base,
          local: rows.local, incoming: rows.incoming, reason: statement.text(at: 9)))
    }
    return records
  }
}

extension Ledger {
  /// All recorded conflicts, oldest first.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` when a record is damaged.
  public static func conflicts(on connection: borrowing SQLiteConnection) throws -> [ConflictRecord] {
    try ConflictLog.records(on: connection)
  }
}
