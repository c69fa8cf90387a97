import BuckiaBytes
import SQLiteConnections

/// Reading the ledger for people: its entries and the refused files together, one at a time, since there can be millions.
extension LedgerEntries {
  /// What entries are sorted by. Whole entries would take up much more room; each is looked up when its turn has come.
  private static let order = """
    SELECT recorded_at AS time, entry, NULL AS digest FROM main.buckia_ledger
    UNION ALL SELECT last_at, 0, digest FROM main.buckia_refused
    """

  private static let recorded = """
    SELECT diff, sender, state, recorded_at, inserted, updated, deleted, conflicts, omitted, reason, file, lower(hex(digest))
    FROM main.buckia_ledger WHERE entry = ?1
    """
  private static let refused = """
    SELECT diff, sender, state, last_at, 0, 0, 0, 0, 0, reason, file, lower(hex(digest))
    FROM main.buckia_refused WHERE digest = ?1
    """

  /// Gives everything recorded to `body`, oldest first.
  ///
  /// - Parameter senders: What is known of the senders, whose names entries have.
  /// - Throws: `SQLiteError`; whatever `body` throws.
  package static func forEach(
    naming senders: KnownSenders = .nobody, on connection: borrowing SQLiteConnection,
    _ body: (LedgerEntry) throws -> Void
  ) throws {
    try forEach("\(order) ORDER BY 1, 2, 3", senders, on: connection, body)
  }

  /// The newest entries, oldest first.
  ///
  /// - Parameters:
  ///   - count: How many.
  ///   - senders: What is known of the senders, whose names entries have.
  /// - Throws: `SQLiteError`.
  package static func newest(
    _ count: Int, naming senders: KnownSenders = .nobody, on connection: borrowing SQLiteConnection
  ) throws -> [LedgerEntry] {
    var entries: [LedgerEntry] = []
    try forEach("\(order) ORDER BY 1 DESC, 2 DESC, 3 DESC LIMIT \(count)", senders, on: connection) {
      entries.append($0)
    }
    return entries.reversed()
  }

  /// What was recorded last of a file, by the id that it goes by, or by its name where it is a bare changeset or could not be read.
  ///
  /// - Parameters:
  ///   - id: The id.
  ///   - file: The name, without its folder.
  ///   - senders: What is known of the senders, whose names entries have.
  /// - Returns: nil where nothing was.
  /// - Throws: `SQLiteError`.
  package static func last(
    of id: KSUID, file: String, naming senders: KnownSenders = .nobody, on connection: borrowing SQLiteConnection
  ) throws -> LedgerEntry? {
    let order = """
      SELECT recorded_at, entry, NULL FROM main.buckia_ledger WHERE diff = ?1
      UNION ALL SELECT recorded_at, entry, NULL FROM main.buckia_ledger WHERE raw AND file = ?2
      UNION ALL SELECT last_at, 0, digest FROM main.buckia_refused WHERE diff = ?1 OR file = ?2
      ORDER BY 1 DESC, 2 DESC, 3 DESC LIMIT 1
      """
    var found: LedgerEntry?
    try forEach(order, binding: [id.description, file], senders, on: connection) { found = $0 }
    return found
  }

  /// How many entries there are.
  ///
  /// - Throws: `SQLiteError`.
  package static func count(on connection: borrowing SQLiteConnection) throws -> Int {
    let query = """
      SELECT (SELECT count(*) FROM main.buckia_ledger) + (SELECT count(*) FROM main.buckia_refused)
      """
    return Int(try connection.integer(query) ?? 0)
  }

  private static func forEach(
    _ order: String, binding values: [String] = [], _ senders: KnownSenders,
    on connection: borrowing SQLiteConnection,
    _ body: (LedgerEntry) throws -> Void
  ) throws {
    let recorded = try connection.prepare(recorded)
    let refused = try connection.prepare(refused)
    try connection.forEachRow(of: order, binding: values) { place in
      if place.isNull(at: 2) {
        try recorded.bind(place.integer(at: 1), at: 0)
        try give(recorded, senders, to: body)
      } else {
        try refused.bind(column: 2, of: place, at: 0)
        try give(refused, senders, to: body)
      }
    }
  }

  private static func give(
    _ row: borrowing SQLiteStatement, _ senders: KnownSenders, to body: (LedgerEntry) throws -> Void
  ) throws {
    defer { row.reset() }
    guard try row.step() else { return }
    try body(
      LedgerEntry(
        id: row.text(at: 0).flatMap { KSUID($0) }, sender: senders.shown(row.text(at: 1) ?? ""),
        senderKey: verifiedKey(of: row.text(at: 1) ?? ""),
        state: DiffState(rawValue: row.text(at: 2) ?? "") ?? .applied, recordedAt: row.integer(at: 3),
        inserted: Int(row.integer(at: 4)), updated: Int(row.integer(at: 5)), deleted: Int(row.integer(at: 6)),
        conflicts: Int(row.integer(at: 7)), omitted: Int(row.integer(at: 8)), reason: row.text(at: 9),
        file: row.text(at: 10) ?? "", digest: row.text(at: 11) ?? ""))
  }
}
