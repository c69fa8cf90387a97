import BuckiaBytes
import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// Finds rows that refer to a replaced row.
extension ForeignKeyCheck {
  /// The rows that mean the replaced row: all that refer to its key now, except those that came with the new row.
  ///
  /// - Parameters:
  ///   - collisions: The replaced rows.
  ///   - match: The mapping between the changes and the child; nil if the child has no changes.
  func replaced(
    _ collisions: KeyCollisions, _ match: TableMatch?, _ sections: TableSections, _ found: inout BrokenRows
  ) throws {
    guard let store = try noteReplaced(collisions) else { return }
    var condition = refers(toNotedIn: store)
    var own: KeyStore?
    if let match, let noted = try noteOwn(match, sections) {
      let equal = child.keySQL.enumerated().map { "w.k\($0) IS c.\($1)" }.joined(separator: " AND ")
      condition += " AND NOT EXISTS (SELECT 1 FROM \(noted.qualifiedName) AS w WHERE \(equal))"
      own = noted
    }
    try addAll(where: condition, ofMissing: false, to: &found)
    for store in [store, own].compactMap({ $0 }) { try store.clear(on: session.connection) }
  }

  /// Stores the referenced values of replaced rows.
  ///
  /// - Returns: The TEMP table; nil if there are none.
  private func noteReplaced(_ collisions: KeyCollisions) throws -> KeyStore? {
    let places = try collisions.referredPlaces(of: parent)
    let columns = parentColumns.compactMap { places.firstIndex(of: $0 + parent.columnOffset) }
    guard columns.count == parentColumns.count else { return nil }
    let store = try KeyStore("replaced", for: parent, parentColumns, on: session.connection)
    let insert = try store.insertion(on: session.connection)
    var isEmpty = true
    try collisions.refused.forEachReplaced(of: TableName(parent.name)) { row in
      for (index, column) in columns.enumerated() { try row.bind(column, to: insert, at: index) }
      try insert.run()
      isEmpty = false
    }
    return isEmpty ? nil : store
  }

  /// Stores the keys of rows whose references came with the changes and are still the same.
  ///
  /// - Returns: The TEMP table; nil if the changes do not determine the rows.
  private func noteOwn(_ match: TableMatch, _ sections: TableSections) throws -> KeyStore? {
    let key = child.keyIndexes.compactMap { match.columns.firstIndex(of: $0) }
    let referring = referring(in: match)
    guard key.count == child.keyIndexes.count, let header = sections.table(named: TableName(child.name)) else {
      return nil
    }
    let statements = try session.statements(for: match, header: header)
    let store = try KeyStore("own", for: child, child.primaryKey, on: session.connection)
    let insert = try store.insertion(on: session.connection)
    try sections.forEachChange(of: TableName(child.name)) { change, bytes in
      guard change.operation != .delete,
        referring.contains(where: { $0.map { change.new($0).isDefined } ?? false }),
        let local = try statements.copyOfRow(of: change, bytes)
      else { return }
      let compared = change.operation == .insert ? Array(0..<statements.columnCount) : referring.compactMap { $0 }
      guard local.holds(compared, of: change, bytes, match) else { return }
      for (index, column) in key.enumerated() { try insert.bind(change.row(column), in: bytes, at: index) }
      try insert.run()
    }
    return store
  }
}
