import SQLiteConnections

/// The table `buckia_recipient`: the keys with which the recipients of a share sign, as far as they are known.
///
/// Only a recipient can acknowledge a share, or ask for its rows again.
package enum RecipientKey {
  static let definition = """
    CREATE TABLE main.buckia_recipient(
      share INTEGER NOT NULL,
      key TEXT NOT NULL,
      PRIMARY KEY (share, key)
    ) WITHOUT ROWID;
    """

  /// Stands for a recipient whose key is not known: a bare age recipient, or a name without a card.
  package static let unknown = ""

  /// The keys of a share's recipients in hex; ``unknown`` among them where that of one is not known, and no keys for a share that was
  /// made before keys were kept.
  ///
  /// - Throws: `SQLiteError`; `LedgerError` for a newer ledger.
  package static func all(of share: Int64, on connection: borrowing SQLiteConnection) throws -> Set<String> {
    guard try Ledger.exists(on: connection) else { return [] }
    let query = try connection.cached("SELECT key FROM main.buckia_recipient WHERE share = ?1")
    defer { query.statement.reset() }
    try query.statement.bind(share, at: 0)
    var found: Set<String> = []
    while try query.statement.step() { found.insert(query.statement.text(at: 0) ?? "") }
    return found
  }

  /// The known keys of the recipients of other shares, in hex, at most ``otherLimit``.
  ///
  /// - Throws: `SQLiteError`.
  package static func others(than share: Int64, on connection: borrowing SQLiteConnection) throws -> [String] {
    let query = try connection.prepare(
      "SELECT DISTINCT key FROM main.buckia_recipient WHERE share <> ?1 AND key <> '' LIMIT \(otherLimit)")
    try query.bind(share, at: 0)
    var found: [String] = []
    while try query.step() { found.append(query.text(at: 0) ?? "") }
    return found
  }

  /// How many recipients of other shares are named at most.
  package static let otherLimit = 256

  /// Replaces the keys of a share's recipients.
  ///
  /// - Throws: `SQLiteError`.
  package static func set(_ keys: Set<String>, of share: Int64, on connection: borrowing SQLiteConnection) throws {
    guard try all(of: share, on: connection) != keys else { return }
    try connection.run(cached: "DELETE FROM main.buckia_recipient WHERE share = ?1", share)
    for key in keys.sorted() {
      try connection.run(cached: "INSERT INTO main.buckia_recipient VALUES (?1, ?2)", share, key)
    }
  }
}
