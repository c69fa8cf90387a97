import SQLiteChangesets
import SQLiteConnections

/// Rows that only their content identifies: those with NULL in the key, and those of tables without a key that have no rowid in
/// common with their author's.
extension RowWriter {
  /// Binds the rowid of the local row that is the same as the row of the change before it; NULL, which no row has, where there
  /// is none.
  ///
  /// - Parameters:
  ///   - prepared: A statement that writes the row with a rowid.
  ///   - parameter: Where it takes the rowid, from 0.
  ///   - guardKind: Whether the old values count, besides the key.
  func bindContentRow(
    to prepared: PreparedStatement, at parameter: Int, _ bytes: RawSpan, guardedBy guardKind: TableStatements.Guard
  ) throws {
    guard let rowID = try contentRow(bytes, compared: guardKind == .none ? ColumnMask() : change.compared) else {
      return try prepared.statement.bindNull(at: parameter)
    }
    try prepared.statement.bind(rowID, at: parameter)
  }

  private func contentRow(_ bytes: RawSpan, compared: ColumnMask) throws -> Int64? {
    // The DELETE of a patchset has a key and nothing else.
    if change.operation == .delete, change.compared.isEmpty, statements.isKey.contains(false) { return nil }
    let hasZeros = (0..<statements.columnCount).contains { isSignedZero($0, bytes) }
    return try contents.search(statements, compared).row(of: change, bytes) { row in
      try !hasZeros || hasSameZeros(row, bytes)
    }
  }

  /// Whether the row of the change has 0.0 or -0.0 in a column that keeps the two apart. To SQL they are equal, and are printed
  /// alike.
  private func isSignedZero(_ column: Int, _ bytes: RawSpan) -> Bool {
    let value = change.row(column)
    return value.kind == .real && value.real(in: bytes) == 0 && statements.distinguishesNumbers(column)
  }

  /// Whether the zeros of a local row have the signs of those in the row of the change.
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
