import BuckiaBytes
import SQLiteConnections

/// One line of the ledger.
public struct LedgerEntry: Hashable, Codable, Identifiable, Sendable {
  /// The diff file's id; nil for a raw changeset without one.
  public let diff: KSUID?
  /// The sender, for people: a contact's name, "you", "unsigned", "unknown" for a file that could not be read that far, or "key …" with the verified key in hex.
  public let sender: String
  /// The verified key of the sender in hexadecimal digits; nil for an unsigned file.
  public let senderKey: String?
  /// The state.
  public let state: DiffState
  /// When, in milliseconds since 1970.
  public let recordedAt: Int64
  /// Rows inserted.
  public let inserted: Int
  /// Rows updated.
  public let updated: Int
  /// Rows deleted.
  public let deleted: Int
  /// Conflicts met.
  public let conflicts: Int
  /// Changes that were not written.
  public let omitted: Int
  /// Why it was refused or waits.
  public let reason: String?
  /// The name of the file, without its folder.
  public let file: String
  /// SHA-256 that identifies it, in hex: of the manifest, of a raw changeset, or of a refused file's bytes.
  public let digest: String

  /// What tells the entry from all others of the ledger.
  public var id: String {
    let isRefused = state == .rejected || state == .quarantined
    return [isRefused ? "refused" : "", diff?.description ?? "", senderKey ?? sender, digest].joined(separator: " ")
  }

  /// The diff that it takes back: its id, or the digest of a raw changeset; nil for an entry that is no undo. That diff's entry has the
  /// id of the undo in its reason.
  public var undoes: String? {
    guard sender == LedgerEntries.shown(sender: LedgerEntries.ownSender), file.hasPrefix(Self.undoPrefix) else {
      return nil
    }
    return String(file.dropFirst(Self.undoPrefix.count))
  }

  /// The prefix before the name of a diff in the entry of its undo.
  package static let undoPrefix = "undo of "

  /// The entry of a recorded change, before a colon and its note.
  package static let recordedName = "change"
  /// The entry of changes that were found by a comparison.
  package static let foundName = "found changes"

  /// The note of a recorded change; nil for none.
  package static func note(in file: String) -> String? {
    let prefix = recordedName + ": "
    return file.hasPrefix(prefix) ? String(file.dropFirst(prefix.count)) : nil
  }
}

/// Reading the ledger for people: its entries and the refused files together, one at a time, since there can be millions.
extension LedgerEntries {
  /// The sort keys of entries. Whole entries would take much more room; each is read when its turn comes.
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

  /// Calls `body` with all entries, oldest first.
  ///
  /// - Parameter senders: The known senders, whose names entries have.
  /// - Throws: `SQLiteError`; whatever `body` throws.
  package static func forEach(
    naming senders: KnownSenders = .empty, on connection: borrowing SQLiteConnection,
    _ body: (LedgerEntry) throws -> Void
  ) throws {
    try forEach("\(order) ORDER BY 1, 2, 3", senders, on: connection, body)
  }

  /// The newest entries, oldest first.
  ///
  /// - Parameters:
  ///   - count: The number of entries.
  ///   - senders: The known senders, whose names entries have.
  /// - Throws: `SQLiteError`.
  package static func newest(
    _ count: Int, naming senders: KnownSenders = .empty, on connection: borrowing SQLiteConnection
  ) throws -> [LedgerEntry] {
    var entries: [LedgerEntry] = []
    try forEach("\(order) ORDER BY 1 DESC, 2 DESC, 3 DESC LIMIT \(count)", senders, on: connection) {
      entries.append($0)
    }
    return entries.reversed()
  }

  /// The last entry of a file, by its id, or by its name if it is a raw changeset or could not be read.
  ///
  /// - Parameters:
  ///   - id: The id.
  ///   - file: The name, without its folder.
  ///   - senders: The known senders, whose names entries have.
  /// - Returns: nil for none.
  /// - Throws: `SQLiteError`.
  package static func last(
    of id: KSUID, file: String, naming senders: KnownSenders = .empty, on connection: borrowing SQLiteConnection
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

  /// The number of entries.
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
        diff: row.text(at: 0).flatMap { KSUID($0) }, sender: senders.shown(row.text(at: 1) ?? ""),
        senderKey: verifiedKey(of: row.text(at: 1) ?? ""),
        state: DiffState(rawValue: row.text(at: 2) ?? "") ?? .applied, recordedAt: row.integer(at: 3),
        inserted: Int(row.integer(at: 4)), updated: Int(row.integer(at: 5)), deleted: Int(row.integer(at: 6)),
        conflicts: Int(row.integer(at: 7)), omitted: Int(row.integer(at: 8)), reason: row.text(at: 9),
        file: row.text(at: 10) ?? "", digest: row.text(at: 11) ?? ""))
  }
}

