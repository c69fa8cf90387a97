import BuckiaLedger
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds, for rows that refer to others that are not there, which these are, and which conflict has left them out.
final class MissingParents {
  /// A foreign key: the parent, and the columns on both sides.
  private struct Reference {
    let parent: String
    var columns: [(child: String, parent: String)]
  }

  private let connection: SQLiteConnection
  private var references: [String: [Reference]] = [:]
  /// The conflicts that have left a row out, by file and table.
  private let omitted: [String: [ConflictRecord]]

  /// Names the missing rows of all conflicts of the kind `foreignKey`.
  static func named(
    in records: [ConflictRecord], on connection: borrowing SQLiteConnection
  ) throws -> [ConflictRecord] {
    guard records.contains(where: { $0.kind == .foreignKey }) else { return records }
    let finder = MissingParents(among: records, on: connection)
    return try records.map { record in
      guard record.kind == .foreignKey else { return record }
      var record = record
      record.parent = try finder.parent(of: record)
      return record
    }
  }

  private init(among records: [ConflictRecord], on connection: borrowing SQLiteConnection) {
    self.connection = SQLiteConnection(sharing: connection)
    let leftOut = records.filter { $0.kind != .foreignKey && ($0.outcome == .omitted || $0.outcome == .keptLocal) }
    omitted = Dictionary(grouping: leftOut) { Self.place($0.diff, $0.table) }
  }

  private static func place(_ diff: String, _ table: String) -> String { "\(diff) \(ASCIIName.folded(table))" }

  private func parent(of record: ConflictRecord) throws -> MissingParent? {
    guard let row = record.local ?? record.incoming else { return nil }
    for reference in try references(of: record.table) where record.reason?.contains("\"\(reference.parent)\"") ?? true {
      let key = reference.columns.compactMap { child, parent in
        Self.value(of: child, in: row).map { (column: parent, value: Optional($0)) }
      }
      guard key.count == reference.columns.count else { continue }
      let cause = omitted[Self.place(record.diff, reference.parent)]?.first { other in
        key.allSatisfy { cell in
          [other.incoming, other.base].contains { $0.flatMap { Self.value(of: cell.column, in: $0) } == cell.value }
        }
      }
      return MissingParent(table: reference.parent, key: key, conflict: cause?.id)
    }
    return nil
  }

  /// A value of a row; nil for NULL, which refers to nothing, and where the record holds none.
  private static func value(of column: String, in row: [ConflictRecord.Cell]) -> ChangesetValue? {
    let value = row.first { ASCIIName.matches($0.column, column) }?.value
    return value == .null ? nil : value
  }

  /// The foreign keys of a table, as SQLite lists them.
  private func references(of table: String) throws -> [Reference] {
    if let known = references[table] { return known }
    var found: [Int64: Reference] = [:]
    let query = """
      SELECT k.id, k."table", k."from", coalesce(k."to", (
        SELECT name FROM pragma_table_info(k."table", 'main') WHERE pk = k.seq + 1))
      FROM pragma_foreign_key_list(?1, 'main') AS k ORDER BY k.id, k.seq
      """
    try connection.forEachRow(of: query, binding: [table]) { row in
      let columns = (child: row.text(at: 2) ?? "", parent: row.text(at: 3) ?? "")
      let parent = row.text(at: 1) ?? ""
      found[row.integer(at: 0), default: Reference(parent: parent, columns: [])].columns.append(columns)
    }
    let all = found.sorted { $0.key < $1.key }.map(\.value)
    references[table] = all
    return all
  }
}
