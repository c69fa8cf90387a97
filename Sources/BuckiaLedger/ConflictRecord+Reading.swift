import SQLiteChangesets
import SQLiteConnections

/// Which recorded conflicts are read.
package struct ConflictSelection {
  /// Those of this table, whatever the case of its name.
  package var table: String?
  /// Those of this diff: its id, or the content digest of a raw changeset.
  package var diff: String?
  /// Those of this kind.
  package var kind: ConflictKind?
  /// Those of the diff with this ledger entry.
  package var entry: Int64?
  /// Those with these numbers.
  package var numbers = Int64.min...Int64.max
  /// Only those that nobody has decided about in particular (``ConflictRecord/isOpen``).
  package var isOpen = false

  /// All of them.
  package init() {}

  private static let tables = """
    FROM main.buckia_conflict AS c CROSS JOIN main.buckia_ledger AS l USING (entry)
      CROSS JOIN main.buckia_layout AS t USING (layout)
    """

  private static let condition = """
    conflict BETWEEN ?1 AND ?2 AND (?3 IS NULL OR entry = ?3) AND (?4 IS NULL OR table_name = ?4 COLLATE NOCASE)
      AND (?5 IS NULL OR coalesce(l.diff, lower(hex(l.digest))) = ?5) AND (?6 IS NULL OR kind = ?6)
    """

  private static let isOpen = """
     AND outcome <> 'resolved' AND NOT EXISTS (SELECT 1 FROM main.buckia_resolution AS r WHERE r.conflict = c.conflict)
      AND NOT EXISTS (
        SELECT 1 FROM main.buckia_conflict_detail AS d WHERE d.conflict = c.conflict AND d.rule IS NOT NULL)
    """

  /// Prepares a query of the selected records; `c` is the record, `l` its entry of the ledger, and `t` its table. The records
  /// come in the order of their numbers, which saves to sort them.
  func query(
    _ results: String, _ rest: String, on connection: borrowing SQLiteConnection
  ) throws -> SQLiteStatement {
    let isOpen = isOpen ? Self.isOpen : ""
    let query = try connection.prepare("SELECT \(results) \(Self.tables) WHERE \(Self.condition)\(isOpen) \(rest)")
    try query.bind(numbers.lowerBound, at: 0)
    try query.bind(numbers.upperBound, at: 1)
    if let entry { try query.bind(entry, at: 2) }
    for (index, text) in [table, diff, kind?.rawValue].enumerated() {
      if let text { try query.bind(text, at: index + 3) }
    }
    return query
  }
}

/// Reading the recorded conflicts for people. There can be millions.
extension ConflictRecord {
  /// The number of the newest record; 0 where there is none.
  package static func newest(on connection: borrowing SQLiteConnection) throws -> Int64 {
    let isThere = "SELECT 1 FROM main.sqlite_schema WHERE name = 'buckia_conflict'"
    guard try connection.integer(isThere) != nil else { return 0 }
    return try connection.integer("SELECT max(conflict) FROM main.buckia_conflict") ?? 0
  }

  /// The selected records, oldest first. Large values that they have in common are in memory once.
  ///
  /// - Parameters:
  ///   - limit: How many are wanted at most: the oldest; nil for all.
  ///   - senders: What is known of the senders, whose names records have.
  /// - Throws: `SQLiteError`; `ChangesetError` when a record is damaged.
  package static func all(
    _ selection: ConflictSelection = ConflictSelection(), limit: Int? = nil, naming senders: KnownSenders = .nobody,
    on connection: borrowing SQLiteConnection
  ) throws -> [ConflictRecord] {
    var records: [ConflictRecord] = []
    let values = LargeValues.Reader(on: connection, cacheLimit: .max)
    try forEach(selection, limit: limit, values: values, senders, on: connection) { records.append($0) }
    return records
  }

  /// Gives the selected records to `body`, oldest first, without having all of them in memory.
  ///
  /// - Parameters:
  ///   - count: How many are wanted at most: the newest; nil for all.
  ///   - senders: What is known of the senders, whose names records have.
  ///   - body: Takes a record. May throw to stop.
  /// - Throws: `SQLiteError`; `ChangesetError` when a record is damaged; whatever `body` throws.
  package static func forEach(
    _ selection: ConflictSelection, newest count: Int? = nil, naming senders: KnownSenders = .nobody,
    on connection: borrowing SQLiteConnection, _ body: (ConflictRecord) throws -> Void
  ) throws {
    var selection = selection
    if let count {
      guard count > 0 else { return }
      // From the first of the newest on, it goes forward.
      let query = try selection.query("conflict", "ORDER BY conflict DESC LIMIT 1 OFFSET \(count - 1)", on: connection)
      if try query.step() { selection.numbers = query.integer(at: 0)...selection.numbers.upperBound }
    }
    try forEach(selection, values: LargeValues.Reader(on: connection), senders, on: connection, body)
  }