/// How many diff files a ledger knows of each state.
public struct LedgerCounts: Hashable, Codable, Sendable {
  /// Their changes are in the database.
  public let applied: Int
  /// Parts of them wait for the application's own upgrade.
  public let held: Int
  /// They cannot be applied yet.
  public let waiting: Int
  /// The number of files that do what their senders may not do.
  public let quarantined: Int
  /// They were refused.
  public let rejected: Int

  /// Counts them.
  ///
  /// - Throws: `SQLiteError`.
  package init(on connection: borrowing SQLiteConnection) throws {
    var counts: [String: Int] = [:]
    let query = """
      SELECT state, count(*) FROM main.buckia_ledger GROUP BY state
      UNION ALL SELECT state, count(*) FROM main.buckia_refused GROUP BY state
      """
    try connection.forEachRow(of: query) { counts[$0.text(at: 0) ?? "", default: 0] += Int($0.integer(at: 1)) }
    func count(_ state: DiffState) -> Int { counts[state.rawValue] ?? 0 }
    applied = count(.applied)
    held = count(.held)
    waiting = count(.waiting)
    quarantined = count(.quarantined)
    rejected = count(.rejected)
  }
}

/// A diff in the ledger that was applied, or is held.
package struct AppliedDiff: Sendable {
  /// The number of its ledger entry.
  package let entry: Int64
  /// Its id; nil for a raw changeset without one.
  package let id: KSUID?
  /// SHA-256 that identifies it, in hex.
  package let digest: String

  /// The name for people: the id, otherwise the digest.
  package var name: String { id?.description ?? digest }

  private static let columns = "SELECT entry, diff, lower(hex(digest)) FROM main.buckia_ledger"
  private static let isThere = "state IN ('applied', 'held')"

  /// The diffs with an id, or with a digest in hexadecimal digits; several if two senders have used one id.
  package static func all(named name: String, on connection: borrowing SQLiteConnection) throws -> [AppliedDiff] {
    try all(
      "\(columns) WHERE diff = ?1 AND \(isThere) UNION ALL "
        + "\(columns) WHERE raw AND lower(hex(digest)) = lower(?1) AND diff IS NOT ?1 AND \(isThere)", name,
      on: connection)
  }

  /// The senders of applied diffs, in the ledger's form.
  package static func senders(on connection: borrowing SQLiteConnection) throws -> [String] {
    try connection.rows(of: "SELECT DISTINCT sender FROM main.buckia_ledger WHERE \(isThere) ORDER BY 1") {
      $0.text(at: 0) ?? ""
    }
  }

  /// All diffs of a sender, the newest first.
  ///
  /// - Parameter sender: The verified key in hex; empty for unsigned files.
  package static func all(of sender: String, on connection: borrowing SQLiteConnection) throws -> [AppliedDiff] {
    try all("\(columns) WHERE sender = ?1 AND \(isThere) ORDER BY entry DESC", sender, on: connection)
  }

  private static func all(
    _ query: String, _ value: String, on connection: borrowing SQLiteConnection
  ) throws -> [AppliedDiff] {
    try connection.rows(of: query, value) { row in
      AppliedDiff(
        entry: row.integer(at: 0), id: row.text(at: 1).flatMap { KSUID($0) }, digest: row.text(at: 2) ?? "")
    }
  }

  /// True if it is a recorded change of this database, or the undo of one.
  package func isRecordedHere(on connection: borrowing SQLiteConnection) throws -> Bool {
    try connection.hasRow(
      cached: """
        WITH RECURSIVE undone(entry) AS (
          SELECT ?1 UNION SELECT u.undone FROM undone AS r JOIN main.buckia_undo AS u ON u.entry = r.entry)
        SELECT 1 FROM undone JOIN main.buckia_ledger USING (entry)
        WHERE sender = ?2 AND file NOT LIKE ?3 || '%' LIMIT 1
        """, entry, LedgerEntries.ownSender, LedgerEntry.undoPrefix)
  }

  /// Sets the reason of the diff.
  ///
  /// - Parameter reason: A sentence; nil takes it away.
  package func note(_ reason: String?, on connection: borrowing SQLiteConnection) throws {
    try connection.run(cached: "UPDATE main.buckia_ledger SET reason = ?2 WHERE entry = ?1", entry, reason)
  }
}
