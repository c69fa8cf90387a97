import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A recorded conflict that is open, and which row it is about.
package struct OpenConflict {
  /// Its number.
  package let id: Int64
  /// The table.
  package let table: TableName
  /// The values of the row's key, in the order of the table's columns and in the format of changesets.
  package let key: [UInt8]
  /// The key with which its diff was signed, as the ledger has it.
  package let sender: String
  /// True if one of its versions has a value that stands by itself.
  package let hasLargeValues: Bool

  /// How many of the newest records are looked at, whether open or not.
  private static let scanLimit: Int64 = 100_000

  /// The newest ones in which two versions of one row meet.
  ///
  /// - Parameter limit: How many at most.
  /// - Throws: `SQLiteError`; `ChangesetError` when a record is damaged.
  package static func newest(_ limit: Int, on connection: borrowing SQLiteConnection) throws -> [OpenConflict] {
    let newest = try ConflictRecord.newest(on: connection)
    guard newest > 0 else { return [] }
    var selection = ConflictSelection()
    selection.numbers = (newest - scanLimit)...newest
    selection.isOpen = true
    let query = try selection.query(
      "conflict, table_name, layout, l.sender, local, incoming, base",
      """
       AND (incoming NOT NULL OR base NOT NULL) AND (c.reason IS NULL OR kind NOT IN ('data', 'conflict'))
        AND c.reason IS NOT '\(ConflictRecord.unknownColumns)' ORDER BY conflict DESC LIMIT \(limit)
      """, on: connection)
    let reader = LargeValues.Reader(on: connection)
    var layouts: [Int64: [(name: String, isKey: Bool)]] = [:]
    var found: [OpenConflict] = []
    while try query.step() {
      let layout = query.integer(at: 2)
      let columns = try layouts[layout] ?? ConflictRecord.columns(of: layout, on: connection)
      layouts[layout] = columns
      let records = (4...6).compactMap { query.isNull(at: $0) ? nil : query.blob(at: $0) }
      let rows = try records.map { try reader.encodedValues(of: $0, readingLargeValues: false) }
      let key = columns.indices.filter { columns[$0].isKey }.map { place in
        rows.lazy.compactMap { $0.indices.contains(place) ? $0[place] : nil }.first ?? []
      }
      found.append(
        OpenConflict(
          id: query.integer(at: 0), table: TableName(query.text(at: 1) ?? ""), key: key.flatMap { $0 },
          sender: query.text(at: 3) ?? "", hasLargeValues: try records.contains { try reader.hasLargeValues($0) }))
    }
    return found
  }
}
