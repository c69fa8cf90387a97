import SQLiteSchemas
import SQLiteConnections

/// The query for the rows of one table, by the columns of the changeset.
struct RowQuery {
  /// Which rows.
  enum Part {
    /// Those that their key identifies, in its order.
    case keyed
    /// Those with NULL in the key, in any order.
    case nullKey
  }

  private let results: [String]
  private let source: String
  private let selection: RowSelection?

  /// - Parameters:
  ///   - pair: The table in both sources.
  ///   - table: The one of the two that is queried.
  ///   - collation: By what text is ordered.
  ///   - candidates: The rows that the scan gives. If they are in intervals, it has to be restricted to one of these.
  /// - Returns: nil where there are no such rows.
  init?(
    _ part: Part, of table: SourceTable, in pair: TablePair, collation: String, among candidates: CandidateRows? = nil
  ) throws {
    let hasNullKey = table.stored.hasNullKeySQL
    if part == .nullKey, hasNullKey == nil { return nil }
    var results: [String] = []
    var isStored: [Bool] = []
    if pair.definition.isKeyedByRowID {
      guard let name = table.rowIDName else { return nil }
      results.append(pair.isIdentifiedByContent ? "NULL" : name)
      isStored.append(false)
    }
    for column in pair.definition.columns {
      let place = table.places[column.name]
      isStored.append(place != nil)
      results.append(
        try place.map { table.rewritten[$0] ?? SQLText.identifier(table.stored.columns[$0].name) }
          ?? AddedColumnValue.literal(of: column, isStrict: pair.definition.isStrict))
    }
    var terms = [table.selection?.conditionSQL].compactMap { $0 }
    var order: [String] = []
    var listed = ""
    switch part {
    case .keyed:
      // Written so that SQLite's index skips the other rows, which it does not do for NOT (…).
      terms += table.stored.nullableKeyColumns.map { "\(SQLText.identifier($0.name)) IS NOT NULL" }
      order =
        pair.definition.isKeyedByRowID && !pair.isIdentifiedByContent
        ? [results[0]] : pair.identity.filter { isStored[$0] }.map { "\(results[$0]) COLLATE \(collation)" }
      switch candidates {
      case .within: terms += pair.identity.map { "\(results[$0]) BETWEEN \(RowScan.low) AND \(RowScan.high)" }
      case .listed(let list):
        // The list comes first, whatever else there is an index for.
        listed = "\(list.sql) CROSS JOIN "
        terms += zip(pair.identity, list.columns).map { "\(results[$0]) = \($1)" }
      case .some(.none), nil: break
      }
    case .nullKey: terms += hasNullKey.map { ["(\($0))"] } ?? []
    }
    self.results = results
    source =
      "FROM \(listed)main.\(SQLText.identifier(table.storedName))"
      + (terms.isEmpty ? "" : " WHERE \(terms.joined(separator: " AND "))")
      + (order.isEmpty ? "" : " ORDER BY \(order.joined(separator: ", "))")
    selection = table.selection
  }

  /// Begins to read the rows.
  func scan(_ snapshot: DatabaseSnapshot) throws -> RowScan {
    try RowScan(results, source, binding: selection, isUTF16: snapshot.isUTF16, on: snapshot.source.connection)
  }
}
