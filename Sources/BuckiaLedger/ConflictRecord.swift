import SQLiteChangesets
import SQLiteConnections

/// A conflict as the database keeps it.
public struct ConflictRecord: Sendable {
  /// A column of a row and its value there; nil where the record holds none.
  public typealias Cell = (column: String, value: ChangesetValue?)

  /// The record's number in this database.
  public let id: Int64
  /// The diff file's id, or the content digest of a raw changeset.
  public let diff: String
  /// The table.
  public let table: String
  /// The row's key.
  public let key: [Cell]
  /// Why the change did not fit.
  public let kind: ConflictKind
  /// What became of it.
  public let outcome: ConflictOutcome
  /// The row as the author saw it.
  public let base: [Cell]?
  /// The row as it was here.
  public let local: [Cell]?
  /// The row as the author wants it.
  public let incoming: [Cell]?
  /// SQLite's or the engine's words, where there are any.
  public let reason: String?
  /// The row that this one refers to and that is not there, for conflicts of the kind ``ConflictKind/foreignKey``.
  public package(set) var parent: MissingParent?
}

/// A row that another one refers to, and that is not there.
public struct MissingParent: Sendable {
  /// Its table.
  public let table: String
  /// The columns that are referred to, and their values.
  public let key: [ConflictRecord.Cell]
  /// The number of the conflict that has left the row out, where it came in the same file.
  public let conflict: Int64?

  /// Makes one.
  package init(table: String, key: [ConflictRecord.Cell], conflict: Int64?) {
    self.table = table
    self.key = key
    self.conflict = conflict
  }
}

extension ConflictRecord {
  /// The number of the newest record; 0 where there is none.
  package static func newest(on connection: borrowing SQLiteConnection) throws -> Int64 {
    let isThere = "SELECT 1 FROM main.sqlite_schema WHERE name = 'buckia_conflict'"
    guard try connection.integer(isThere) != nil else { return 0 }
    return try connection.integer("SELECT max(conflict) FROM main.buckia_conflict") ?? 0
  }

  /// All recorded conflicts, oldest first.
  ///
  /// - Parameter number: Only records with greater numbers.
  /// - Throws: `SQLiteError`; `ChangesetError` when a record is damaged.
  package static func all(
    on connection: borrowing SQLiteConnection, after number: Int64 = .min
  ) throws -> [ConflictRecord] {
    var layouts: [Int64: [(name: String, isKey: Bool)]] = [:]
    var records: [ConflictRecord] = []
    let reader = LargeValues.Reader(on: connection)
    let statement = try connection.prepare(
      """
      SELECT conflict, coalesce(diff, lower(hex(digest))), layout, table_name, kind, outcome, base, local, incoming,
             c.reason
      FROM main.buckia_conflict AS c JOIN main.buckia_ledger USING (entry) JOIN main.buckia_layout USING (layout)
      WHERE conflict > \(number)
      ORDER BY conflict
      """)
    while try statement.step() {
      let layout = statement.integer(at: 2)
      let columns = try layouts[layout] ?? Self.columns(of: layout, on: connection)
      layouts[layout] = columns
      func row(_ index: Int) throws -> [Cell]? {
        guard !statement.isNull(at: index) else { return nil }
        let values = try reader.values(of: statement.blob(at: index))
        return zip(columns, values).map { ($0.0.name, $0.1) }
      }
      let rows = (base: try row(6), local: try row(7), incoming: try row(8))
      let whole = rows.local ?? rows.incoming ?? rows.base ?? []
      let known = whole.enumerated().map { index, cell in
        (cell.column, cell.value ?? value(index, of: rows.incoming) ?? value(index, of: rows.base))
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

  /// The columns of a layout, in the order of a row's values.
  static func columns(
    of layout: Int64, on connection: borrowing SQLiteConnection
  ) throws -> [(name: String, isKey: Bool)] {
    var columns: [(String, Bool)] = []
    let query = "SELECT name, is_key FROM main.buckia_layout_column WHERE layout = \(layout) ORDER BY position"
    try connection.forEachRow(of: query) { columns.append(($0.text(at: 0) ?? "", $0.integer(at: 1) != 0)) }
    return columns
  }

  /// A value of a row; nil where there is no row, or a damaged record is shorter than its layout.
  private static func value(_ index: Int, of row: [Cell]?) -> ChangesetValue? {
    guard let row, row.indices.contains(index) else { return nil }
    return row[index].value
  }
}
