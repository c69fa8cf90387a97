import SQLiteConnections
import SQLiteSchemas

/// The statements that find rows by their content.
extension TableStatements {
  /// Whether the row of a change is looked up by its content, and written by its rowid.
  func goesByContent(_ change: DecodedChange) -> Bool { change.hasNullKey && rowID != nil }

  /// `?1…?n`, of which the key's are used and those of the mask: a row with NULL in its key. Gives the rowids of the rows that
  /// are the same but for the sign of a zero, the lowest first.
  ///
  /// Such rows can be there several times, and beside others that compare equal, as `a` and `A` do under NOCASE. A value is the
  /// same if the column would store it so. Where the column has an affinity, the comparison converts the value as storing it
  /// does. Where it has none, 1 and 1.0 are two values.
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
