import SQLiteChangesets
import SQLiteConnections
import SQLiteSchemas

/// A conflict record with its rows in their stored bytes, from which it is resolved.
package struct RecordedConflict {
  /// A row: the encoded value of each column; nil if the record has none.
  package typealias Row = [[UInt8]?]

  /// Its number.
  package let id: Int64
  /// The table.
  package let table: String
  /// Why the change did not fit.
  package let kind: ConflictKind
  /// The outcome.
  package let outcome: ConflictOutcome
  /// The columns of its rows.
  package let columns: [(name: String, isKey: Bool)]
  /// The row as the author saw it.
  package let base: Row?
  /// The local row. Large values that the record left out because the row kept them are those before the first
  /// resolution.
  package let local: Row?
  /// The row as the author wants it.
  package let incoming: Row?
  /// The row that a resolver of the application has written; nil for none.
  package let written: Row?
  /// The message of SQLite or of the engine; nil for none.
  package let reason: String?
  /// The last resolution; nil for none.
  package let resolution: Resolution?

  /// How a conflict was resolved.
  package struct Resolution {
    /// The answer.
    package let answer: ConflictAnswer.Kind
    /// The columns of the row.
    package let columns: [String]
    /// The row afterwards; nil if there is none.
    package let after: Row?
  }

  /// The operation of the change; nil for a record that only reports a row.
  package var operation: ChangeOperation? {
    switch (base != nil, incoming != nil) {
    case (true, true): .update
    case (true, false): .delete
    case (false, true): .insert
    case (false, false): nil
    }
  }

  /// True if the record only keeps values of columns that were unknown here.
  package var isOfUnknownColumns: Bool { local == nil && base == nil && reason == ConflictRecord.unknownColumns }

  /// Reads a record.
  ///
  /// - Returns: nil when there is none with this number.
  /// - Throws: `SQLiteError`; `ChangesetError` when the record is damaged.
  package static func read(_ id: Int64, on connection: borrowing SQLiteConnection) throws -> RecordedConflict? {
    let reader = LargeValues.Reader(on: connection)
    return try connection.first(
      ofCached: """
        SELECT layout, table_name, kind, outcome, base, local, incoming, reason, written
        FROM main.buckia_conflict CROSS JOIN main.buckia_layout USING (layout)
        WHERE conflict = ?1
        """, id
    ) { row in
      let columns = try ConflictRecord.columns(of: row.integer(at: 0), on: connection)
      var local = try reader.encodedValues(row, at: 5)
      if local?.contains(nil) == true { try fill(&local, columns.map(\.name), of: id, reader, on: connection) }
      return RecordedConflict(
        id: id, table: row.text(at: 1) ?? "", kind: ConflictKind(row, at: 2), outcome: ConflictOutcome(row, at: 3),
        columns: columns, base: try reader.encodedValues(row, at: 4), local: local,
        incoming: try reader.encodedValues(row, at: 6), written: try reader.encodedValues(row, at: 8),
        reason: row.text(at: 7), resolution: try lastResolution(of: id, reader, on: connection))
    }
  }

  private static func lastResolution(
    of id: Int64, _ reader: LargeValues.Reader, on connection: borrowing SQLiteConnection
  ) throws -> Resolution? {
    try connection.first(
      ofCached: """
        SELECT answer, layout, after FROM main.buckia_resolution WHERE conflict = ?1 ORDER BY resolution DESC LIMIT 1
        """, id
    ) { row in
      Resolution(
        answer: ConflictAnswer.Kind(rawValue: row.text(at: 0) ?? "") ?? .values,
        columns: try ConflictRecord.columns(of: row.integer(at: 1), on: connection).map(\.name),
        after: try reader.encodedValues(row, at: 2))
    }
  }

  /// Adds to a row the values that it had before the first resolution.
  private static func fill(
    _ local: inout Row?, _ columns: [String], of id: Int64, _ reader: LargeValues.Reader,
    on connection: borrowing SQLiteConnection
  ) throws {
    let query = "SELECT layout, before FROM main.buckia_resolution WHERE conflict = ?1 ORDER BY resolution LIMIT 1"
    let first = try connection.first(ofCached: query, id) { row in
      let names = try ConflictRecord.columns(of: row.integer(at: 0), on: connection).map(\.name)
      return try reader.encodedValues(row, at: 1).map { Dictionary(zip(names, $0)) { first, _ in first } }
    }
    guard let before = first ?? nil else { return }
    for (place, column) in columns.enumerated() where local?[place] == nil { local?[place] = before[column] ?? nil }
  }

  /// True if the conflict has so far ended with the incoming version, or a row made of it.
  ///
  /// - Throws: `SQLiteError`; `ChangesetError` when the record is damaged.
  package static func isTaken(_ id: Int64, on connection: borrowing SQLiteConnection) throws -> Bool {
    guard let record = try read(id, on: connection) else { return false }
    guard let resolution = record.resolution else {
      return record.outcome == .tookIncoming || record.outcome == .resolved
    }
    return resolution.answer != .local
  }
}

extension ConflictRecord {
  /// The reason of records that only keep values of columns which are unknown here.
  package static let unknownColumns = "these columns are unknown here"
}

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
  /// True if one of its versions has a large value.
  package let hasLargeValues: Bool

  /// The number of newest records that are searched, open or not.
  private static let scanLimit: Int64 = 100_000

  /// The newest ones in which two versions of one row meet.
  ///
  /// - Parameter limit: The most conflicts.
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
