import SQLiteSchemas
import SQLiteChangesets
import SQLiteConnections

extension RowSelection {
  /// Makes sure that the columns of a table can be left out and rewritten as the selection says.
  ///
  /// - Throws: `ReplicationError` with `invalidSelection`; `SQLiteError`.
  package func requireUse(on table: TableDefinition) throws { _ = try rewrittenLiterals(in: applied(to: table)) }

  /// The values that columns travel with instead of their own, as SQL literals by the place of the column.
  ///
  /// They are as the column would store them: a receiver's column converts them the same way, and what was sent must be equal
  /// to what will be sent.
  ///
  /// - Parameter table: The table, without the columns that are left out.
  /// - Throws: `ReplicationError` with `invalidSelection` for a column that is not there or is part of the key, and for a
  ///   value that it cannot have; `SQLiteError`.
  func rewrittenLiterals(in table: TableDefinition) throws -> [Int: String] {
    var literals: [Int: String] = [:]
    for (name, value) in rewrittenColumns.sorted(by: { $0.key < $1.key }) {
      func invalid(_ why: String) -> ReplicationError {
        ReplicationError(
          .invalidSelection, "column \"\(table.name).\(name)\" cannot be rewritten: \(why)", table: table.name,
          column: name)
      }
      guard table.module == nil else { throw invalid("it belongs to a virtual table") }
      guard let place = table.column(named: name) else { throw invalid("there is no such column to send") }
      guard !table.primaryKey.contains(place) else { throw invalid("it is part of the primary key") }
      let column = table.columns[place]
      guard value != .null || !column.isNotNull else { throw invalid("it is NOT NULL") }
      do {
        literals[place] = try Self.literal(of: value, in: column, isStrict: table.isStrict)
      } catch let error as SQLiteError where error.primaryCode == 19 {
        throw invalid(error.message)
      }
    }
    return literals
  }

  /// A value as a column stores it, as an SQL literal. SQLite itself is asked, in an empty database in memory.
  private static func literal(
    of value: ChangesetValue, in column: ColumnDefinition, isStrict: Bool
  ) throws -> String {
    let scratch = try SQLiteConnection(opening: ":memory:", as: .create)
    let plain = ColumnDefinition(name: "value", declaredType: column.declaredType)
    let table = TableDefinition(name: "rewritten", columns: [plain], isStrict: isStrict)
    try scratch.execute(table.createStatement(siblings: []))
    try scratch.execute("INSERT INTO rewritten VALUES (\(value.literal))")
    var stored = ChangesetValue.null
    try scratch.forEachRow(of: "SELECT value FROM rewritten") { stored = ChangesetValue($0, at: 0) }
    return stored.literal
  }
}

extension ChangesetValue {
  /// The value as an SQL literal that is read as the very same value.
  package var literal: String {
    // A NUL would end the statement.
    if case .text(let text) = self, text.utf8.contains(0) {
      return "CAST(\(ChangesetValue.blob(Array(text.utf8))) AS TEXT)"
    }
    return "\(self)"
  }
}