  /// The numbers of the selected records, oldest first.
  ///
  /// - Throws: `SQLiteError`.
  package static func numbers(
    _ selection: ConflictSelection, on connection: borrowing SQLiteConnection
  ) throws -> [Int64] {
    var numbers: [Int64] = []
    let query = try selection.query("conflict", "ORDER BY conflict", on: connection)
    while try query.step() { numbers.append(query.integer(at: 0)) }
    return numbers
  }

  /// How many of the selected conflicts are alike, in the order in which they first came.
  ///
  /// - Throws: `SQLiteError`.
  package static func counts(
    _ selection: ConflictSelection, on connection: borrowing SQLiteConnection
  ) throws -> [ConflictCount] {
    var counts: [ConflictCount] = []
    let query = try selection.query(
      "table_name, kind, outcome, count(*)", "GROUP BY table_name, kind, outcome ORDER BY min(conflict)",
      on: connection)
    while try query.step() {
      counts.append(
        ConflictCount(
          table: query.text(at: 0) ?? "", kind: kind(query, at: 1), outcome: outcome(query, at: 2),
          count: Int(query.integer(at: 3))))
    }
    return counts
  }

  /// The numbers of the first and the last conflict of each diff, by its ledger entry.
  ///
  /// - Throws: `SQLiteError`.
  package static func bounds(on connection: borrowing SQLiteConnection) throws -> [Int64: ClosedRange<Int64>] {
    var bounds: [Int64: ClosedRange<Int64>] = [:]
    let query = "SELECT entry, min(conflict), max(conflict) FROM main.buckia_conflict GROUP BY entry"
    try connection.forEachRow(of: query) { bounds[$0.integer(at: 0)] = $0.integer(at: 1)...$0.integer(at: 2) }
    return bounds
  }

  private static func kind(_ row: borrowing SQLiteStatement, at column: Int) -> ConflictKind {
    ConflictKind(rawValue: row.text(at: column) ?? "") ?? .data
  }

  private static func outcome(_ row: borrowing SQLiteStatement, at column: Int) -> ConflictOutcome {
    ConflictOutcome(rawValue: row.text(at: column) ?? "") ?? .omitted
  }

  private static func forEach(
    _ selection: ConflictSelection, limit: Int? = nil, values reader: LargeValues.Reader, _ senders: KnownSenders,
    on connection: borrowing SQLiteConnection, _ body: (ConflictRecord) throws -> Void
  ) throws {
    var layouts: [Int64: [(name: String, isKey: Bool)]] = [:]
    let details = ConflictDetails.Reader(on: connection)
    let row = try selection.query(
      """
      conflict, entry, coalesce(l.diff, lower(hex(l.digest))), layout, table_name, kind, outcome, base, local, incoming, c.reason,
      l.sender, iif(l.sender = '\(LedgerKey.mergeSender)', l.file, NULL)
      """, "ORDER BY conflict LIMIT \(limit ?? -1)", on: connection)
    while try row.step() {
      let layout = row.integer(at: 3)
      let columns = try layouts[layout] ?? Self.columns(of: layout, on: connection)
      layouts[layout] = columns
      func version(_ index: Int) throws -> [Cell]? {
        guard !row.isNull(at: index) else { return nil }
        let values = try reader.values(of: row.blob(at: index))
        return zip(columns, values).map { ($0.0.name, $0.1) }
      }
      let versions = (base: try version(7), local: try version(8), incoming: try version(9))
      let whole = versions.local ?? versions.incoming ?? versions.base ?? []
      let known = whole.enumerated().map { index, cell in
        (cell.column, cell.value ?? value(index, of: versions.incoming) ?? value(index, of: versions.base))
      }
      let key = zip(columns, known).filter { $0.0.isKey }.map { $0.1 }
      var record = ConflictRecord(
        id: row.integer(at: 0), entry: row.integer(at: 1), diff: row.text(at: 2) ?? "", table: row.text(at: 4) ?? "",
        key: key, kind: kind(row, at: 5),
        outcome: outcome(row, at: 6), base: versions.base, local: versions.local, incoming: versions.incoming,
        reason: row.text(at: 10))
      record.mergedFile = row.text(at: 12)
      if record.mergedFile == nil {
        record.sender = senders.shown(row.text(at: 11) ?? "")
        record.senderKey = LedgerEntries.verifiedKey(of: row.text(at: 11) ?? "")
      }
      try details.add(to: &record)
      try body(record)
    }
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
