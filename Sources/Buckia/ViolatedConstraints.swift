import BuckiaLedger
import SQLiteConnections
import SQLiteSchemas

/// Finds in the schema what SQLite's message about a constraint does not tell: the name of a UNIQUE index over columns, and the
/// expressions of one that the message names.
final class ViolatedConstraints {
  private struct Index {
    let name: String
    let columns: [String?]
    let terms: IndexTerms?
  }

  private let connection: SQLiteConnection
  private var indexes: [String: [Index]] = [:]
  private var known: [String: [String: ViolatedConstraint]] = [:]

  init(on connection: borrowing SQLiteConnection) { self.connection = SQLiteConnection(sharing: connection) }

  /// A conflict with the constraint that it is about, where that is known.
  ///
  /// - Throws: `SQLiteError`.
  func named(in record: ConflictRecord) throws -> ConflictRecord {
    guard record.kind == .constraint, let reason = record.reason else { return record }
    var record = record
    if let known = known[record.table]?[reason] {
      record.constraint = known
    } else if let constraint = try constraint(of: record.table, reason) {
      // Those of NOT NULL and UNIQUE are few; a trigger may say anything, and is none.
      known[record.table, default: [:]][reason] = constraint
      record.constraint = constraint
    }
    return record
  }

  private func constraint(of table: String, _ reason: String) throws -> ViolatedConstraint? {
    guard var constraint = ViolatedConstraint(message: reason, table: table) else { return nil }
    switch constraint.kind {
    case .unique: try nameIndex(of: table, &constraint)
    case .check: try nameCheck(of: table, &constraint)
    case .notNull, .foreignKey: break
    }
    return constraint
  }

  private func nameIndex(of table: String, _ constraint: inout ViolatedConstraint) throws {
    let candidates = try indexes(of: table).filter { constraint.isOf(index: $0.name, over: $0.columns) }
    // Two indexes can be over the same columns, for different rows. The one of a constraint in the table has no name to tell.
    guard candidates.count == 1, let index = candidates.first, let terms = index.terms else { return }
    constraint.name = index.name
    constraint.columns = index.columns.compactMap { $0 }
    let condition = terms.condition.map { " WHERE \($0)" } ?? ""
    if index.columns.contains(nil) || terms.condition != nil {
      constraint.expression = terms.terms.joined(separator: ", ") + condition
    }
  }

  /// SQLite gives the name of a CHECK constraint, or its expression where it has none.
  private func nameCheck(of table: String, _ constraint: inout ViolatedConstraint) throws {
    let query = "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 COLLATE NOCASE"
    guard let told = constraint.expression, let sql = try connection.text(query, binding: [table]) else { return }
    guard let expression = CheckConstraints.expression(named: told, in: sql) else { return }
    constraint.name = told
    constraint.expression = expression
  }

  private func indexes(of table: String) throws -> [Index] {
    if let known = indexes[table] { return known }
    var found: [Index] = []
    let query = """
      SELECT l.name, s.sql FROM pragma_index_list(?1, 'main') AS l
        LEFT JOIN main.sqlite_schema AS s ON s.type = 'index' AND s.name = l.name
      WHERE l."unique"
      """
    try connection.forEachRow(of: query, binding: [table]) { row in
      let name = row.text(at: 0) ?? ""
      var columns: [String?] = []
      let parts = "SELECT name FROM pragma_index_xinfo(?1, 'main') WHERE key ORDER BY seqno"
      try connection.forEachRow(of: parts, binding: [name]) { columns.append($0.text(at: 0)) }
      found.append(Index(name: name, columns: columns, terms: row.text(at: 1).flatMap { IndexTerms($0) }))
    }
    indexes[table] = found
    return found
  }
}
