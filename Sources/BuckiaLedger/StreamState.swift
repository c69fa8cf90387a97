import BuckiaBytes
import SQLiteConnections

/// The state of a received stream, for people.
public struct StreamState: Hashable, Codable, Sendable {
  /// The sender, for people: a contact's name, "you", "unsigned", or "key …" with the verified key in hex.
  public let sender: String
  /// The stream: 32 digits.
  public let stream: String
  /// The incarnation of the sender's replica, 32 digits; nil if its diffs name none.
  public let incarnation: String?
  /// The number of the newest diff that was applied, or is held; 0 for none.
  public let sequence: Int64
  /// The id of that diff, which contains its time; nil for none.
  public let id: KSUID?
  /// The time of applying it, in milliseconds since 1970; nil for none.
  public let appliedAt: Int64?
  /// The number of waiting diffs of the stream.
  public let waiting: Int
  /// The diff that the first of them waits for; nil if none waits.
  public let missing: KSUID?
  /// True if the stream has ended: a snapshot has replaced it, or its key is no longer accepted.
  public let isEnded: Bool
  /// The tables of which the stream has brought rows with a key, and how many it has of each now.
  public package(set) var tables: [SharedRows] = []
}

/// Reading the streams for people.
extension StreamState {
  /// A row for each stream: SQLite takes the bare columns from the row with the greatest sequence that is applied, as long as
  /// there is no other max() or min() (<https://sqlite.org/lang_select.html#bareagg>).
  private static let query = """
    SELECT s.sender, lower(hex(s.stream)), lower(hex(s.incarnation)), l.diff, l.recorded_at,
      max(CASE WHEN l.state IN ('applied', 'held') THEN s.sequence END), sum(l.state = 'waiting'),
      EXISTS (
        SELECT 1 FROM main.buckia_stream AS r JOIN main.buckia_ledger AS rl ON rl.entry = r.entry
        WHERE r.replaces = s.stream AND r.sender = s.sender AND rl.state IN ('applied', 'held')),
      s.stream
    FROM main.buckia_stream AS s JOIN main.buckia_ledger AS l ON l.entry = s.entry
    GROUP BY s.sender, s.stream
    ORDER BY (SELECT max(n.entry) FROM main.buckia_stream AS n WHERE n.sender = s.sender AND n.stream = s.stream) DESC
    """
  private static let missing = """
    SELECT s.follows FROM main.buckia_stream AS s JOIN main.buckia_ledger AS l ON l.entry = s.entry
    WHERE s.sender = ?1 AND s.stream = ?2 AND l.state = 'waiting' ORDER BY s.sequence LIMIT 1
    """

  /// All received streams, the last active one first.
  ///
  /// - Parameter senders: The known senders, whose names states have.
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func all(
    naming senders: KnownSenders = .empty, on connection: borrowing SQLiteConnection
  ) throws -> [StreamState] {
    guard try Ledger.exists(on: connection) else { return [] }
    let first = try connection.prepare(missing)
    let tables = Dictionary(grouping: try StateEntry.all(on: connection), by: \.stream)
    var states: [StreamState] = []
    try connection.forEachRow(of: query) { row in
      try first.bind(column: 0, of: row, at: 0)
      try first.bind(column: 8, of: row, at: 1)
      let waited = try first.step() ? first.text(at: 0).flatMap { KSUID($0) } : nil
      first.reset()
      let isApplied = !row.isNull(at: 5)
      var state =
        StreamState(
          sender: senders.shown(row.text(at: 0) ?? ""), stream: row.text(at: 1) ?? "",
          incarnation: row.text(at: 2).flatMap { $0.isEmpty ? nil : $0 }, sequence: row.integer(at: 5),
          id: isApplied ? row.text(at: 3).flatMap { KSUID($0) } : nil,
          appliedAt: isApplied ? row.integer(at: 4) : nil, waiting: Int(row.integer(at: 6)), missing: waited,
          isEnded: row.integer(at: 7) != 0 || senders.hasEnded(row.text(at: 0) ?? ""))
      state.tables = (tables[row.blob(at: 8)] ?? []).map { SharedRows($0) }
      states.append(state)
    }
    return states
  }
}
