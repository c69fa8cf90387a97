import SQLiteConnections

/// How many diff files a ledger knows of each state.
public struct LedgerCounts: Equatable, Sendable {
  /// Their changes are in the database.
  public let applied: Int
  /// Parts of them wait for the application's own upgrade.
  public let held: Int
  /// They cannot be applied yet.
  public let waiting: Int
  /// They do what their senders may not do.
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
